/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting for another thread until a deadline, also for one that never ends. */
#define _GNU_SOURCE
#include "job/wait.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
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

/* ---- calls that may never return, in threads that are then left behind */

struct ddp_worker {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t asked, ended;
	bool busy, quits;
	bool left;		/* nobody waits: all is the thread's to free */
	void (*work)(void *state);
	void *state;
};

static void free_worker(struct ddp_worker *worker)
{
	pthread_cond_destroy(&worker->ended);
	pthread_cond_destroy(&worker->asked);
	pthread_mutex_destroy(&worker->lock);
	free(worker);
}

static void *do_work(void *argument)
{
	struct ddp_worker *worker = argument;

	pthread_mutex_lock(&worker->lock);
	while (!worker->left) {
		while (!worker->busy && !worker->quits)
			pthread_cond_wait(&worker->asked, &worker->lock);
		if (worker->quits)
			break;
		pthread_mutex_unlock(&worker->lock);
		worker->work(worker->state);
		pthread_mutex_lock(&worker->lock);
		worker->busy = false;
		pthread_cond_signal(&worker->ended);
	}
	pthread_mutex_unlock(&worker->lock);
	if (worker->left) {
		free(worker->state);
		free_worker(worker);
	}
	return NULL;
}

struct ddp_worker *ddp_worker_create(void)
{
	struct ddp_worker *worker = calloc(1, sizeof(*worker));
	sigset_t all, before;
	int result;

	if (!worker)
		return NULL;
	pthread_mutex_init(&worker->lock, NULL);
	pthread_cond_init(&worker->asked, NULL);
	ddp_wait_create_cond(&worker->ended);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	result = pthread_create(&worker->thread, NULL, do_work, worker);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (result == 0)
		return worker;
	free_worker(worker);
	return NULL;
}

void ddp_worker_destroy(struct ddp_worker *worker)
{
	if (!worker)
		return;
	pthread_mutex_lock(&worker->lock);
	worker->quits = true;
	pthread_cond_signal(&worker->asked);
	pthread_mutex_unlock(&worker->lock);
	pthread_join(worker->thread, NULL);
	free_worker(worker);
}

int ddp_worker_run(struct ddp_worker *worker, void (*work)(void *state),
		   void *state, int64_t deadline)
{
	bool left, in_time = true;

	pthread_mutex_lock(&worker->lock);
	worker->work = work;
	worker->state = state;
	worker->busy = true;
	pthread_cond_signal(&worker->asked);
	while (worker->busy && in_time)
		in_time = ddp_wait_cond(&worker->ended, &worker->lock,
					deadline);
	left = worker->left = worker->busy;
	if (left)
		pthread_detach(worker->thread);
	pthread_mutex_unlock(&worker->lock);
	return left ? -1 : 0;
}

int ddp_thread_run(void (*work)(void *state), void *state, int64_t deadline)
{
	struct ddp_worker *worker = ddp_worker_create();

	if (!worker) {
		work(state);
		return 0;
	}
	if (ddp_worker_run(worker, work, state, deadline))
		return -1;
	ddp_worker_destroy(worker);
	return 0;
}
