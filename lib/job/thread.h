/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls that may never return, made to end in time for the caller. */
#ifndef DDP_JOB_THREAD_H
#define DDP_JOB_THREAD_H

#include <stdint.h>

/*
 * Call work(state) in a thread of its own, without signals, and wait for it
 * until deadline, of ddp_clock_ms. Returns 0 when it has ended; -1 if it has
 * not: state is the thread's from then on, which calls drop(state) at its end.
 * Where there is no thread to be had, work runs in this one.
 */
int ddp_thread_run(void (*work)(void *state), void (*drop)(void *state),
		   void *state, int64_t deadline);

/*
 * A thread that is kept, for calls that come often and may never return: to
 * make one for each, as above, takes longer than most of them.
 */
struct ddp_worker;

/* NULL if there is no memory or no thread. It stays until the process ends. */
struct ddp_worker *ddp_worker_create(void);

/*
 * Let it do work(state), for one caller at a time, until a deadline of
 * ddp_clock_ms. Returns 0, or -1 if it has not ended by then: then state is the
 * worker's, for ever, and it must not be asked again.
 */
int ddp_worker_run(struct ddp_worker *worker, void (*work)(void *state),
		   void *state, int64_t deadline);

#endif
