/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libddp: NCCL communicators for a job's ranks. PMIx carries the unique ids, so
 * that no port, file or MPI is needed.
 *
 * NCCL itself is looked up when it is first needed: the copy that is in the
 * process already, else the library that DDP_NCCL_LIBRARY names, else
 * libnccl.so.2; two copies in one process are an error that names both. Any
 * NCCL from 2.18 on serves, whatever version the program was compiled with. A
 * program that never calls these functions needs neither NCCL nor a GPU.
 *
 * What NCCL would hang or crash on is found before it is called, by what each
 * rank says of itself in the one exchange, and reported with the same sentence
 * on every rank, with ranks and hosts: two ranks on one GPU, different NCCL
 * versions, a rank without a GPU or without NCCL, a root that cannot make its
 * unique id, ranks that ask for different things. The error's code is
 * DDP_ERROR_PEER where only others are to blame. What NCCL itself reports
 * afterwards is known to that rank alone; the others have their deadline.
 *
 * Threads: as ddp.h says for collectives. A communicator itself is used by one
 * thread at a time, as NCCL wants it. None of these functions may be called
 * between ncclGroupStart and ncclGroupEnd.
 *
 * NCCL_COMM_ID and NCCL_COMM_BLOCKING=1 in the environment are refused: under
 * the one all communicators would meet at one address, under the other no
 * deadline could hold.
 */
#ifndef DDP_NCCL_H
#define DDP_NCCL_H

#ifndef DDP_NCCL_TYPES	/* libddp itself is built without NCCL */
#include <nccl.h>
#endif

#include "ddp.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Which ranks a communicator joins; a bit each. */
enum ddp_group {
	DDP_GROUP_WORLD = 1,	/* all; rank as in the job */
	DDP_GROUP_NODE = 2,	/* those of this node, by local rank */
	DDP_GROUP_CROSS = 4	/* those with this local rank on each node that
				 * has one, by node rank */
};

/* Set size to sizeof(struct ddp_nccl_options); zero what is not set. */
struct ddp_nccl_options {
	size_t size;
	const ncclConfig_t *config;	/* passed on; NULL: NCCL's defaults.
					 * Whatever it says of blocking, the
					 * communicator is initialised without
					 * blocking, or no deadline could hold,
					 * and stays so: its calls can return
					 * ncclInProgress. Read until the call
					 * returns */
	uint32_t ranks_per_root;	/* 0: 128. Ranks that one unique id
					 * serves, where this NCCL has
					 * ncclCommInitRankScalable (2.23);
					 * otherwise one id serves all. The
					 * same on all ranks */
	int share_gpu;			/* nonzero: several ranks may be on one
					 * GPU, for tests: sets NCCL_HOSTID
					 * unless that is set, so it must come
					 * before the first communicator of the
					 * process. The same on all ranks */
	int32_t timeout_ms;		/* of the whole call; 0: the job's;
					 * below 0: none */
	uint32_t reserved;		/* 0 */
};

/*
 * The communicators of one call; NULL where not asked for. Written are these
 * three alone: should a later version have more, only if groups asks for them.
 */
struct ddp_nccl_comms {
	ncclComm_t world, node, cross;
};

/*
 * Collective: create the communicators that groups, an OR of enum ddp_group,
 * names; the same on all ranks. The GPU is the calling thread's current one
 * (cudaSetDevice first; before CUDA 12, then cudaFree(0)). All of them cost one
 * PMIx fence together. Returns 0, or -1 with none created and *comms as it was.
 * options NULL: all defaults. Call it again, also after a failure that was not
 * one of the exchange (which ends the job), for new ones.
 *
 * When NCCL's own initialisation fails or the deadline passes in it, this
 * rank's part of all of them is aborted, for which the call may take
 * DDP_NCCL_ABORT_MS more.
 */
int ddp_nccl_create(struct ddp_job *job, unsigned int groups,
		    const struct ddp_nccl_options *options,
		    struct ddp_nccl_comms *comms, struct ddp_error *error);

#define DDP_COLOR_NONE UINT32_MAX	/* of a rank that joins none */
#define DDP_NCCL_ABORT_MS 5000		/* that an abort after another error may
					 * take */

/*
 * Collective over the job: one communicator for each color, its ranks ordered
 * by key, then by rank in the job, as MPI_Comm_split has it, but that keys are
 * unsigned: a -1 is the largest. *comm is NULL for DDP_COLOR_NONE, which needs
 * no GPU and no NCCL. Ranks of different colors may
 * be on one GPU. Costs two fences: roots are not known before the colors are.
 * Returns 0, or -1 with *comm as it was.
 */
int ddp_nccl_split(struct ddp_job *job, uint32_t color, uint32_t key,
		   const struct ddp_nccl_options *options, ncclComm_t *comm,
		   struct ddp_error *error);

/*
 * Wait until comm has taken up all that was enqueued (NULL: there is none to
 * ask) and the stream has done it, or comm reports an asynchronous error, or
 * timeout_ms (0: 300,000; below 0: none) have passed: DDP_ERROR_TIMEOUT. After
 * an error the communicator can only be aborted. Returns 0 or -1. Any thread
 * may wait that may use the stream. (A CUstream is one too; where a program was
 * compiled with per-thread default streams, pass cudaStreamPerThread, not 0.)
 */
int ddp_nccl_wait(ncclComm_t comm, cudaStream_t stream, int32_t timeout_ms,
		  struct ddp_error *error);

/*
 * Local: end a communicator at once, with what is under way; all its ranks
 * must. It is gone whatever this returns: 0, or -1 where NCCL reports an error
 * or has not returned after 300 s (from NCCL 2.27 on; an older one is waited
 * for). NULL is allowed.
 */
int ddp_nccl_abort(ncclComm_t comm, struct ddp_error *error);

/*
 * Local: finalise and destroy a communicator. What is enqueued is awaited, so a
 * peer that does not come holds it, but no longer than timeout_ms (as above;
 * from NCCL 2.27 on): it is aborted then, which may take DDP_NCCL_ABORT_MS. It
 * is gone whatever this returns: 0, or -1 where it had to be aborted. NULL is
 * allowed.
 */
int ddp_nccl_destroy(ncclComm_t comm, int32_t timeout_ms,
		     struct ddp_error *error);

/*
 * The path of the NCCL in use, borrowed, and in *version (NULL: not wanted) its
 * version, as 22809 for 2.28.9; looked up first if need be. NULL on errors.
 */
const char *ddp_nccl_library(int *version, struct ddp_error *error);

#ifdef __cplusplus
}
#endif
#endif
