/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting for another thread, until a deadline. */
#define _GNU_SOURCE
#include "job/wait.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "util/clock.h"

void ddp_wait_create_cond(pthread_cond_t *cond)
{
	pthread_condattr_t attributes;

	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(cond, &attributes);
	pthread_condattr_destroy(&attributes);
}

bool ddp_wait_cond(pthread_cond_t *cond, pthread_mutex_t *lock,
		   int64_t deadline)
{
	struct timespec until = {
		.tv_sec = (time_t)(deadline / 1000),
		.tv_nsec = (long)(deadline % 1000) * 1000000,
	};

	if (deadline == DDP_CLOCK_NEVER)
		return pthread_cond_wait(cond, lock) == 0;
	return pthread_cond_timedwait(cond, lock, &until) != ETIMEDOUT;
}

struct ddp_wait *ddp_wait_create(void)
{
	struct ddp_wait *wait = calloc(1, sizeof(*wait));

	if (!wait)
		return NULL;
	pthread_mutex_init(&wait->lock, NULL);
	ddp_wait_create_cond(&wait->ended);
	wait->owners = 2;
	return wait;
}

/* Give up one share, with the lock held. */
static void drop_locked(struct ddp_wait *wait)
{
	bool last = --wait->owners == 0;

	pthread_mutex_unlock(&wait->lock);
	if (!last)
		return;
	pthread_cond_destroy(&wait->ended);
	pthread_mutex_destroy(&wait->lock);
	free(wait->bytes);
	free(wait->question);
	free(wait);
}

void ddp_wait_end(struct ddp_wait *wait, int status, int type,
		  const void *bytes, size_t size)
{
	void *copy = bytes ? malloc(size > 0 ? size : 1) : NULL;

	if (copy)
		memcpy(copy, bytes, size);
	pthread_mutex_lock(&wait->lock);
	wait->status = status;
	wait->type = type;
	wait->bytes = copy;
	wait->size = size;
	wait->done = true;
	pthread_cond_signal(&wait->ended);
	drop_locked(wait);
}

bool ddp_wait_until(struct ddp_wait *wait, int64_t deadline)
{
	bool in_time = true, done;

	pthread_mutex_lock(&wait->lock);
	while (!wait->done && in_time)
		in_time = ddp_wait_cond(&wait->ended, &wait->lock, deadline);
	done = wait->done;
	pthread_mutex_unlock(&wait->lock);
	return done;
}

void ddp_wait_drop(struct ddp_wait *wait)
{
	pthread_mutex_lock(&wait->lock);
	drop_locked(wait);
}
