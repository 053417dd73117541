/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Waiting until a deadline for something that another thread ends, perhaps too
 * late: the memory belongs to both, and the last of them frees it.
 */
#ifndef DDP_JOB_WAIT_H
#define DDP_JOB_WAIT_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A condition that ddp_wait_cond can wait for. */
void ddp_wait_create_cond(pthread_cond_t *cond);

/* Wait for cond until a deadline of ddp_clock_ms. Returns false once it has
 * passed. */
bool ddp_wait_cond(pthread_cond_t *cond, pthread_mutex_t *lock,
		   int64_t deadline);

struct ddp_wait {
	pthread_mutex_t lock;
	pthread_cond_t ended;
	int owners;
	bool done;
	int status;
	int type;		/* of the bytes, as the ender numbers types */
	void *bytes;
	size_t size;
	void *question;		/* freed with it */
};

/* Shared by this thread and the one that ends it; NULL: no memory. */
struct ddp_wait *ddp_wait_create(void);

/* End it with a copy of bytes (NULL if there is no memory for that), and give
 * up the ender's share. */
void ddp_wait_end(struct ddp_wait *wait, int status, int type,
		  const void *bytes, size_t size);

/* Returns whether it has ended by then; if so, its fields may be read. */
bool ddp_wait_until(struct ddp_wait *wait, int64_t deadline);

/* Give up one share. */
void ddp_wait_drop(struct ddp_wait *wait);

/* ---- calls that may never return */

/*
 * The caller waits for these until a deadline of ddp_clock_ms. A call that has
 * not returned by then is left to its thread, which blocks all signals, and
 * frees its state (with free) if it returns after all.
 */

/*
 * Call work(state) in a thread of its own. Returns 0 when it has returned, or
 * -1 if it was left. If no thread can be made, work runs in this one.
 */
int ddp_thread_run(void (*work)(void *state), void *state, int64_t deadline);

/*
 * A thread that is kept, for calls that come often: to make one for each, as
 * above, takes longer than most of them. NULL if there is no memory or no
 * thread.
 */
struct ddp_worker;
struct ddp_worker *ddp_worker_create(void);
void ddp_worker_destroy(struct ddp_worker *worker);

/*
 * The same in the worker's thread, for one caller at a time. After -1 the worker
 * is gone.
 */
int ddp_worker_run(struct ddp_worker *worker, void (*work)(void *state),
		   void *state, int64_t deadline);

#endif
