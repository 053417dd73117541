/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ranks tell each other records of the host: over PMIx before they have
 * communicators, and then by a small all-gather in a queue of its own.
 */
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "ddp.h"
#include "nccl/await.h"
#include "nccl/ranks.h"
#include "util/error.h"

enum { WORD = 4 };		/* bytes of what NCCL gathers */

static void gather_by_pmix(struct nccl *nccl, const char *mine, size_t bytes,
			   char *all)
{
	struct ddp_error error;

	if (ddp_job_allgather(nccl->job, mine, bytes, all, &error) < 0)
		nccl_fail(nccl, &error);
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
		nccl_look(nccl, &wait);
		ddp_await_pause(&round);
	}
	if (come > 0)
		return;
	device->table->check(device, &error);
	nccl_fail(nccl, &error);
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
void nccl_agree(struct collective *collective, const void *mine, void *all,
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
