/* SPDX-License-Identifier: BSD-3-Clause */
#define _POSIX_C_SOURCE 200809L
#include "boot/bounded.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>

#include "boot/wait.h"

struct run {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool ended, left;
	void (*work)(void *state);
	void (*drop)(void *state);
	void *state;
};

static struct run *run_create(void)
{
	struct run *run = calloc(1, sizeof(*run));

	if (run == NULL)
		return NULL;
	pthread_mutex_init(&run->lock, NULL);
	ddp_wait_clock(&run->changed);
	return run;
}

static void run_destroy(struct run *run)
{
	pthread_cond_destroy(&run->changed);
	pthread_mutex_destroy(&run->lock);
	free(run);
}

static void *run_main(void *argument)
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
		run_destroy(run);
	}
	return NULL;
}

static int thread_start(pthread_t *thread, struct run *run)
{
	sigset_t all, before;
	int result;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	result = pthread_create(thread, NULL, run_main, run);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return result;
}

/* Returns whether the work has ended; if not, it is the thread's own. */
static bool run_wait(struct run *run, int64_t deadline)
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

int ddp_bounded_run(void (*work)(void *state), void (*drop)(void *state),
		    void *state, int64_t deadline)
{
	struct run *run = run_create();
	pthread_t thread;

	if (run == NULL) {
		work(state);
		return 0;
	}
	run->work = work;
	run->drop = drop;
	run->state = state;
	if (thread_start(&thread, run) != 0) {
		run_destroy(run);
		work(state);
		return 0;
	}
	if (!run_wait(run, deadline)) {
		pthread_detach(thread);
		return -1;
	}
	pthread_join(thread, NULL);
	run_destroy(run);
	return 0;
}
