/* SPDX-License-Identifier: BSD-3-Clause */
/* Ends a run whose communicators have failed, or whose ranks do not come. */
#define _GNU_SOURCE
#include <time.h>

#include "job/exchange.h"
#include "job/job.h"
#include "nccl/await.h"
#include "nccl/destroy.h"
#include "nccl/ranks.h"
#include "util/clock.h"
#include "util/error.h"

/* Milliseconds that the ranks have, after a timeout, to say that they live. */
enum { ANSWER_MS = 10000 };

/* Seconds */
static const double stopped = 1;	/* a look that is later: this process
					   was stopped itself */
static const double seldom = 0.01;	/* between looks for errors */
static const double stagger = 0.2;	/* between ranks 0, 1, 2-3, 4-7, ... */

/* Lower ranks speak first: all fail at once, and one sentence is enough. */
static void let_lower_ranks_speak(const struct nccl *nccl)
{
	struct timespec time;
	double seconds = 0;

	for (int rank = nccl->collective->rank; rank > 0; rank /= 2)
		seconds += stagger;
	time.tv_sec = (time_t)seconds;
	time.tv_nsec = (long)((seconds - (double)time.tv_sec) * 1e9);
	nanosleep(&time, NULL);
}

static _Noreturn void fail_now(struct nccl *nccl, const struct ddp_error *error)
{
	ncclComm_t comms[] = { nccl->buckets, nccl->agreed };

	if (nccl->library)
		ddp_destroy_all_quietly(nccl->library, comms, 2,
					ddp_clock_ms() + DDP_NCCL_ABORT_MS);
	ddp_abort(nccl->job, 1, "%s", error->text);
}

/* Ends the run if this rank's GPU has failed: NCCL does not say why. */
static void look_at_device(struct nccl *nccl)
{
	struct device *device = nccl->device;
	struct ddp_error error = { 0 };

	if (device->table->query(device, AGREE_EVENT) < 0 &&
	    device->table->check(device, &error) < 0)
		fail_now(nccl, &error);
}

_Noreturn void nccl_fail(struct nccl *nccl, const struct ddp_error *error)
{
	if (nccl->device)
		look_at_device(nccl);
	let_lower_ranks_speak(nccl);
	fail_now(nccl, error);
}

/*
 * PMIx is another way than NCCL, in which ranks that live can answer. They all
 * end their waits at about the same time.
 */
static _Noreturn void end_late(struct nccl *nccl, double waited)
{
	int64_t deadline = ddp_clock_ms() + ANSWER_MS;
	struct ddp_error why = { 0 }, error;
	int result = ddp_job_begin(nccl->job, deadline, &why);

	if (result == 0) {
		result = ddp_exchange_put(nccl->job, NULL, 0, deadline, &why);
		ddp_job_end(nccl->job);
	}
	if (result == 0)
		ddp_error_set(&error, DDP_ERROR_TIMEOUT, "waited %.0f s for "
			      "NCCL, although all ranks answer over PMIx: what "
			      "GPUs send is lost or slow; test the network "
			      "with ddp-bench, or choose a longer --timeout",
			      waited);
	else
		ddp_error_set(&error, DDP_ERROR_TIMEOUT, "waited %.0f s for "
			      "NCCL, and then over PMIx: %.300s; look there, "
			      "or choose a longer --timeout", waited,
			      why.text);
	nccl_fail(nccl, &error);
}

static void check_comm(struct nccl *nccl, ncclComm_t comm)
{
	int state = ddp_await_look(nccl->library, comm);
	struct ddp_error error;

	if (state == DDP_NCCL_SUCCESS || state == DDP_NCCL_IN_PROGRESS)
		return;
	ddp_nccl_set_error(&error, nccl->library, "what the ranks exchange",
			   state);
	nccl_fail(nccl, &error);
}

void nccl_look_for_errors(struct nccl *nccl)
{
	double now = ddp_clock_seconds();

	if (!nccl->connected || now - nccl->looked < seldom)
		return;
	nccl->looked = now;
	check_comm(nccl, nccl->buckets);
	check_comm(nccl, nccl->agreed);
}

void nccl_look(struct nccl *nccl, struct wait *wait)
{
	double now = ddp_clock_seconds(), timeout = nccl->collective->timeout;
	double passed = wait->clock > 0 ? now - wait->clock : 0;

	wait->clock = now;
	wait->waited += passed < stopped ? passed : stopped;
	nccl_look_for_errors(nccl);
	if (timeout > 0 && wait->waited >= timeout)
		end_late(nccl, wait->waited);
}

void nccl_finish(struct nccl *nccl, ncclComm_t comm, const char *call,
		 int result)
{
	double begin = ddp_clock_seconds();
	struct ddp_error error;

	if (result == DDP_NCCL_SUCCESS)
		return;
	if (result != DDP_NCCL_IN_PROGRESS) {
		ddp_nccl_set_error(&error, nccl->library, call, result);
		nccl_fail(nccl, &error);
	}
	if (ddp_await_comm(nccl->library, comm, call,
			   ddp_job_deadline(nccl->job, 0), &error) == 0)
		return;
	if (error.code == DDP_ERROR_TIMEOUT)
		end_late(nccl, ddp_clock_seconds() - begin);
	nccl_fail(nccl, &error);
}
