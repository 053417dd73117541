/* SPDX-License-Identifier: BSD-3-Clause */
/* The collective of one process alone. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collective.h"

static int open_alone(struct collective *collective, struct ddp_error *error)
{
	(void)collective;
	(void)error;
	return 0;
}

static void close_alone(struct collective *collective)
{
	collective->state = NULL;
}

static void *allocate_buffer(struct collective *collective,
			     struct device *device,
			     const struct collective_plan *plan,
			     struct ddp_error *error)
{
	(void)collective;
	return device->table->alloc(device, plan->bytes, error);
}

/* The sum over one rank is its own value: there is nothing to do. */
static uint64_t start_ticket(struct collective *collective,
			     enum collective_op op, size_t offset, size_t count,
			     enum device_type type, int event)
{
	(void)op;
	(void)offset;
	(void)count;
	(void)type;
	(void)event;
	/* A count of tickets is all the state there is. */
	collective->state = (char *)collective->state + 1;
	return (uintptr_t)collective->state;
}

static void poll_tickets(struct collective *collective)
{
	(void)collective;
}

static void wait_for_ticket(struct collective *collective, uint64_t ticket,
			    enum device_queue queue)
{
	(void)collective;
	(void)ticket;
	(void)queue;
}

static void agree(struct collective *collective, const void *mine,
		  void *all, size_t bytes)
{
	(void)collective;
	memcpy(all, mine, bytes);
}

static void abort_alone(struct collective *collective, const char *text)
{
	(void)collective;
	fprintf(stderr, "ddp-train: %s\n", text);
	exit(1);
}

const struct collective_table collective_self = {
	.abi = COLLECTIVE_ABI,
	.name = "self",
	.open = open_alone,
	.close = close_alone,
	.alloc = allocate_buffer,
	.start = start_ticket,
	.poll = poll_tickets,
	.wait = wait_for_ticket,
	.agree = agree,
	.abort = abort_alone
};
