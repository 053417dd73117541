/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes one communicator, waits for it with a deadline, and ends it. */
#define _POSIX_C_SOURCE 200809L
#include "nccl/comm.h"

#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "job/job.h"
#include "job/wait.h"
#include "nccl/driver.h"

/* ---- waiting: for a call in progress, for a stream */

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

/* ---- making one */

enum {
	CONFIG_SIZE = offsetof(ncclConfig_t, blocking) + sizeof(int),
	CONFIG_LARGEST = 65536
};

ncclConfig_t *ddp_init_copy_config(const ncclConfig_t *config,
				   struct ddp_error *error)
{
	static const ncclConfig_t least = {
		.size = CONFIG_SIZE, .magic = DDP_NCCL_CONFIG_MAGIC,
		.version = DDP_NCCL_CONFIG_VERSION
	};
	ncclConfig_t *copy;
	size_t size;

	if (!config)
		config = &least;
	size = config->size;
	if (config->magic != DDP_NCCL_CONFIG_MAGIC ||
	    config->version < DDP_NCCL_CONFIG_VERSION ||
	    size < CONFIG_SIZE || size > CONFIG_LARGEST) {
		ddp_error_set(error, DDP_ERROR_ARGUMENT, "the config is not "
			      "valid: set it to NCCL_CONFIG_INITIALIZER first");
		return NULL;
	}
	copy = calloc(1, size > sizeof(*copy) ? size : sizeof(*copy));
	if (!copy) {
		ddp_error_set(error, DDP_ERROR_SYSTEM,
			      "out of memory for a config");
		return NULL;
	}
	memcpy(copy, config, size);
	copy->blocking = 0;
	return copy;
}

static int start_comm(const struct ddp_nccl *nccl,
		      const struct ddp_roster *roster, ncclUniqueId *ids,
		      ncclConfig_t *config, ncclComm_t *comm)
{
	int size = (int)roster->size, rank = (int)roster->rank;

	if (roster->root_count > 1)
		return nccl->init_scalable(comm, size, rank,
					   (int)roster->root_count, ids,
					   config);
	return nccl->init_rank(comm, size, ids[0], rank, config);
}

int ddp_init_comm(const struct ddp_nccl *nccl, const struct ddp_roster *roster,
		  ncclUniqueId *ids, ncclConfig_t *config, const char *name,
		  int64_t deadline, ncclComm_t *comm, struct ddp_error *error)
{
	char what[96];
	int result;

	snprintf(what, sizeof(what), "the initialisation of the %s "
		 "communicator of %u rank%s", name, roster->size,
		 roster->size > 1 ? "s" : "");
	*comm = NULL;
	ddp_nccl_note_use();
	result = start_comm(nccl, roster, ids, config, comm);
	if (result != DDP_NCCL_SUCCESS && result != DDP_NCCL_IN_PROGRESS)
		ddp_nccl_set_error(error, nccl, what, result);
	else
		result = ddp_await_comm(nccl, *comm, what, deadline, error);
	if (result == 0)
		return 0;
	/*
	 * If cudaGetDevice fails, NCCL returns inside a group that it has
	 * opened, and later calls of this thread would become part of it. So
	 * close it; after another error this call does nothing.
	 */
	if (result == DDP_NCCL_CUDA_ERROR && !*comm)
		nccl->group_end();
	return -1;
}

/* ---- its end */

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

/*
 * Abort a communicator until a deadline, in another thread if this NCCL allows
 * that. Returns 0, or -1; the communicator is gone in either case.
 */
static int abort_comm(const struct ddp_nccl *nccl, ncclComm_t comm,
		      int64_t deadline, struct ddp_error *error)
{
	return run_end(run_abort, is_held_here(nccl, comm), nccl, comm,
		       deadline, deadline, error);
}

void ddp_destroy_quietly(const struct ddp_nccl *nccl, ncclComm_t comm,
			 int64_t deadline)
{
	if (comm)
		abort_comm(nccl, comm, deadline, NULL);
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
	return abort_comm(nccl, comm, ddp_job_deadline(NULL, 0), error);
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
