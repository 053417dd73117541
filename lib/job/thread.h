/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls that may never return: the caller waits until a deadline only. */
#ifndef DDP_JOB_THREAD_H
#define DDP_JOB_THREAD_H

#include <stdint.h>

/*
 * Call work(state) in a new thread that blocks all signals, and wait for it
 * until a deadline of ddp_clock_ms. Returns 0 when it has ended. Returns -1 if
 * it has not: state then belongs to the thread, which calls drop(state) at its
 * end. If no thread can be made, work runs in this one.
 */
int ddp_thread_run(void (*work)(void *state), void (*drop)(void *state),
		   void *state, int64_t deadline);

/*
 * A thread that is kept, for calls that come often: to make one for each, as
 * above, takes longer than most of them.
 */
struct ddp_worker;

/* NULL if there is no memory or no thread. It stays until the process ends. */
struct ddp_worker *ddp_worker_create(void);

/*
 * Have it call work(state), for one caller at a time, and wait until a deadline
 * of ddp_clock_ms. Returns 0, or -1 if it has not ended by then: state then
 * belongs to the worker for ever, and the worker must not be used again.
 */
int ddp_worker_run(struct ddp_worker *worker, void (*work)(void *state),
		   void *state, int64_t deadline);

#endif
