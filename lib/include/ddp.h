/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libddp: a job of many processes, one rank each, that PMIx connects. It is
 * started by srun --mpi=pmix (which srun --ddp chooses), by another launcher
 * with PMIx, or as one process without any.
 *
 * Collectives. Every rank must call the same collective functions in the same
 * order. Each ends at its deadline even if a peer never arrives. It then takes
 * up to a second more to find out which ranks have not come, and the error
 * names them with their hosts. A rank that came and stalled later cannot be
 * named; the error says so. A deadline that has passed, or a failure of PMIx
 * itself, ends the job: every later collective of it fails at once with the
 * same error.
 *
 * A rank that dies ends the whole step under srun --kill-on-bad-exit, which
 * srun --ddp sets. Without that, Slurm still kills most steps in which a
 * process died or called _exit after its first ddp_job_create. It does not if
 * ranks of the same node were waiting in a collective: these get an error at
 * once and should call ddp_abort, because ranks on other nodes have only their
 * deadline.
 *
 * A rank that fails should call ddp_abort rather than exit: exit, or return
 * from main, leaves PMIx in order, and no other rank notices. A rank that comes
 * after its peers' deadline may itself succeed: only ddp_abort by those who
 * waited ends it.
 *
 * Order: the program's own MPI_Init, ddp_job_create, communicators; then
 * destroy these, then the job, then call MPI_Finalize. Open MPI 4 allows
 * MPI_Init at any time; that of Open MPI 5 fails once the process has joined
 * PMIx. The first ddp_job_create must come before MPI_Finalize in any case.
 *
 * Threads: several threads may call the functions of a job at once, except
 * ddp_job_destroy. Collectives wait for each other, and their order must still
 * be the same on all ranks. A child of fork has no job. Only ddp_abort prints
 * or exits.
 */
#ifndef DDP_H
#define DDP_H

#include <stddef.h>
#include <stdint.h>

#include "ddp_error.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ddp_job;

/* The way a job is found. */
enum ddp_launch {
	DDP_LAUNCH_AUTO = 0,	/* PMIx if a launcher offers it, or else one
				 * process. Several tasks without PMIx are an
				 * error: each would be a job of its own */
	DDP_LAUNCH_PMIX,	/* PMIx, or an error */
	DDP_LAUNCH_SINGLE	/* one process, whatever started it */
};

/* Set size to sizeof(struct ddp_job_options), and zero what you do not set. */
struct ddp_job_options {
	size_t size;
	enum ddp_launch launch;
	int32_t timeout_ms;	/* for joining, and for each collective. 0:
				 * 300,000, because Python programs import for
				 * that long; below 0: no limit */
};

/*
 * Join the job. Not collective, but the other ranks' collectives wait for it.
 * options NULL: all defaults. Returns the job, which the caller destroys, or
 * NULL. A process has one job at a time. After it has destroyed one, it can
 * create another if all ranks do, and if no failure as above ended the first.
 */
struct ddp_job *ddp_job_create(const struct ddp_job_options *options,
			       struct ddp_error *error);

/* Leave the job, without waiting for others. NULL is allowed. */
void ddp_job_destroy(struct ddp_job *job);

uint32_t ddp_job_rank(const struct ddp_job *job);
uint32_t ddp_job_size(const struct ddp_job *job);
uint32_t ddp_job_local_rank(const struct ddp_job *job);	/* on its node */
uint32_t ddp_job_local_size(const struct ddp_job *job);
uint32_t ddp_job_node_rank(const struct ddp_job *job);	/* nodes are in the
							 * order of their
							 * lowest ranks */
uint32_t ddp_job_node_count(const struct ddp_job *job);

/* The host of any rank; borrowed until the job is destroyed. NULL if there is
 * no such rank. */
const char *ddp_job_host(const struct ddp_job *job, uint32_t rank);

/* The same of any rank. UINT32_MAX if there is no such rank. */
uint32_t ddp_job_node_of(const struct ddp_job *job, uint32_t rank);
uint32_t ddp_job_local_rank_of(const struct ddp_job *job, uint32_t rank);

#define DDP_RECORD_MAX 65536	/* bytes that a rank can give in a collective */

/*
 * Collective: every rank gives size bytes at mine, the same size on all, from 1
 * to DDP_RECORD_MAX. all[size * job size] gets those of rank 0, 1, ... Returns
 * 0; or -1, and all is undefined. Only the ranks that read a wrong record know
 * of it. Under srun --ddp, -1 comes 0.3 s later, but not after the deadline, so
 * that the agents can tell before which rank failed first.
 *
 * Costs one PMIx fence and a read for each rank: use it to set up, not to
 * train. The thousandth costs what the second does. Over several nodes of Slurm
 * the first is not before the process is 0.3 s old: sooner, slurmstepd of a
 * node that is still starting its tasks may lose it, and all would wait for
 * ever. Up to 100 bytes are cheapest. PMIx forgets nothing: each later
 * collective of the job carries twice the size of the largest records again. So
 * does each read with PMIx 5, where the node's server answers it with all that
 * the rank has put.
 */
int ddp_job_allgather(struct ddp_job *job, const void *mine, size_t size,
		      void *all, struct ddp_error *error);

/* Collective: returns 0 when all ranks have called it; or -1, also if one has
 * died. Costs as much as ddp_job_allgather. */
int ddp_job_barrier(struct ddp_job *job, struct ddp_error *error);

/*
 * End all ranks at once, with an exit code from 1 to 255 (others become 1).
 * Functions of atexit do not run, and buffers are not flushed. The formatted
 * sentence goes to stderr as one line, "PROGRAM: rank 3 on n2: ...", with the
 * program's name and a '?' for what cannot be printed; if stderr is a pipe, the
 * ranks end when it has been read, for which this waits 1 s at most. job NULL,
 * or a child of fork: ends this process only. Any thread may call this.
 */
void ddp_abort(struct ddp_job *job, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4), noreturn));

/*
 * This rank makes progress: call it once a step. It adds 1 to a counter by which
 * whoever watches the rank, as srun --ddp-watchdog does, knows one that hangs
 * from one that is quiet. No job is needed. Collectives, communicators and
 * waits of libddp that succeed count by themselves.
 *
 * The first call opens the file that DDP_HEARTBEAT_FILE names. Without that
 * variable, or if the file cannot be used, this and every later call does
 * nothing. Otherwise a later call is one atomic addition. In a child of fork it
 * does nothing, because workers that go on would hide a rank that hangs.
 * Changes errno never. Any thread and any signal handler may call it.
 */
void ddp_heartbeat(void);

/* "0.1.0" */
const char *ddp_version(void);

#ifdef __cplusplus
}
#endif
#endif
