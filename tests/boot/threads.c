/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads of one process on one job, for the thread sanitizer: as ddp.h allows
 * it, without a lock of their own.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ddp.h"

#define THREADS 4
#define ROUNDS 500

static struct ddp_job *job;

static void *run(void *data)
{
	char mine[16], all[16];
	struct ddp_error error;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		snprintf(mine, sizeof(mine), "%d.%d", *(int *)data, i);
		memset(all, 0, sizeof(all));
		if (ddp_job_allgather(job, mine, sizeof(mine), all, &error) ||
		    memcmp(mine, all, sizeof(mine)) != 0 ||
		    ddp_job_barrier(job, &error) ||
		    ddp_job_allgather(job, mine, 0, all, &error) == 0 ||
		    ddp_job_create(NULL, &error) != NULL ||
		    strlen(ddp_job_host(job, 0)) == 0)
			return data;
	}
	return NULL;
}

int main(void)
{
	pthread_t threads[THREADS];
	int numbers[THREADS], i, failed = 0;
	void *result;

	job = ddp_job_create(NULL, NULL);
	if (job == NULL)
		return 1;
	for (i = 0; i < THREADS; i++) {
		numbers[i] = i;
		pthread_create(&threads[i], NULL, run, &numbers[i]);
	}
	for (i = 0; i < THREADS; i++) {
		pthread_join(threads[i], &result);
		failed |= result != NULL;
	}
	ddp_job_destroy(job);
	return failed;
}
