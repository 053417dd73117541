/* SPDX-License-Identifier: BSD-3-Clause */
/* Cuts the gradient into buckets and starts what the ranks do with them. */
#include <stdlib.h>

#include "collective.h"
#include "step/bucket.h"

size_t collective_find_slice(size_t count, int rank, int size, size_t *begin)
{
	size_t ranks = (size_t)size;
	size_t length = count / ranks + (count % ranks > 0);

	length += (DEVICE_BLOCK - length % DEVICE_BLOCK) % DEVICE_BLOCK;
	/* Compare so that rank * length cannot overflow. */
	if (length == 0 || (size_t)rank > (count - 1) / length) {
		*begin = count;
		return 0;
	}
	*begin = (size_t)rank * length;
	return count - *begin < length ? count - *begin : length;
}

struct range buckets_find_slice(const struct buckets *buckets, int i, int rank)
{
	const struct bucket *bucket = &buckets->list[i];
	struct range slice;
	size_t count = collective_find_slice(bucket->end - bucket->begin, rank,
					     buckets->collective->size,
					     &slice.begin);

	slice.begin += bucket->begin;
	slice.end = slice.begin + count;
	return slice;
}

int buckets_find(const struct buckets *buckets, size_t value)
{
	int low = 0, high = buckets->count - 1;

	while (low < high) {
		int middle = low + (high - low) / 2;

		if (buckets->list[middle].end <= value)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct range buckets_intersect(struct range a, struct range b)
{
	return (struct range){ a.begin > b.begin ? a.begin : b.begin,
			       a.end < b.end ? a.end : b.end };
}

static void choose_own(struct buckets *buckets, int i)
{
	struct bucket *bucket = &buckets->list[i];

	bucket->own = (struct range){ bucket->begin, bucket->end };
	if (buckets->sharded)
		bucket->own = buckets_find_slice(buckets, i,
						 buckets->collective->rank);
	bucket->kept = buckets->kept;
	buckets->kept += bucket->own.end - bucket->own.begin;
}

/* Returns the number of values of a bucket of so many bytes. */
static size_t count_values(const struct buckets *buckets, size_t bytes)
{
	size_t ranks = buckets->sharded ? (size_t)buckets->collective->size : 1;
	size_t unit = ranks * DEVICE_BLOCK;
	size_t units = bytes / device_type_bytes(buckets->type) / unit;

	return units > 0 ? units * unit : unit;
}

int buckets_create(struct buckets *buckets, size_t count, size_t bytes)
{
	size_t first = count_values(buckets, BUCKET_FIRST_BYTES);
	size_t length = count_values(buckets, bytes);
	size_t begin = 0;

	first = first < length ? first : length;
	buckets->list = calloc(count / length + 2, sizeof(*buckets->list));
	if (!buckets->list)
		return -1;
	buckets->count = 0;
	buckets->kept = 0;
	while (begin < count) {
		size_t most = begin == 0 ? first : length;
		size_t end = count - begin < most ? count : begin + most;

		buckets->list[buckets->count] = (struct bucket){
			.begin = begin, .end = end
		};
		choose_own(buckets, buckets->count++);
		begin = end;
	}
	return 0;
}

void buckets_destroy(struct buckets *buckets)
{
	free(buckets->list);
	buckets->list = NULL;
	buckets->count = 0;
}

size_t buckets_find_largest(const struct buckets *buckets)
{
	size_t largest = 0;

	for (int i = 0; i < buckets->count; i++) {
		const struct bucket *bucket = &buckets->list[i];

		if (bucket->end - bucket->begin > largest)
			largest = bucket->end - bucket->begin;
	}
	return largest;
}

/* Starts `op` on bucket i of values that begin at `offset` in the buffer. */
static void start(struct buckets *buckets, int i, enum collective_op op,
		  size_t offset, enum device_type type)
{
	struct collective *collective = buckets->collective;
	struct device *device = buckets->device;
	struct bucket *bucket = &buckets->list[i];
	int event = i % BUCKET_EVENTS;

	device->table->record(device, event, QUEUE_COMPUTE);
	bucket->ticket = collective->table->start(collective, op,
						  offset + bucket->begin,
						  bucket->end - bucket->begin,
						  type, event);
}

static void start_next(struct buckets *buckets)
{
	start(buckets, buckets->started++,
	      buckets->sharded ? REDUCE_SCATTER : ALL_REDUCE, 0,
	      buckets->type);
}

void buckets_start_ready(struct buckets *buckets, size_t end)
{
	if (!buckets->overlap)
		return;
	while (buckets->started < buckets->count &&
	       buckets->list[buckets->started].end <= end)
		start_next(buckets);
	buckets->collective->table->poll(buckets->collective);
}

void buckets_finish(struct buckets *buckets)
{
	while (buckets->started < buckets->count)
		start_next(buckets);
	buckets_wait(buckets);
	buckets->started = 0;
}

void buckets_start_gather(struct buckets *buckets, int i, size_t offset,
			  enum device_type type)
{
	start(buckets, i, ALL_GATHER, offset, type);
	buckets->collective->table->poll(buckets->collective);
}

void buckets_wait(struct buckets *buckets)
{
	struct collective *collective = buckets->collective;

	for (int i = 0; i < buckets->count; i++)
		collective->table->wait(collective, buckets->list[i].ticket,
					QUEUE_COMPUTE);
}
