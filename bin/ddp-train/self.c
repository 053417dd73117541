/* SPDX-License-Identifier: BSD-3-Clause */
/* The collective of one process alone. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collective.h"
#include "layout/error.h"

struct self {
	void *buffer;
	uint64_t started;
};

static int open_alone(struct collective *collective, struct ddp_error *error)
{
	(void)collective;
	(void)error;
	return 0;
}

static void close_alone(struct collective *collective)
{
	struct self *self = collective->state;

	if (self)
		free(self->buffer);
	free(self);
	collective->state = NULL;
}

static void *allocate_buffer(struct collective *collective,
			     struct device *device,
			     const struct collective_plan *plan,
			     struct ddp_error *error)
{
	struct self *self = calloc(1, sizeof(*self));

	(void)device;
	if (self)
		self->buffer = aligned_alloc(DEVICE_ALIGN, plan->bytes);
	if (!self || !self->buffer) {
		free(self);
		ddp_error_set(error, DDP_ERROR_SYSTEM, "no memory for %zu "
			      "bytes of parameters and gradients; train a "
			      "smaller model", plan->bytes);
		return NULL;
	}
	memset(self->buffer, 0, plan->bytes);
	collective->state = self;
	return self->buffer;
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
	return ++((struct self *)collective->state)->started;
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
