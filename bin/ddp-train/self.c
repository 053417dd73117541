/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collective.h"
#include "layout/error.h"

struct self {
	void *buffer;
	uint64_t started;
};

static int self_open(struct collective *collective, struct ddp_error *error)
{
	(void)collective;
	(void)error;
	return 0;
}

static void self_close(struct collective *collective)
{
	struct self *self = collective->state;

	if (self)
		free(self->buffer);
	free(self);
	collective->state = NULL;
}

static void *self_alloc(struct collective *collective, struct device *device,
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

/* Alone, a rank has every sum as soon as it has the values. */
static uint64_t self_start(struct collective *collective,
			   enum collective_op op, size_t offset, size_t count,
			   enum collective_type type, int event)
{
	(void)op;
	(void)offset;
	(void)count;
	(void)type;
	(void)event;
	return ++((struct self *)collective->state)->started;
}

static void self_poll(struct collective *collective)
{
	(void)collective;
}

static void self_wait(struct collective *collective, uint64_t ticket,
		      enum device_queue queue)
{
	(void)collective;
	(void)ticket;
	(void)queue;
}

static void self_agree(struct collective *collective, const void *mine,
		       void *all, size_t bytes)
{
	(void)collective;
	memcpy(all, mine, bytes);
}

static void self_abort(struct collective *collective, const char *text)
{
	(void)collective;
	fprintf(stderr, "ddp-train: %s\n", text);
	exit(1);
}

const struct collective_table collective_self = {
	.abi = COLLECTIVE_ABI,
	.name = "self",
	.open = self_open,
	.close = self_close,
	.alloc = self_alloc,
	.start = self_start,
	.poll = self_poll,
	.wait = self_wait,
	.agree = self_agree,
	.abort = self_abort
};
