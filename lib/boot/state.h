/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A job from inside: what its parts share.
 */
#ifndef DDP_BOOT_STATE_H
#define DDP_BOOT_STATE_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

#include "boot/client.h"
#include "boot/job.h"
#include "boot/record.h"
#include "layout/layout.h"

struct ddp_job {
	struct ddp_client *client;	/* NULL: one process */
	pid_t process;			/* not a child of it by fork */
	struct ddp_layout *layout;
	struct ddp_rank self;
	uint32_t size;
	int32_t timeout_ms;		/* below 0: none */

	pthread_mutex_t lock;		/* of what is below */
	pthread_cond_t idle;
	bool busy;			/* a collective is under way, to whose
					 * thread the fields below belong */
	bool ended;			/* by this error */
	struct ddp_error why;
	uint32_t session, round;	/* 0 before the first exchange */
	void *own;			/* this rank's record of the round */
	size_t own_copy, own_room;	/* bytes behind its slot; allocated */
};

/* Whose record of the present exchange is meant. */
struct ddp_record_id ddp_exchange_id(const struct ddp_job *job, uint32_t rank);

/*
 * The key of a record's slot, or of its copy of that size. Two of each in turn:
 * new ones each time would make every fence carry all that was ever put, and
 * one alone could hold a near rank's record of the next exchange before this
 * one's was read. The one after that cannot begin before. As rounds begin anew
 * in the process's next job, so do the keys, and with the same two in turn.
 */
void ddp_exchange_key(const struct ddp_job *job, size_t copy, char key[32]);

/* Once a fence has failed, which ends the job: say for whom it was waited that
 * long, as far as PMIx can tell. */
void ddp_late_explain(const struct ddp_job *job, int64_t waited_ms,
		      struct ddp_error *why);

/* Whether a job that was ended by an error was this process's last. */
bool ddp_job_is_spent(struct ddp_error *error);

/* End the job by an error. Returns -1. */
int ddp_job_fail(struct ddp_job *job, const struct ddp_error *why,
		 struct ddp_error *error);

#endif
