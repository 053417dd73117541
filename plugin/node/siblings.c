/* SPDX-License-Identifier: BSD-3-Clause */
/* How the tasks of one node wait for each other before their programs run. */
#define _GNU_SOURCE
#include "node/siblings.h"

#include <errno.h>
#include <time.h>

enum { SLICES_PER_S = 20 };	/* a sibling's failure is noticed this soon */

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

/* Wait for a slice of the time. Returns 0, or -1 if the gate is closed. */
static int wait_slice(sem_t *gate)
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
		rc = wait_slice(&siblings->gates[gate]);
	while (rc < 0 && !ddp_siblings_failed(siblings) &&
	       ++slices < DDP_SIBLINGS_WAIT_S * SLICES_PER_S);
	if (ddp_siblings_failed(siblings))
		return 1;
	if (rc == 0)
		return 0;
	return ddp_error_set(error, DDP_ERROR_SYSTEM, "%u of this node's %u "
			     "tasks have come and %u are ready, but %s has "
			     "taken longer than %d s; try again when the node "
			     "is less busy, or use --ddp-gpus=off "
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
