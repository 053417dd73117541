/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls that may never return, in threads that are then left behind. */
#define _POSIX_C_SOURCE 200809L
#include "job/thread.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>

#include "job/wait.h"

/* Start a thread that blocks all signals. */
static int start_thread(pthread_t *thread, void *(*start)(void *argument),
			void *argument)
{
	sigset_t all, before;
	int result;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	result = pthread_create(thread, NULL, start, argument);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return result;
}

/* ---- a thread for one call */

struct run {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool ended, left;
	void (*work)(void *state);
	void (*drop)(void *state);
	void *state;
};

static struct run *create_run(void)
{
	struct run *run = calloc(1, sizeof(*run));

	if (!run)
		return NULL;
	pthread_mutex_init(&run->lock, NULL);
	ddp_wait_create_cond(&run->changed);
	return run;
}

static void destroy_run(struct run *run)
{
	pthread_cond_destroy(&run->changed);
	pthread_mutex_destroy(&run->lock);
	free(run);
}

static void *do_run(void *argument)
{
	struct run *run = argument;
	bool left;

	run->work(run->state);
	pthread_mutex_lock(&run->lock);
	run->ended = true;
	left = run->left;
	pthread_cond_signal(&run->changed);
	pthread_mutex_unlock(&run->lock);
	if (left) {
		run->drop(run->state);
		destroy_run(run);
	}
	return NULL;
}

/* Returns whether the work has ended; if not, run belongs to the thread. */
static bool wait_run(struct run *run, int64_t deadline)
{
	bool ended, in_time = true;

	pthread_mutex_lock(&run->lock);
	while (!run->ended && in_time)
		in_time = ddp_wait_cond(&run->changed, &run->lock, deadline);
	ended = run->ended;
	run->left = !ended;
	pthread_mutex_unlock(&run->lock);
	return ended;
}

int ddp_thread_run(void (*work)(void *state), void (*drop)(void *state),
		   void *state, int64_t deadline)
{
	struct run *run = create_run();
	pthread_t thread;

	if (!run) {
		work(state);
		return 0;
	}
	run->work = work;
	run->drop = drop;
	run->state = state;
	if (start_thread(&thread, do_run, run) != 0) {
		destroy_run(run);
		work(state);
		return 0;
	}
	if (!wait_run(run, deadline)) {
		pthread_detach(thread);
		return -1;
	}
	pthread_join(thread, NULL);
	destroy_run(run);
	return 0;
}

/* ---- a thread that is kept */

struct ddp_worker {
	pthread_mutex_t lock;
	pthread_cond_t asked, ended;
	bool busy;
	void (*work)(void *state);
	void *state;
};

static void *do_work(void *argument)
{
	struct ddp_worker *worker = argument;

	pthread_mutex_lock(&worker->lock);
	for (;;) {
		while (!worker->busy)
			pthread_cond_wait(&worker->asked, &worker->lock);
		pthread_mutex_unlock(&worker->lock);
		worker->work(worker->state);
		pthread_mutex_lock(&worker->lock);
		worker->busy = false;
		pthread_cond_signal(&worker->ended);
	}
	return NULL;
}

struct ddp_worker *ddp_worker_create(void)
{
	struct ddp_worker *worker = calloc(1, sizeof(*worker));
	pthread_t thread;

	if (!worker)
		return NULL;
	pthread_mutex_init(&worker->lock, NULL);
	pthread_cond_init(&worker->asked, NULL);
	ddp_wait_create_cond(&worker->ended);
	if (start_thread(&thread, do_work, worker) == 0) {
		pthread_detach(thread);
		return worker;
	}
	pthread_cond_destroy(&worker->ended);
	pthread_cond_destroy(&worker->asked);
	pthread_mutex_destroy(&worker->lock);
	free(worker);
	return NULL;
}

int ddp_worker_run(struct ddp_worker *worker, void (*work)(void *state),
		   void *state, int64_t deadline)
{
	bool busy, in_time = true;

	pthread_mutex_lock(&worker->lock);
	worker->work = work;
	worker->state = state;
	worker->busy = true;
	pthread_cond_signal(&worker->asked);
	while (worker->busy && in_time)
		in_time =
			ddp_wait_cond(&worker->ended, &worker->lock, deadline);
	busy = worker->busy;
	pthread_mutex_unlock(&worker->lock);
	return busy ? -1 : 0;
}
