/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread that is kept, for calls that come often and may never return: to
 * make one for each, as bounded.h does, takes longer than most of them.
 */
#ifndef DDP_BOOT_WORKER_H
#define DDP_BOOT_WORKER_H

#include <stdint.h>

struct ddp_worker;

/* NULL if there is no memory or no thread. It stays until the process ends. */
struct ddp_worker *ddp_worker_create(void);

/*
 * Let it do work(state), for one caller at a time, until a deadline of job.h.
 * Returns 0, or -1 if it has not ended by then: then state is the worker's, for
 * ever, and it must not be asked again.
 */
int ddp_worker_run(struct ddp_worker *worker, void (*work)(void *state),
		   void *state, int64_t deadline);

#endif
