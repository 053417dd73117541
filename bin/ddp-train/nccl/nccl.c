/* SPDX-License-Identifier: BSD-3-Clause */
/* The collective over NCCL: its job, its communicators, its tickets. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ddp.h"
#include "nccl/await.h"
#include "nccl/ranks.h"
#include "run/world.h"
#include "util/error.h"

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

	nccl_look_for_errors(nccl);
	while (come > 0 && nccl->done < nccl->started) {
		uint64_t next = nccl->done + 1;

		come = device->table->query(device, nccl_find_event(
					    next, TICKET_DONE));
		if (come > 0) {
			nccl->done = next;
			nccl->wait = (struct wait){ 0 };
		} else if (come == 0 && device->table->query(
				device, nccl_find_event(next, TICKET_READY))) {
			nccl_look(nccl, &nccl->wait);
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
	.agree = nccl_agree,
	.abort = abort_job
};
