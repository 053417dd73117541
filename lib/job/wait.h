/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Waiting with a deadline for what another thread will end, perhaps too late:
 * the memory belongs to both and goes with the last of them.
 */
#ifndef DDP_JOB_WAIT_H
#define DDP_JOB_WAIT_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* For pthread_cond_timedwait on a condition of ddp_wait_create_cond. */
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
	int type;		/* of the bytes, in the ender's own numbering */
	void *bytes;
	size_t size;
	void *question;		/* what was asked, for as long; freed with it */
};

/* One for this thread and one for whoever ends it; NULL: no memory. */
struct ddp_wait *ddp_wait_create(void);

/* End it, and give the ender's share up. A copy of bytes goes with it; NULL if
 * there is no memory for that. */
void ddp_wait_end(struct ddp_wait *wait, int status, int type,
		  const void *bytes, size_t size);

/* Returns whether it has ended by then; fields may be read if so. */
bool ddp_wait_until(struct ddp_wait *wait, int64_t deadline);

/* Give one share up. */
void ddp_wait_drop(struct ddp_wait *wait);

#endif
