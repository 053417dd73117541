/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libddp: a job of many processes, one rank each, that PMIx connects; started
 * by srun --mpi=pmix (which srun --ddp chooses), by any other PMIx launcher, or
 * as one process without any.
 *
 * Collective functions must be called by every rank, in the same order. Each
 * ends at its deadline even if a peer never arrives; where that happens, up to
 * a second more goes into finding out which ranks have not come, which the
 * error then names with their hosts. A rank that has come and stalled later
 * cannot be named, and the error says so. A deadline that has passed, and any
 * failure of PMIx itself, ends the job: every later collective of it fails at
 * once with the same error.
 *
 * A rank that dies ends them all under srun --kill-on-bad-exit, which srun
 * --ddp sets. Without, Slurm still kills most steps of which a process has
 * died, or called _exit, after its first ddp_job_create; but not where ranks of
 * its node were waiting in a collective: these get an error at once, and should
 * call ddp_abort, as those on other nodes have only their deadline. PMIx is
 * left when the program exits, by exit or return from main, and not before: a
 * rank that exits with an error tells nobody, so call ddp_abort instead. A rank
 * that comes after its peers' deadline may itself succeed: only ddp_abort by
 * those who waited ends it.
 *
 * Order: destroy communicators, then the job, then call MPI_Finalize. A
 * program's own MPI_Init may come at any time, but the first ddp_job_create
 * must come before MPI_Finalize.
 *
 * Threads: all functions of a job may be called by several threads at once, but
 * for ddp_job_destroy; collectives wait for each other, and their order must
 * still be the same on all ranks. A child of fork has no job. Nothing here
 * prints, except ddp_abort, or exits, except ddp_abort.
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

/* How a job is found. */
enum ddp_launch {
	DDP_LAUNCH_AUTO = 0,	/* PMIx where a launcher offers it; otherwise
				 * one process, unless Slurm has started
				 * several tasks, which is refused: they would
				 * each be alone */
	DDP_LAUNCH_PMIX,	/* PMIx, or refuse */
	DDP_LAUNCH_SINGLE	/* one process, whatever started it */
};

/* Set size to sizeof(struct ddp_job_options); zero whatever else is not set. */
struct ddp_job_options {
	size_t size;
	enum ddp_launch launch;
	int32_t timeout_ms;	/* of joining, and of each collective; 0:
				 * 300,000, as imports of Python programs skew
				 * their start; below 0: none */
};

/*
 * Join the job. Not collective, but the other ranks' collectives wait for it.
 * options NULL: all defaults. Returns the job, for the caller to destroy, or
 * NULL. A process has one job at a time; after it has destroyed one it can
 * create another, if all ranks do, but not after one that was ended by a
 * failure as above.
 */
struct ddp_job *ddp_job_create(const struct ddp_job_options *options,
			       struct ddp_error *error);

/* Leave it. Waits for nobody. NULL is allowed. */
void ddp_job_destroy(struct ddp_job *job);

uint32_t ddp_job_rank(const struct ddp_job *job);
uint32_t ddp_job_size(const struct ddp_job *job);
uint32_t ddp_job_local_rank(const struct ddp_job *job);	/* on its node */
uint32_t ddp_job_local_size(const struct ddp_job *job);
uint32_t ddp_job_node_rank(const struct ddp_job *job);	/* nodes count by their
							 * lowest rank */
uint32_t ddp_job_node_count(const struct ddp_job *job);

/* Of any rank; borrowed until the job is destroyed. NULL beyond its size. */
const char *ddp_job_host(const struct ddp_job *job, uint32_t rank);

/* Of any rank below the size; UINT32_MAX beyond it. */
uint32_t ddp_job_node_of(const struct ddp_job *job, uint32_t rank);
uint32_t ddp_job_local_rank_of(const struct ddp_job *job, uint32_t rank);

#define DDP_RECORD_MAX 65536	/* bytes that a rank can give to allgather */

/*
 * Collective: every rank gives size bytes at mine, the same size on all, from
 * 1 to DDP_RECORD_MAX; all[size * job size] then holds those of rank 0, 1, ...
 * Returns 0, or -1 with all undefined; what is wrong with one record is known
 * only to the ranks that read it.
 *
 * Costs one PMIx fence and a local read for each rank: for set-up, not for
 * training. Up to 100 bytes are cheapest. PMIx forgets nothing: each later
 * collective of the job carries twice what the largest records weighed.
 */
int ddp_job_allgather(struct ddp_job *job, const void *mine, size_t size,
		      void *all, struct ddp_error *error);

/* Collective: returns 0 when all ranks have called it, or -1, also where one
 * has died instead. Costs what ddp_job_allgather costs. */
int ddp_job_barrier(struct ddp_job *job, struct ddp_error *error);

/*
 * End the whole job, now, with an exit code from 1 to 255 (others become 1),
 * without atexit or the flush of buffers, on every rank. The formatted sentence
 * goes to stderr as one line, "ddp_abort: rank 3 on n2: ...". job NULL: ends
 * this process only, as does a child of fork. May be called by any thread.
 */
void ddp_abort(struct ddp_job *job, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4), noreturn));

/* "0.1.0" */
const char *ddp_version(void);

#ifdef __cplusplus
}
#endif
#endif
