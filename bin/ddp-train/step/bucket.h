/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Buckets: contiguous ranges of the gradient, in the order in which it becomes
 * ready, each all-reduced as soon as it is; the first one small, so that
 * communication begins early (Li et al. 2020, PyTorch Distributed).
 *
 * Sharded (Rajbhandari et al. 2020, ZeRO-1), a bucket is reduce-scattered: each
 * rank has the sum of its slice, updates the parameters there, and all gather
 * these. What only the update needs has memory for the slices of a rank alone,
 * one after the other.
 */
#ifndef DDP_TRAIN_BUCKET_H
#define DDP_TRAIN_BUCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device.h"

struct collective;

/*
 * The device's events are divided: the first are the buckets', the next the
 * trainer's own (trainer.h), the last the collective's.
 */
enum { BUCKET_EVENTS = 24, STEP_EVENTS = BUCKET_EVENTS,
       COLLECTIVE_EVENTS = STEP_EVENTS + 24 };

enum { BUCKET_FIRST_BYTES = 1 << 20 };

struct range {
	size_t begin, end;		/* values begin .. end - 1 */
};

struct bucket {
	size_t begin, end;		/* values of the gradient */
	struct range own;		/* which of them this rank updates: its
					   slice if sharded, else all */
	size_t kept;			/* where own begins among all that this
					   rank updates */
	uint64_t ticket;		/* of this step, once started */
};

struct buckets {
	struct collective *collective;
	struct device *device;
	enum device_type type;		/* of the gradient */
	bool sharded;
	bool overlap;			/* false: start none before finish() */
	struct bucket *list;
	int count;
	size_t kept;			/* values that this rank updates */
	int started;			/* of this step */
};

/*
 * Cut values 0 .. count - 1, with which the collective's buffer begins, into
 * buckets of so many bytes, the first one of BUCKET_FIRST_BYTES if that is
 * less. Both are rounded down to whole blocks (DEVICE_BLOCK values), and if
 * sharded to equally many of each rank, but never to none; the last bucket has
 * the rest. The caller has set collective, type and sharded, and sets the other
 * fields. Returns 0, or -1 without memory.
 */
int buckets_create(struct buckets *buckets, size_t count, size_t bytes);
void buckets_destroy(struct buckets *buckets);

/* The slice of a rank in bucket i: which values of the gradient. */
struct range buckets_find_slice(const struct buckets *buckets, int i,
				int rank);

/*
 * Returns the place of value `value`, one of own, among the values that this
 * rank updates.
 */
static inline size_t bucket_find_kept(const struct bucket *bucket, size_t value)
{
	return bucket->kept + value - bucket->own.begin;
}

/* The bucket that has a value, one of those that were cut. */
int buckets_find(const struct buckets *buckets, size_t value);

/* The values of both; end is not above begin if there are none. */
struct range buckets_intersect(struct range a, struct range b);

/* The most values of one bucket. */
size_t buckets_find_largest(const struct buckets *buckets);

/*
 * Values 0 .. end - 1 are final once all work in the queue is done: start the
 * buckets below end, and poll.
 */
void buckets_start_ready(struct buckets *buckets, size_t end);

/* Start the other buckets and wait for all. */
void buckets_finish(struct buckets *buckets);

/*
 * Gives all ranks the slices of bucket i of the values of a type in the
 * collective's buffer from value `offset` on. It starts once all work in the
 * queue is done. Call it after buckets_finish().
 */
void buckets_start_gather(struct buckets *buckets, int i, size_t offset,
			  enum device_type type);

/* Wait for what was started of each bucket. */
void buckets_wait(struct buckets *buckets);

#endif
