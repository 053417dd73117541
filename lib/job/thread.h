/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls that may never return: the caller waits until a deadline only. A call
 * that has not returned by then is left to its thread, which frees its state
 * (with free) if it returns after all. The threads block all signals.
 */
#ifndef DDP_JOB_THREAD_H
#define DDP_JOB_THREAD_H

#include <stdint.h>

/*
 * Call work(state) in a thread of its own until a deadline of ddp_clock_ms.
 * Returns 0 when it has returned, or -1 if it was left. If no thread can be
 * made, work runs in this one.
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
 * The same in this thread, for one caller at a time. After -1 the worker is
 * gone.
 */
int ddp_worker_run(struct ddp_worker *worker, void (*work)(void *state),
		   void *state, int64_t deadline);

#endif
