/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The job from inside: what job.c and exchange.c share.
 */
#ifndef DDP_JOB_JOB_STRUCT_H
#define DDP_JOB_JOB_STRUCT_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

#include "job/client.h"
#include "job/job.h"
#include "job/record.h"
#include "layout/layout.h"

struct ddp_job {
	struct ddp_client *client;	/* NULL: one process */
	pid_t process;			/* the rank; a child has no job */
	struct ddp_layout *layout;
	struct ddp_rank self;
	uint32_t size;
	int32_t timeout_ms;		/* below 0: none */

	pthread_mutex_t lock;		/* of what is below */
	pthread_cond_t idle;
	bool busy;			/* a collective is under way, to whose
					 * thread the fields below belong */
	bool ended;			/* with this error */
	struct ddp_error why;
	uint32_t session, round;	/* 0 before the first exchange */
	void *own;			/* this rank's record of the round */
	size_t own_copy, own_room;	/* bytes behind its slot; allocated */
};

/* End the job with an error. Returns -1. */
int ddp_job_fail(struct ddp_job *job, const struct ddp_error *why,
		 struct ddp_error *error);

#endif
