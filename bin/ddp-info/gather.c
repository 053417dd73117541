/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Works with all ranks of a step, over PMIx: prints one table of their rows,
 * each rank's own, and tells whether they meet, for --doctor.
 */
#include <stdlib.h>
#include <string.h>

#include "info.h"
#include "job/job.h"
#include "place/report.h"
#include "tool/tool.h"

enum { GATHER_MS = 60000, MEET_MS = 30000 };

static int put_row(struct ddp_job *job, const struct ddp_row *row,
		   int64_t deadline, struct ddp_error *error)
{
	char *record = ddp_row_format(row);
	int rc;

	if (!record)
		return ddp_error_set(error, DDP_ERROR_SYSTEM,
				     "out of memory for this rank's row");
	rc = ddp_exchange_put(job, record, strlen(record), deadline, error);
	free(record);
	return rc;
}

static int get_row(struct ddp_job *job, uint32_t rank, struct ddp_row *row,
		   int64_t deadline, struct ddp_error *error)
{
	static char record[DDP_RECORD_MAX + 1];
	size_t size;

	if (ddp_exchange_get(job, rank, record, DDP_RECORD_MAX, &size,
			     deadline, error))
		return -1;
	record[size] = '\0';
	return ddp_row_parse(record, row, error);
}

static int print_rows(struct ddp_job *job, int64_t deadline,
		      struct ddp_error *error)
{
	uint32_t count = ddp_job_size(job), i;
	struct ddp_row *rows = calloc(count, sizeof(*rows));
	int rc = 0;

	if (!rows)
		return ddp_error_set(error, DDP_ERROR_SYSTEM,
				     "out of memory for %u rows", count);
	for (i = 0; i < count && rc == 0; i++)
		rc = get_row(job, i, &rows[i], deadline, error);
	if (rc == 0)
		rc = tool_print_text(ddp_table_format(rows, count,
						tool_has_colour(stdout)),
				     error);
	for (i = 0; i < count; i++)
		ddp_row_clear(&rows[i]);
	free(rows);
	return rc;
}

static int gather_rows(struct ddp_job *job, const struct ddp_row *row,
		       struct ddp_error *error)
{
	int64_t deadline = ddp_job_deadline(job, 0);
	int rc;

	if (ddp_job_rank(job) != row->rank)
		return ddp_error_set(error, DDP_ERROR_PMIX, "PMIx's rank %u "
				     "was planned as rank %u",
				     ddp_job_rank(job), row->rank);
	if (ddp_job_begin(job, deadline, error))
		return -1;
	rc = put_row(job, row, deadline, error);
	if (rc == 0 && row->rank == 0)
		rc = print_rows(job, deadline, error);
	ddp_job_end(job);
	return rc;
}

int gather_print(const struct ddp_row *row, struct ddp_error *error)
{
	const struct ddp_job_options options = {
		.size = sizeof(options),
		.launch = DDP_LAUNCH_PMIX,
		.timeout_ms = GATHER_MS,
	};
	struct ddp_job *job = ddp_job_create(&options, error);
	int rc;

	if (!job)
		return -1;
	rc = gather_rows(job, row, error);
	ddp_job_destroy(job);
	return rc;
}

void doctor_meet(void)
{
	const struct ddp_job_options options = {
		.size = sizeof(options),
		.launch = DDP_LAUNCH_PMIX,
		.timeout_ms = MEET_MS,
	};
	struct ddp_error error;
	struct ddp_job *job = ddp_job_create(&options, &error);

	if (job && ddp_job_barrier(job, &error) == 0)
		doctor_print_fact("met yes");
	else
		doctor_print_fact("meet_flaw %s", error.text);
	ddp_job_destroy(job);
}
