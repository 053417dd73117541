/* SPDX-License-Identifier: BSD-3-Clause */
#define _POSIX_C_SOURCE 200809L
#include "boot/worker.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>

#include "boot/wait.h"

struct ddp_worker {
	pthread_mutex_t lock;
	pthread_cond_t asked, ended;
	bool busy;
	void (*work)(void *state);
	void *state;
};

static void *worker_main(void *argument)
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
	sigset_t all, before;
	pthread_t thread;
	int result;

	if (worker == NULL)
		return NULL;
	pthread_mutex_init(&worker->lock, NULL);
	pthread_cond_init(&worker->asked, NULL);
	ddp_wait_clock(&worker->ended);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	result = pthread_create(&thread, NULL, worker_main, worker);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (result == 0) {
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
		in_time = ddp_wait_cond(&worker->ended, &worker->lock,
					deadline);
	busy = worker->busy;
	pthread_mutex_unlock(&worker->lock);
	return busy ? -1 : 0;
}
