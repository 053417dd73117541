/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Buckets: contiguous ranges of the gradient, in the order in which it becomes
 * ready, each all-reduced as soon as it is; the first one small, so that
 * communication begins early (Li et al. 2020, PyTorch Distributed).
 */
#ifndef DDP_TRAIN_BUCKET_H
#define DDP_TRAIN_BUCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct collective;
struct device;

enum { BUCKET_FIRST_BYTES = 1 << 20 };

struct bucket {
	size_t begin, end;		/* floats of the gradient */
	uint64_t ticket;		/* of this step, once started */
};

struct buckets {
	struct collective *collective;
	struct device *device;
	bool overlap;			/* false: start none before finish() */
	struct bucket *list;
	int count;
	int started;			/* of this step */
};

/*
 * Cut floats 0 .. count - 1, with which the collective's buffer begins, into
 * buckets of so many bytes, rounded down to a multiple of DEVICE_ALIGN (at
 * least one of them). The first bucket has at most BUCKET_FIRST_BYTES. The
 * caller sets the other fields. Returns 0, or -1 without memory.
 */
int buckets_create(struct buckets *buckets, size_t count, size_t bytes);
void buckets_destroy(struct buckets *buckets);

/* The most floats of one bucket. */
size_t buckets_find_largest(const struct buckets *buckets);

/*
 * Floats 0 .. end - 1 are final once all work in the queue is done: start the
 * buckets below end, and poll.
 */
void buckets_start_ready(struct buckets *buckets, size_t end);

/* Start the other buckets and wait for all; then a new step may begin. */
void buckets_finish(struct buckets *buckets);

#endif
