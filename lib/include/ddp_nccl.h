/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libddp: NCCL communicators for a job's ranks. PMIx carries the unique ids, so
 * no port, file or MPI is needed.
 *
 * NCCL is looked up when it is first needed: the copy that is in the process
 * already, or else the library that DDP_NCCL_LIBRARY names, or else
 * libnccl.so.2; or librccl.so.1, of AMD's GPUs, where there is no CUDA driver.
 * Two copies in one process are an error that names both. Any NCCL from 2.18 on
 * will do, whatever version the program was compiled with. A program that never
 * calls these functions needs neither NCCL nor a GPU.
 *
 * What would make NCCL hang or crash is found before it is called. Each rank
 * describes itself in one exchange, and an error is the same sentence on every
 * rank, with ranks and hosts: two ranks on one GPU, different NCCL versions, a
 * rank without a GPU or without NCCL, a root that cannot make its unique id,
 * ranks that ask for different things. The code is DDP_ERROR_PEER if only
 * others are to blame. Errors that NCCL reports later are known to that rank
 * alone; the others have their deadline.
 *
 * Threads: see ddp.h for collectives. NCCL requires that one thread at a time
 * uses a communicator. Do not call these functions between ncclGroupStart and
 * ncclGroupEnd.
 *
 * NCCL_COMM_ID and NCCL_COMM_BLOCKING=1 in the environment are refused: with
 * the first, all communicators would meet at one address; with the second, no
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

/* The ranks that a communicator has; a bit each. */
enum ddp_group {
	DDP_GROUP_WORLD = 1,	/* all; the rank is that in the job */
	DDP_GROUP_NODE = 2,	/* those of this node, by local rank */
	DDP_GROUP_CROSS = 4	/* those with this local rank on every node
				 * that has it, by node rank */
};

/* Set size to sizeof(struct ddp_nccl_options), and zero what you do not set. */
struct ddp_nccl_options {
	size_t size;
	const ncclConfig_t *config;	/* passed on; NULL: NCCL's defaults.
					 * But the communicator is always made
					 * without blocking, or no deadline
					 * could hold, and stays so: its calls
					 * can return ncclInProgress. Borrowed
					 * until the call returns */
	uint32_t ranks_per_root;	/* ranks that one unique id serves; 0:
					 * 128. Needs an NCCL that has
					 * ncclCommInitRankScalable (2.23); or
					 * else one id serves all. The same on
					 * all ranks */
	int share_gpu;			/* nonzero: several ranks may be on one
					 * GPU, for tests. Sets NCCL_HOSTID
					 * unless it is set, so give it for the
					 * first communicator of the process.
					 * The same on all ranks */
	int32_t timeout_ms;		/* for the whole call; 0: the job's;
					 * below 0: no limit */
	uint32_t reserved;		/* 0 */
};

/*
 * The communicators of one call; NULL if not asked for. If a later version has
 * more fields, they are written only if groups asks for them.
 */
struct ddp_nccl_comms {
	ncclComm_t world, node, cross;
};

/*
 * Collective: make the communicators that groups names, an OR of enum ddp_group
 * that is the same on all ranks. The GPU is the current one of the calling
 * thread: call cudaSetDevice first, and before CUDA 12 then cudaFree(0). All of
 * them together cost one PMIx fence. options NULL: all defaults. Returns 0; or
 * -1, no communicator is made and *comms is unchanged. It can be called again
 * for new ones, also after a failure, unless the exchange failed: that ends the
 * job.
 *
 * If NCCL's own initialisation fails or does not end in time, this rank's part
 * of all of them is aborted, which may take DDP_NCCL_ABORT_MS more.
 */
int ddp_nccl_create(struct ddp_job *job, unsigned int groups,
		    const struct ddp_nccl_options *options,
		    struct ddp_nccl_comms *comms, struct ddp_error *error);

#define DDP_COLOR_NONE UINT32_MAX	/* of a rank that joins none */
#define DDP_NCCL_ABORT_MS 5000		/* for an abort after another error */

/*
 * Collective over the job: one communicator for each color, its ranks ordered
 * by key, then by rank in the job, like MPI_Comm_split; but keys are unsigned,
 * so -1 is the largest. With DDP_COLOR_NONE *comm is NULL, and the rank needs
 * no GPU and no NCCL. Ranks of different colors may be on one GPU. Costs two
 * fences, because the roots are not known before the colors are. Returns 0; or
 * -1 and *comm is unchanged.
 */
int ddp_nccl_split(struct ddp_job *job, uint32_t color, uint32_t key,
		   const struct ddp_nccl_options *options, ncclComm_t *comm,
		   struct ddp_error *error);

/*
 * Wait until the stream has done all that was enqueued through comm (NULL: all
 * that is in the stream). Returns 0; or -1 if comm or the stream reports an
 * error, or timeout_ms (0: 300,000; below 0: no limit) have passed
 * (DDP_ERROR_TIMEOUT). After an error the communicator can only be aborted. Any
 * thread that may use the stream may wait, one at a time for a communicator, on
 * which nobody makes a call meanwhile; before NCCL 2.27 the thread that made the
 * latest call on it must still live, and be in no call of NCCL. Before 2.26 call
 * this before that thread uses or makes another communicator: NCCL crashes there
 * after cudaStreamSynchronize() alone. (A CUstream is a cudaStream_t, too. A
 * program that was compiled with per-thread default streams passes
 * cudaStreamPerThread, not 0.)
 */
int ddp_nccl_wait(ncclComm_t comm, cudaStream_t stream, int32_t timeout_ms,
		  struct ddp_error *error);

/*
 * Local: end a communicator at once, with all that it is doing; all its ranks
 * must do so. Returns 0; or -1 if NCCL reports an error, or has not returned
 * after 300 s (before NCCL 2.27 there is no limit where a call was in progress).
 * The communicator is gone in either case. NULL is allowed. NCCL waits until the
 * GPU is idle: where kernels of several communicators wait for ranks, abort all
 * at the same time, from a thread each.
 */
int ddp_nccl_abort(ncclComm_t comm, struct ddp_error *error);

/*
 * Local: finalise and destroy a communicator. This waits for what is enqueued,
 * and so for peers, but no longer than timeout_ms (as above; from NCCL 2.27
 * on): then it aborts, which may take DDP_NCCL_ABORT_MS. Returns 0; or -1 if it
 * had to abort. The communicator is gone in either case. NULL is allowed.
 */
int ddp_nccl_destroy(ncclComm_t comm, int32_t timeout_ms,
		     struct ddp_error *error);

/*
 * The path of the NCCL in use, borrowed; looked up first if it was not yet.
 * Sets *version (NULL: not wanted) to its version, such as 22809 for 2.28.9.
 * NULL on errors.
 */
const char *ddp_nccl_library(int *version, struct ddp_error *error);

#ifdef __cplusplus
}
#endif
#endif
