/* SPDX-License-Identifier: BSD-3-Clause */
/* Compares the ways by which ranks would meet. */
#include <stdlib.h>
#include <unistd.h>

#include "collective.h"
#include "ddp.h"
#include "job/client.h"
#include "job/job.h"
#include "run/world.h"
#include "tool/tool.h"
#include "util/error.h"
#include "util/file.h"

enum {
	NAMED_MAX = 4,		/* runs of ranks of each way */
	READ_MS = 1000		/* to read why, before the ranks end */
};

/* The ranks that go one way, as text; NULL: no memory. */
static char *list_ranks(const struct ddp_job *job, const int *ways, int way)
{
	uint32_t size = ddp_job_size(job);
	bool *others = calloc(size, sizeof(*others));
	struct ddp_text text = { 0 };

	if (!others)
		return NULL;
	for (uint32_t rank = 0; rank < size; rank++)
		others[rank] = ways[rank] != way;
	ddp_absent_format(job, others, NAMED_MAX, &text);
	free(others);
	return ddp_text_finish(&text);
}

/* Rank 0 says what is wrong, before the end of any rank ends all of them. */
_Noreturn static void end_mixed(struct ddp_job *job, const int *ways)
{
	char *gpus = list_ranks(job, ways, BACKEND_NCCL);
	char *cpus = list_ranks(job, ways, BACKEND_MPI);
	struct ddp_error error;

	ddp_error_set(&error, DDP_ERROR_PEER, "some ranks compute on GPUs (%s) "
		      "and others on CPUs (%s), and these cannot train "
		      "together: ask for GPUs on every node (--device cuda "
		      "says what is missing), or use --device cpu",
		      gpus ? gpus : "?", cpus ? cpus : "?");
	if (ddp_job_rank(job) == 0)
		tool_print_error("ddp-train", &error);
	tool_record_failure(error.text);
	ddp_drain_wait(STDERR_FILENO, READ_MS);
	ddp_job_barrier(job, NULL);
	exit(2);		/* another attempt would end alike */
}

int meet_compare(const struct collective *collective, enum backend way,
		 struct ddp_error *error)
{
	const struct ddp_job_options options = {
		.size = sizeof(options),
		.timeout_ms = collective_find_timeout(collective)
	};
	struct ddp_error why;
	struct ddp_job *job;
	int mine = way, *ways;

	if (!ddp_client_is_offered())
		return 0;
	/* MPI can know a launcher that libddp does not; but what PMIx does not
	 * answer, MPI would wait for. */
	job = ddp_job_create(&options, &why);
	if (!job && (way == BACKEND_NCCL || why.code == DDP_ERROR_TIMEOUT)) {
		*error = why;
		return -1;
	}
	if (!job)
		return 0;
	ways = calloc(ddp_job_size(job), sizeof(*ways));
	if (!ways)
		ddp_abort(job, 1, "no memory for the ways of all ranks");
	if (ddp_job_allgather(job, &mine, sizeof(mine), ways, &why) < 0)
		ddp_abort(job, 1, "%s", why.text);
	for (uint32_t rank = 1; rank < ddp_job_size(job); rank++)
		if (ways[rank] != ways[0])
			end_mixed(job, ways);
	free(ways);
	ddp_job_destroy(job);
	return 0;
}
