/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "siblings.h"

#include <errno.h>
#include <semaphore.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define SLICES_PER_S 20		/* so soon is a sibling's failure noticed */

struct ddp_siblings {
	uint32_t count;
	atomic_uint arrived, said;
	atomic_bool failed;
	sem_t gates[DDP_GATE_COUNT];
	alignas(max_align_t) unsigned char memory[];
};

struct ddp_siblings *ddp_siblings_create(uint32_t count, size_t size,
					 struct ddp_error *error)
{
	struct ddp_siblings *siblings;
	int i;

	siblings = mmap(NULL, sizeof(*siblings) + size,
			PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (siblings == MAP_FAILED) {
		ddp_error_set(error, DDP_ERROR_SYSTEM, "no memory for %u tasks "
			      "to share: %s", count, strerror(errno));
		return NULL;
	}
	siblings->count = count;
	for (i = 0; i < DDP_GATE_COUNT; i++)
		sem_init(&siblings->gates[i], 1, 0);
	return siblings;
}

void *ddp_siblings_memory(struct ddp_siblings *siblings)
{
	return siblings->memory;
}

uint32_t ddp_siblings_count(const struct ddp_siblings *siblings)
{
	return siblings->count;
}

void ddp_siblings_arrive(struct ddp_siblings *siblings)
{
	atomic_fetch_add(&siblings->arrived, 1);
}

bool ddp_siblings_say(struct ddp_siblings *siblings)
{
	return atomic_fetch_add(&siblings->said, 1) + 1 == siblings->count;
}

void ddp_siblings_open(struct ddp_siblings *siblings, enum ddp_gate gate)
{
	uint32_t i;

	for (i = 0; i < siblings->count; i++)
		sem_post(&siblings->gates[gate]);
}

/* A slice of the time: 0, or -1 if the gate is still closed. */
static int slice_wait(sem_t *gate)
{
	struct timespec until;
	int rc;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += 1000000000 / SLICES_PER_S;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	do
		rc = sem_timedwait(gate, &until);
	while (rc < 0 && errno == EINTR);
	return rc;
}

int ddp_siblings_wait(struct ddp_siblings *siblings, enum ddp_gate gate,
		      const char *what, struct ddp_error *error)
{
	int slices = 0, rc;

	do
		rc = slice_wait(&siblings->gates[gate]);
	while (rc < 0 && !ddp_siblings_failed(siblings) &&
	       ++slices < DDP_SIBLINGS_WAIT_S * SLICES_PER_S);
	if (ddp_siblings_failed(siblings))
		return 1;
	if (rc == 0)
		return 0;
	return ddp_error_set(error, DDP_ERROR_SYSTEM, "%u of this node's %u "
			     "tasks have come and %u are ready, but %s has "
			     "taken longer than %d s: try again when the node "
			     "is less busy, or with --ddp-gpus=off "
			     "--ddp-cpus=off", atomic_load(&siblings->arrived),
			     siblings->count, atomic_load(&siblings->said),
			     what, DDP_SIBLINGS_WAIT_S);
}

bool ddp_siblings_fail(struct ddp_siblings *siblings)
{
	return !atomic_exchange(&siblings->failed, true);
}

bool ddp_siblings_failed(struct ddp_siblings *siblings)
{
	return atomic_load(&siblings->failed);
}
