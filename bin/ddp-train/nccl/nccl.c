/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The collective over NCCL: its job, its communicators, its tickets, and the
 * end of a run whose communicators have failed, or whose ranks do not come.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ddp.h"
#include "job/job.h"
#include "nccl/comm.h"
#include "nccl/ranks.h"
#include "run/world.h"
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

/* Ends the run: aborts the communicators, then all ranks, with a sentence. */
static _Noreturn void fail(struct nccl *nccl, const struct ddp_error *error)
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
	fail(nccl, &error);
}

static void check_comm(struct nccl *nccl, ncclComm_t comm)
{
	int state = ddp_await_look(nccl->library, comm);
	struct ddp_error error;

	if (state == DDP_NCCL_SUCCESS || state == DDP_NCCL_IN_PROGRESS)
		return;
	ddp_nccl_set_error(&error, nccl->library, "what the ranks exchange",
			   state);
	fail(nccl, &error);
}

/* Asks NCCL for errors, now and then. Ends the run if there is one. */
static void look_for_errors(struct nccl *nccl)
{
	double now = ddp_clock_seconds();

	if (!nccl->connected || now - nccl->looked < seldom)
		return;
	nccl->looked = now;
	check_comm(nccl, nccl->buckets);
	check_comm(nccl, nccl->agreed);
}

/*
 * One look in a wait for other ranks: ends the run if a communicator has
 * failed, or once the wait has lasted as long as the timeout.
 */
static void look(struct nccl *nccl, struct wait *wait)
{
	double now = ddp_clock_seconds(), timeout = nccl->collective->timeout;
	double passed = wait->clock > 0 ? now - wait->clock : 0;

	wait->clock = now;
	wait->waited += passed < stopped ? passed : stopped;
	look_for_errors(nccl);
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
		fail(nccl, &error);
	}
	if (ddp_await_comm(nccl->library, comm, call,
			   ddp_job_deadline(nccl->job, 0), &error) == 0)
		return;
	if (error.code == DDP_ERROR_TIMEOUT)
		end_late(nccl, ddp_clock_seconds() - begin);
	fail(nccl, &error);
}

/*
 * ---- records of the host: over PMIx before the ranks have communicators, and
 * then by a small all-gather in a queue of its own
 */

enum { WORD = 4 };		/* bytes of what NCCL gathers */

static void gather_by_pmix(struct nccl *nccl, const char *mine, size_t bytes,
			   char *all)
{
	struct ddp_error error;

	if (ddp_job_allgather(nccl->job, mine, bytes, all, &error) < 0)
		fail(nccl, &error);
}

/* Wait on the host until what the queue was asked for is done. */
static void await_records(struct nccl *nccl)
{
	struct device *device = nccl->device;
	struct wait wait = { 0 };
	struct ddp_error error;
	unsigned int round = 0;
	int come;

	while ((come = device->table->query(device, AGREE_EVENT)) == 0) {
		look(nccl, &wait);
		ddp_await_pause(&round);
	}
	if (come > 0)
		return;
	device->table->check(device, &error);
	fail(nccl, &error);
}

/* Records of up to COLLECTIVE_RECORD bytes. */
static void gather_by_nccl(struct nccl *nccl, const char *mine, size_t bytes,
			   char *all)
{
	const struct collective *collective = nccl->collective;
	struct device *device = nccl->device;
	size_t words = (bytes + WORD - 1) / WORD, stride = words * WORD;
	char *own = nccl->records + (size_t)collective->rank * stride;

	device->table->copy(device, QUEUE_AGREE, own, mine, bytes);
	nccl_finish(nccl, nccl->agreed, "ncclAllGather",
		    nccl->calls.all_gather(own, nccl->records, words,
					   DDP_NCCL_INT32, nccl->agreed,
					   device->table->stream(device,
								 QUEUE_AGREE)));
	device->table->copy(device, QUEUE_AGREE, nccl->staging, nccl->records,
			    stride * (size_t)collective->size);
	device->table->record(device, AGREE_EVENT, QUEUE_AGREE);
	await_records(nccl);
	for (size_t rank = 0; rank < (size_t)collective->size; rank++)
		memcpy(all + rank * bytes, nccl->staging + rank * stride,
		       bytes);
}

/* Exchanges in parts, as both ways have a longest record. */
static void agree(struct collective *collective, const void *mine, void *all,
		  size_t bytes)
{
	struct nccl *nccl = collective->state;
	size_t ranks = (size_t)collective->size;
	size_t most = nccl->connected ? COLLECTIVE_RECORD : DDP_RECORD_MAX;
	size_t room = bytes < most ? bytes : most;
	char *part = malloc(ranks * room);

	if (!part)
		collective->table->abort(collective, "no memory for what the "
					 "ranks tell each other");
	for (size_t at = 0; at < bytes; at += most) {
		size_t length = bytes - at < most ? bytes - at : most;

		if (nccl->connected)
			gather_by_nccl(nccl, (const char *)mine + at, length,
				       part);
		else
			gather_by_pmix(nccl, (const char *)mine + at, length,
				       part);
		for (size_t rank = 0; rank < ranks; rank++)
			memcpy((char *)all + rank * bytes + at,
			       part + rank * length, length);
	}
	free(part);
}

/* ---- job, communicators and tickets */

/* A bad argument of a call of libddp, or a peer's, is not a bad option. */
static int refuse(struct ddp_error *error)
{
	if (error->code == DDP_ERROR_ARGUMENT || error->code == DDP_ERROR_PEER)
		error->code = DDP_ERROR_SYSTEM;
	return -1;
}

/* The ranks of the node that has the most. */
static int count_most(const struct ddp_job *job)
{
	uint32_t most = 0;

	for (uint32_t rank = 0; rank < ddp_job_size(job); rank++)
		if (ddp_job_local_rank_of(job, rank) >= most)
			most = ddp_job_local_rank_of(job, rank) + 1;
	return (int)most;
}

static int open_job(struct collective *collective, struct ddp_error *error)
{
	const struct ddp_job_options options = {
		.size = sizeof(options),
		.timeout_ms = collective_find_timeout(collective)
	};
	struct nccl *nccl = calloc(1, sizeof(*nccl));

	if (!nccl)
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "no memory for "
				     "the ranks of NCCL");
	nccl->collective = collective;
	nccl->job = ddp_job_create(&options, error);
	if (!nccl->job) {
		free(nccl);
		return refuse(error);
	}
	collective->state = nccl;
	collective->rank = (int)ddp_job_rank(nccl->job);
	collective->size = (int)ddp_job_size(nccl->job);
	collective->nodes = (int)ddp_job_node_count(nccl->job);
	collective->most = count_most(nccl->job);
	collective->place = (int)ddp_job_local_rank(nccl->job) + 1;
	return 0;
}

/* Cuts this rank's name off the text, as ddp_abort() adds it for every rank. */
static void abort_job(struct collective *collective, const char *text)
{
	struct nccl *nccl = collective->state;
	const char *end = strstr(text, ": ");
	char own[32];

	snprintf(own, sizeof(own), "rank %d on ", collective->rank);
	if (end && strncmp(text, own, strlen(own)) == 0)
		text = end + 2;
	ddp_abort(nccl->job, 1, "%s", text);
}

static int allocate(struct nccl *nccl, const struct collective_plan *plan,
		    struct ddp_error *error)
{
	const struct collective *collective = nccl->collective;
	struct device *device = nccl->device;

	nccl->buffer = device->table->alloc(device, plan->bytes, error);
	if (!nccl->buffer)
		return -1;
	nccl->records = device->table->alloc(device, COLLECTIVE_RECORD *
					     (size_t)collective->size, error);
	if (!nccl->records)
		return -1;
	if (!nccl->deterministic)
		return 0;
	nccl->parts = device->table->alloc(device, nccl_count_parts(
					   collective, plan->largest), error);
	return nccl->parts ? 0 : -1;
}

/* NCCL allocates where ddp-train has taken what it needs for itself. */
static int refuse_comm(struct ddp_error *error)
{
	const struct ddp_error reason = *error;

	if (error->code != DDP_ERROR_NCCL ||
	    error->native != DDP_NCCL_CUDA_ERROR)
		return refuse(error);
	ddp_error_set(error, DDP_ERROR_NCCL, "%.300s; if the GPU's memory is "
		      "full, choose a smaller --batch or --recompute on",
		      reason.text);
	return ddp_error_set_native(error, DDP_NCCL_CUDA_ERROR);
}

static int create_comm(struct nccl *nccl, const ncclConfig_t *config,
		       ncclComm_t *comm, struct ddp_error *error)
{
	const struct ddp_nccl_options options = {
		.size = sizeof(options), .config = config,
		.share_gpu = nccl->collective->share_gpu
	};
	struct ddp_nccl_comms comms;

	if (ddp_nccl_create(nccl->job, DDP_GROUP_WORLD, &options, &comms,
			    error) < 0)
		return refuse_comm(error);
	*comm = comms.world;
	return 0;
}

static int look_up(struct nccl *nccl, struct ddp_error *error)
{
	nccl->library = ddp_nccl_get(error);
	if (!nccl->library)
		return -1;
	return ddp_nccl_find_calls(nccl->library, &nccl->calls, error);
}

/* One rank's communicator was not made, so the others' are of no use. */
static void abandon(struct nccl *nccl)
{
	ddp_nccl_abort(nccl->buckets, NULL);
	ddp_nccl_abort(nccl->agreed, NULL);
	nccl->buckets = nccl->agreed = NULL;
}

/*
 * NCCL's own failure is known to its rank alone: before the ranks exchange
 * anything else, all hear of it.
 */
static int connect_ranks(struct nccl *nccl, struct ddp_error *error)
{
	/* The records of agree() are short: one block of threads does it. */
	static const ncclConfig_t small = {
		.size = sizeof(small), .magic = DDP_NCCL_CONFIG_MAGIC,
		.version = DDP_NCCL_CONFIG_CTAS,
		.cgaClusterSize = DDP_NCCL_UNDEFINED, .minCTAs = 1,
		.maxCTAs = 1
	};
	struct ddp_error mine = { 0 };

	create_comm(nccl, NULL, &nccl->buckets, &mine);
	if (world_share_errors(nccl->collective, &mine, error) < 0)
		return -1;
	create_comm(nccl, &small, &nccl->agreed, &mine);
	if (world_share_errors(nccl->collective, &mine, error) < 0)
		return -1;
	look_up(nccl, &mine);
	return world_share_errors(nccl->collective, &mine, error);
}

static void disconnect(struct nccl *nccl)
{
	int32_t timeout = collective_find_timeout(nccl->collective);

	nccl->connected = false;
	ddp_nccl_destroy(nccl->buckets, timeout, NULL);
	ddp_nccl_destroy(nccl->agreed, timeout, NULL);
	nccl->buckets = nccl->agreed = NULL;
}

/* Allocates and connects. If one rank fails, all do before they go on. */
static void *allocate_buffer(struct collective *collective,
			     struct device *device,
			     const struct collective_plan *plan,
			     struct ddp_error *error)
{
	struct nccl *nccl = collective->state;
	struct ddp_error mine = { 0 };

	nccl->device = device;
	nccl->staging = plan->staging;
	nccl->deterministic = plan->deterministic;
	allocate(nccl, plan, &mine);
	if (world_share_errors(collective, &mine, error) < 0)
		return NULL;
	if (connect_ranks(nccl, error) < 0) {
		abandon(nccl);
		return NULL;
	}
	nccl->connected = true;
	return nccl->buffer;
}

/*
 * The host's view of the tickets, which it needs for the deadline: that of a
 * ticket begins when this rank's values are ready and the ticket before it is
 * done. Returns 0, or -1 if work of the device has failed.
 */
static int look_at_tickets(struct nccl *nccl)
{
	struct device *device = nccl->device;
	int come = 1;

	look_for_errors(nccl);
	while (come > 0 && nccl->done < nccl->started) {
		uint64_t next = nccl->done + 1;

		come = device->table->query(device, nccl_find_event(
					    next, TICKET_DONE));
		if (come > 0) {
			nccl->done = next;
			nccl->wait = (struct wait){ 0 };
		} else if (come == 0 && device->table->query(
				device, nccl_find_event(next, TICKET_READY))) {
			look(nccl, &nccl->wait);
		}
	}
	return come < 0 ? -1 : 0;
}

static void poll_tickets(struct collective *collective)
{
	look_at_tickets(collective->state);
}

static uint64_t start_ticket(struct collective *collective,
			     enum collective_op op, size_t offset, size_t count,
			     enum device_type type, int event)
{
	struct nccl *nccl = collective->state;
	struct device *device = nccl->device;
	const struct device_table *table = device->table;
	uint64_t number = nccl->started + 1;
	unsigned int round = 0;

	/* Its events were an older ticket's, which must have ended. */
	while (number - nccl->done > TICKETS && look_at_tickets(nccl) == 0)
		ddp_await_pause(&round);
	table->wait(device, event, QUEUE_COMM);
	table->record(device, nccl_find_event(number, TICKET_READY),
		      QUEUE_COMM);
	nccl_move(nccl, op, value_at(type, nccl->buffer, offset), count, type);
	table->record(device, nccl_find_event(number, TICKET_DONE),
		      QUEUE_COMM);
	nccl->started = number;
	return number;
}

/* The event of an old ticket may be a later one's, which comes later. */
static void wait_for_ticket(struct collective *collective, uint64_t ticket,
			    enum device_queue queue)
{
	struct nccl *nccl = collective->state;
	struct device *device = nccl->device;

	device->table->wait(device, nccl_find_event(ticket, TICKET_DONE),
			    queue);
}

static void close_job(struct collective *collective)
{
	struct nccl *nccl = collective->state;

	disconnect(nccl);
	ddp_job_destroy(nccl->job);
	free(nccl);
	collective->state = NULL;
}

const struct collective_table collective_nccl = {
	.abi = COLLECTIVE_ABI,
	.name = "nccl",
	.open = open_job,
	.close = close_job,
	.alloc = allocate_buffer,
	.start = start_ticket,
	.poll = poll_tickets,
	.wait = wait_for_ticket,
	.agree = agree,
	.abort = abort_job
};
