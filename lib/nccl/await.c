/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting for what NCCL does, with a deadline: a call in progress, a stream. */
#define _POSIX_C_SOURCE 200809L
#include "nccl/await.h"

#include <sched.h>
#include <time.h>

#include "job/job.h"
#include "nccl/cuda.h"

void ddp_await_pause(unsigned int *round)
{
	unsigned int slept = *round - 64;
	struct timespec time = { .tv_nsec = 1000000 };

	if ((*round)++ < 64) {
		sched_yield();
		return;
	}
	if (slept < 7)
		time.tv_nsec = 10000L << slept;
	else
		*round = 64 + 7;
	nanosleep(&time, NULL);
}

/*
 * NCCL 2.19 to 2.25 do some calls in a thread; from 2.23 on every call. The
 * communicators of such a call stay in a list of the thread that made it
 * (ncclGroupCommHead in group.cc) until one of them is asked for more than its
 * error. Until then that thread crashes if it uses or makes another
 * communicator.
 */
int ddp_await_look(const struct ddp_nccl *nccl, ncclComm_t comm)
{
	int state = DDP_NCCL_SUCCESS, size;
	int result = nccl->get_async_error(comm, &state);

	if (result != DDP_NCCL_SUCCESS || state != DDP_NCCL_SUCCESS)
		return result != DDP_NCCL_SUCCESS ? result : state;
	return nccl->version < DDP_NCCL_LOOK_ENDS ? nccl->count(comm, &size) :
						    DDP_NCCL_SUCCESS;
}

int ddp_await_comm(const struct ddp_nccl *nccl, ncclComm_t comm,
		   const char *what, int64_t deadline, struct ddp_error *error)
{
	unsigned int round = 0;
	int state;

	for (;;) {
		state = ddp_await_look(nccl, comm);
		if (state == DDP_NCCL_SUCCESS)
			return 0;
		if (state != DDP_NCCL_IN_PROGRESS)
			return ddp_nccl_set_error(error, nccl, what, state);
		if (ddp_clock_ms() >= deadline)
			return ddp_error_set(error, DDP_ERROR_TIMEOUT,
					     "%s was not done in time: a rank "
					     "does not take part, or cannot be "
					     "reached", what);
		ddp_await_pause(&round);
	}
}

/*
 * The communicator first, then the stream: a call that is still in progress has
 * not reached the stream yet, which is then idle although there is work to do.
 */
static int look_once(const struct ddp_nccl *nccl, ncclComm_t comm,
		     cudaStream_t stream, struct ddp_error *error)
{
	int state = comm ? ddp_await_look(nccl, comm) : DDP_NCCL_SUCCESS;
	int done;

	if (state != DDP_NCCL_SUCCESS && state != DDP_NCCL_IN_PROGRESS)
		return ddp_nccl_set_error(error, nccl, "a collective", state);
	done = ddp_cuda_query_stream(stream, error);
	return done < 0 ? -1 : done > 0 && state == DDP_NCCL_SUCCESS;
}

int ddp_nccl_wait(ncclComm_t comm, cudaStream_t stream, int32_t timeout_ms,
		  struct ddp_error *error)
{
	int64_t begin = ddp_clock_ms();
	int64_t deadline = ddp_job_deadline(NULL, timeout_ms);
	int64_t given = deadline - begin;
	const struct ddp_nccl *nccl = NULL;
	unsigned int round = 0;
	int done;

	if (comm) {
		nccl = ddp_nccl_get(error);
		if (!nccl)
			return -1;
	}
	for (;;) {
		done = look_once(nccl, comm, stream, error);
		if (done < 0)
			return -1;
		if (done > 0) {
			ddp_heartbeat();
			return 0;
		}
		if (ddp_clock_ms() >= deadline)
			break;
		ddp_await_pause(&round);
	}
	return ddp_error_set(error, DDP_ERROR_TIMEOUT, "waited %.*f s for a "
			     "stream%s", given < 100000, (double)given / 1000,
			     comm ? ": abort the communicator" : "");
}
