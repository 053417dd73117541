/* SPDX-License-Identifier: BSD-3-Clause */
/* Cuts the gradient into buckets and starts their all-reduces. */
#include <stdlib.h>

#include "bucket.h"
#include "collective.h"

int buckets_create(struct buckets *buckets, size_t count, size_t bytes)
{
	size_t first = BUCKET_FIRST_BYTES / sizeof(float);
	/* Whole cache lines: slices of two ranks share none. */
	size_t length = bytes / DEVICE_ALIGN * DEVICE_ALIGN / sizeof(float);
	size_t begin = 0;

	first = first < length ? first : length;
	buckets->list = calloc(count / length + 2, sizeof(*buckets->list));
	if (!buckets->list)
		return -1;
	buckets->count = 0;
	while (begin < count) {
		size_t most = begin == 0 ? first : length;
		size_t end = count - begin < most ? count : begin + most;

		buckets->list[buckets->count++] = (struct bucket){
			.begin = begin, .end = end
		};
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

static void start_bucket(struct buckets *buckets)
{
	struct collective *collective = buckets->collective;
	struct device *device = buckets->device;
	int event = buckets->started % DEVICE_EVENTS;
	struct bucket *bucket = &buckets->list[buckets->started++];

	device->table->record(device, event, QUEUE_COMPUTE);
	bucket->ticket = collective->table->start(collective, ALL_REDUCE,
						  bucket->begin,
						  bucket->end - bucket->begin,
						  FLOAT32, event);
}

void buckets_start_ready(struct buckets *buckets, size_t end)
{
	if (!buckets->overlap)
		return;
	while (buckets->started < buckets->count &&
	       buckets->list[buckets->started].end <= end)
		start_bucket(buckets);
	buckets->collective->table->poll(buckets->collective);
}

void buckets_finish(struct buckets *buckets)
{
	struct collective *collective = buckets->collective;

	while (buckets->started < buckets->count)
		start_bucket(buckets);
	for (int i = 0; i < buckets->count; i++)
		collective->table->wait(collective, buckets->list[i].ticket,
					QUEUE_COMPUTE);
	buckets->started = 0;
}
