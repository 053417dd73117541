/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls that may never return, made to end in time for the caller. */
#ifndef DDP_BOOT_BOUNDED_H
#define DDP_BOOT_BOUNDED_H

#include <stdint.h>

/*
 * Call work(state) in a thread of its own, without signals, and wait for it
 * until deadline, of ddp_clock_ms. Returns 0 when it has ended; -1 if it has
 * not: state is the thread's from then on, which calls drop(state) at its end.
 * Where there is no thread to be had, work runs in this one.
 */
int ddp_bounded_run(void (*work)(void *state), void (*drop)(void *state),
		    void *state, int64_t deadline);

#endif
