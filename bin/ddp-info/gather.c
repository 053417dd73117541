/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One table of all ranks' rows, gathered over PMIx: each rank puts its record,
 * one fence collects them, rank 0 reads and prints them. The fence collects
 * data, without which it need not wait for other nodes; and each record has
 * its rank and a checksum, because PMIx 4.2 can hand out another rank's short
 * value.
 */
#define _GNU_SOURCE
#include <pmix.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "info.h"
#include "layout/text.h"

#define KEY "ddp.row"
#define DEADLINE_S 60

/* A fence that may end after nobody waits any more: never freed. */
struct fence {
	pthread_mutex_t lock;
	pthread_cond_t ended;
	bool done;
	pmix_status_t status;
};

static int pmix_failed(const char *what, pmix_status_t status,
		       struct ddp_error *error)
{
	return ddp_error_set(error, DDP_ERROR_SYSTEM, "%s failed: %s", what,
			     PMIx_Error_string(status));
}

/* FNV-1a. */
static uint32_t checksum(const char *text)
{
	uint32_t sum = 2166136261u;

	for (; *text != '\0'; text++)
		sum = (sum ^ (unsigned char)*text) * 16777619u;
	return sum;
}

static void fence_end(pmix_status_t status, void *data)
{
	struct fence *fence = data;

	pthread_mutex_lock(&fence->lock);
	fence->status = status;
	fence->done = true;
	pthread_cond_signal(&fence->ended);
	pthread_mutex_unlock(&fence->lock);
}

static int fence_wait(const pmix_proc_t *all, struct ddp_error *error)
{
	struct fence *fence = calloc(1, sizeof(*fence));
	struct timespec deadline;
	pmix_status_t status;
	pmix_info_t collect;
	bool yes = true;
	int rc = 0;

	if (fence == NULL)
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "out of memory");
	pthread_mutex_init(&fence->lock, NULL);
	pthread_cond_init(&fence->ended, NULL);
	PMIX_INFO_LOAD(&collect, PMIX_COLLECT_DATA, &yes, PMIX_BOOL);
	status = PMIx_Fence_nb(all, 1, &collect, 1, fence_end, fence);
	if (status != PMIX_SUCCESS)
		return pmix_failed("the PMIx fence", status, error);
	clock_gettime(CLOCK_REALTIME, &deadline);
	deadline.tv_sec += DEADLINE_S;
	pthread_mutex_lock(&fence->lock);
	while (!fence->done && rc == 0)
		rc = pthread_cond_timedwait(&fence->ended, &fence->lock,
					    &deadline);
	status = fence->status;
	pthread_mutex_unlock(&fence->lock);
	if (rc != 0)
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "not all ranks "
				     "have come within %d s", DEADLINE_S);
	return status == PMIX_SUCCESS ? 0 :
		pmix_failed("the PMIx fence", status, error);
}

static int record_put(const struct ddp_row *row, struct ddp_error *error)
{
	struct ddp_text text = { 0 };
	char *record = ddp_row_format(row);
	pmix_status_t status = PMIX_ERR_NOMEM;
	pmix_value_t value;

	if (record != NULL)
		ddp_text_add(&text, "%u %08x %s", row->rank, checksum(record),
			     record);
	free(record);
	record = record != NULL ? ddp_text_finish(&text) : NULL;
	if (record != NULL) {
		value.type = PMIX_STRING;
		value.data.string = record;
		status = PMIx_Put(PMIX_GLOBAL, KEY, &value);
	}
	if (status == PMIX_SUCCESS)
		status = PMIx_Commit();
	free(record);
	return status == PMIX_SUCCESS ? 0 :
		pmix_failed("to hand the row to PMIx", status, error);
}

static int record_get(const pmix_proc_t *all, uint32_t rank,
		      struct ddp_row *row, struct ddp_error *error)
{
	pmix_proc_t proc = *all;
	pmix_value_t *value;
	pmix_status_t status;
	uint32_t got = 0, sum = 0;
	int offset = 0, rc = -1;

	proc.rank = rank;
	status = PMIx_Get(&proc, KEY, NULL, 0, &value);
	if (status != PMIX_SUCCESS)
		return pmix_failed("to get a row from PMIx", status, error);
	if (value->type != PMIX_STRING || value->data.string == NULL ||
	    sscanf(value->data.string, "%u %x %n", &got, &sum, &offset) < 2 ||
	    offset == 0 || got != rank ||
	    checksum(value->data.string + offset) != sum)
		ddp_error_set(error, DDP_ERROR_SYSTEM, "PMIx handed out "
			      "something else than rank %u's row", rank);
	else
		rc = ddp_row_parse(value->data.string + offset, row, error);
	PMIX_VALUE_RELEASE(value);
	return rc;
}

static int rows_print(const pmix_proc_t *all, uint32_t count,
		      struct ddp_error *error)
{
	struct ddp_row *rows = calloc(count, sizeof(*rows));
	uint32_t i;
	int rc = 0;

	if (rows == NULL)
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "out of memory");
	for (i = 0; i < count && rc == 0; i++)
		rc = record_get(all, i, &rows[i], error);
	if (rc == 0)
		rc = text_print(ddp_report_table(rows, count, true), error);
	for (i = 0; i < count; i++)
		ddp_row_clear(&rows[i]);
	free(rows);
	return rc;
}

static int world_size(const pmix_proc_t *all, uint32_t *count,
		      struct ddp_error *error)
{
	pmix_value_t *value;
	pmix_status_t status;
	int rc = 0;

	status = PMIx_Get(all, PMIX_JOB_SIZE, NULL, 0, &value);
	if (status != PMIX_SUCCESS)
		return pmix_failed("to ask PMIx for the world's size", status,
				   error);
	PMIX_VALUE_GET_NUMBER(status, value, *count, uint32_t);
	if (status != PMIX_SUCCESS || *count == 0)
		rc = pmix_failed("to read the world's size", status, error);
	PMIX_VALUE_RELEASE(value);
	return rc;
}

int gather_print(const struct ddp_row *row, struct ddp_error *error)
{
	pmix_proc_t self, all;
	pmix_status_t status;
	uint32_t count;

	status = PMIx_Init(&self, NULL, 0);
	if (status != PMIX_SUCCESS)
		return ddp_error_set(error, DDP_ERROR_SYSTEM,
				     "PMIx is not there (%s): use srun "
				     "--mpi=pmix", PMIx_Error_string(status));
	all = self;
	all.rank = PMIX_RANK_WILDCARD;
	if (self.rank != row->rank)
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "PMIx's rank %u "
				     "is rank %u of the plan", self.rank,
				     row->rank);
	if (world_size(&all, &count, error) || record_put(row, error) ||
	    fence_wait(&all, error) ||
	    (self.rank == 0 && rows_print(&all, count, error)))
		return -1;
	status = PMIx_Finalize(NULL, 0);
	return status == PMIX_SUCCESS ? 0 :
		pmix_failed("to leave PMIx", status, error);
}
