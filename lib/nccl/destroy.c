/* SPDX-License-Identifier: BSD-3-Clause */
/* ddp_nccl_destroy and ddp_nccl_abort. */
#include "nccl/destroy.h"

#include <stdbool.h>
#include <stdlib.h>

#include "job/job.h"
#include "job/thread.h"
#include "nccl/await.h"

/* The state of a thread that can outlive its caller. */
struct end {
	const struct ddp_nccl *nccl;
	ncclComm_t comm;
	int64_t deadline;
	int result;
	struct ddp_error error;
};

/*
 * Do the work in another thread, until bound. If here, only this thread can do
 * it, and there is no bound. Returns 0; or -1 with the error of the work, or
 * that it has not ended.
 */
static int run_end(void (*work)(void *state), bool here,
		   const struct ddp_nccl *nccl, ncclComm_t comm,
		   int64_t deadline, int64_t bound, struct ddp_error *error)
{
	struct end *end = calloc(1, sizeof(*end));
	int result;

	if (!end)
		return ddp_error_set(error, DDP_ERROR_SYSTEM,
				     "out of memory to end a communicator");
	end->nccl = nccl;
	end->comm = comm;
	end->deadline = deadline;
	if (here)
		work(end);
	else if (ddp_thread_run(work, end, bound))
		return ddp_error_set(error, DDP_ERROR_TIMEOUT,
				     "NCCL did not end the communicator in "
				     "time");
	result = end->result;
	if (result != 0 && error)
		*error = end->error;
	free(end);
	return result;
}

/* ---- abort */

static void run_abort(void *state)
{
	struct end *end = state;
	int result = end->nccl->abort(end->comm);

	if (result != DDP_NCCL_SUCCESS && result != DDP_NCCL_IN_PROGRESS)
		end->result = ddp_nccl_set_error(&end->error, end->nccl,
						 "ncclCommAbort", result);
}

/* Returns true if an old NCCL may have a call in progress, or its failure, in
 * this thread. */
static bool is_held_here(const struct ddp_nccl *nccl, ncclComm_t comm)
{
	int state = DDP_NCCL_SUCCESS;

	return nccl->version < DDP_NCCL_ANY_THREAD &&
	       (nccl->get_async_error(comm, &state) != DDP_NCCL_SUCCESS ||
		state != DDP_NCCL_SUCCESS);
}

int ddp_destroy_abort(const struct ddp_nccl *nccl, ncclComm_t comm,
		      int64_t deadline, struct ddp_error *error)
{
	return run_end(run_abort, is_held_here(nccl, comm), nccl, comm,
		       deadline, deadline, error);
}

void ddp_destroy_quietly(const struct ddp_nccl *nccl, ncclComm_t comm,
			 int64_t deadline)
{
	if (comm)
		ddp_destroy_abort(nccl, comm, deadline, NULL);
}

void ddp_destroy_all_quietly(const struct ddp_nccl *nccl,
			     const ncclComm_t *comms, int count,
			     int64_t deadline)
{
	int last = -1;

	for (int i = 0; i < count; i++)
		if (comms[i] && (last < 0 || !is_held_here(nccl, comms[last])))
			last = i;
	for (int i = 0; i < count; i++)
		if (i != last)
			ddp_destroy_quietly(nccl, comms[i], 0);
	if (last >= 0)
		ddp_destroy_quietly(nccl, comms[last], deadline);
}

int ddp_nccl_abort(ncclComm_t comm, struct ddp_error *error)
{
	const struct ddp_nccl *nccl;

	if (!comm)
		return 0;
	nccl = ddp_nccl_get(error);
	if (!nccl)
		return -1;
	return ddp_destroy_abort(nccl, comm, ddp_job_deadline(NULL, 0), error);
}

/* ---- destroy */

static int finalize(const struct end *end, struct ddp_error *error)
{
	const char *what = "ncclCommFinalize";
	int result;

	if (ddp_await_comm(end->nccl, end->comm, "what was enqueued",
			   end->deadline, error) != 0)
		return -1;
	result = end->nccl->finalize(end->comm);
	if (result != DDP_NCCL_SUCCESS && result != DDP_NCCL_IN_PROGRESS)
		return ddp_nccl_set_error(error, end->nccl, what, result);
	return ddp_await_comm(end->nccl, end->comm, what, end->deadline, error);
}

/* All in one thread: NCCL before 2.27 needs that. */
static void run_destroy(void *state)
{
	struct end *end = state;
	int result;

	end->result = finalize(end, &end->error);
	if (end->result != 0) {
		end->nccl->abort(end->comm);
		return;
	}
	result = end->nccl->destroy(end->comm);
	if (result != DDP_NCCL_SUCCESS && result != DDP_NCCL_IN_PROGRESS)
		end->result = ddp_nccl_set_error(&end->error, end->nccl,
						 "ncclCommDestroy", result);
}

int ddp_nccl_destroy(ncclComm_t comm, int32_t timeout_ms,
		     struct ddp_error *error)
{
	int64_t deadline = ddp_job_deadline(NULL, timeout_ms);
	const struct ddp_nccl *nccl;

	if (!comm)
		return 0;
	nccl = ddp_nccl_get(error);
	if (!nccl)
		return -1;
	return run_end(run_destroy, nccl->version < DDP_NCCL_ANY_THREAD, nccl,
		       comm, deadline,
		       deadline == DDP_CLOCK_NEVER ? deadline :
		       deadline + DDP_NCCL_ABORT_MS, error);
}
