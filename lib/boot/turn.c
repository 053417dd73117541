/* SPDX-License-Identifier: BSD-3-Clause */
#define _POSIX_C_SOURCE 200809L
#include <unistd.h>

#include "boot/state.h"
#include "boot/wait.h"

/* A fence that some ranks are in for ever spoils all that come after. */
static bool spent;

bool ddp_job_is_spent(struct ddp_error *error)
{
	if (spent)
		ddp_error_set(error, DDP_ERROR_PMIX, "an earlier job of this "
			      "process ended while its ranks were out of step: "
			      "PMIx serves this program no more");
	return spent;
}

int ddp_job_begin(struct ddp_job *job, int64_t deadline,
		  struct ddp_error *error)
{
	bool in_time = true;
	int rc = -1;

	if (job->process != getpid())
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "this process "
				     "is a child of a rank: a child of fork "
				     "has no job");
	pthread_mutex_lock(&job->lock);
	while (job->busy && !job->ended && in_time)
		in_time = ddp_wait_cond(&job->idle, &job->lock, deadline);
	if (job->ended) {
		if (error != NULL)
			*error = job->why;
	} else if (job->busy) {
		ddp_error_set(error, DDP_ERROR_TIMEOUT, "another thread's "
			      "collective of this job has not ended in time");
	} else {
		job->busy = true;
		rc = 0;
	}
	pthread_mutex_unlock(&job->lock);
	return rc;
}

void ddp_job_end(struct ddp_job *job)
{
	pthread_mutex_lock(&job->lock);
	job->busy = false;
	pthread_cond_signal(&job->idle);
	pthread_mutex_unlock(&job->lock);
}

int ddp_job_fail(struct ddp_job *job, const struct ddp_error *why,
		 struct ddp_error *error)
{
	pthread_mutex_lock(&job->lock);
	job->ended = true;
	job->why = *why;
	spent = true;
	pthread_cond_broadcast(&job->idle);
	pthread_mutex_unlock(&job->lock);
	if (error != NULL)
		*error = *why;
	return -1;
}
