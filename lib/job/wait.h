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

#endif
