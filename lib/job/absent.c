/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds which ranks did not come to an exchange, as far as PMIx knows. */
#include "job/absent.h"

#include <stdlib.h>
#include <string.h>

#include "job/job_struct.h"
#include "job/wait.h"

enum {
	ASK_MS = 1000,		/* to find out who has not come */
	ASK_ALL_MAX = 1024,	/* in a larger job only rank 0 asks for all */
	NAMED_MAX = 8		/* runs of ranks in an error's text */
};

static bool is_on_this_node(const struct ddp_job *job, uint32_t rank)
{
	return ddp_job_node_of(job, rank) == job->self.node_rank;
}

/* Ask for a key of all ranks at once, or of those on other nodes alone. */
static void ask_all(const struct ddp_job *job, const uint32_t *ranks,
		    uint32_t count, bool all, const char *key,
		    struct ddp_wait **answers)
{
	int64_t deadline = ddp_clock_ms() + ASK_MS / 2;
	uint32_t i;

	for (i = 0; i < count; i++)
		answers[i] = all || !is_on_this_node(job, ranks[i]) ?
			ddp_job_begin_get(job, ranks[i], key) : NULL;
	for (i = 0; i < count; i++)
		if (answers[i])
			ddp_wait_until(answers[i], deadline);
}

/* Returns true if a rank's record of this exchange is there. */
static bool take_answer(const struct ddp_job *job, uint32_t rank,
			struct ddp_wait *answer)
{
	struct ddp_record_id id = ddp_job_record_id(job, rank);
	size_t length, size;
	void *slot = ddp_client_end_get(answer, &length, 0, NULL);
	bool is_here = slot &&
		       ddp_record_open(slot, length, &id, &size, NULL) == 0;

	free(slot);
	return is_here;
}

/*
 * Find out which ranks have published their record: ask their servers. A server
 * that has older values of a remote rank answers with those; only when it is
 * asked for a key that it does not know, it fetches all of the rank's values
 * again. So first ask for a key that no rank has. Not for the ranks of this
 * node, whose values it has itself: since PMIx 5 it would keep that question,
 * and all others about the rank, until the rank publishes again.
 */
static void call_roll(const struct ddp_job *job, const uint32_t *ranks,
		      uint32_t count, bool *here)
{
	struct ddp_wait **answers = calloc(count, sizeof(*answers));
	struct ddp_record_id id = ddp_job_record_id(job, job->self.rank);
	char key[32];
	uint32_t i;

	if (!answers)
		return;
	ask_all(job, ranks, count, false, "ddp.none", answers);
	for (i = 0; i < count; i++)
		if (answers[i])
			ddp_wait_drop(answers[i]);
	ddp_record_key(&id, 0, key);
	ask_all(job, ranks, count, true, key, answers);
	for (i = 0; i < count; i++)
		here[ranks[i]] = take_answer(job, ranks[i], answers[i]);
	free(answers);
}

/* List the ranks to ask for: all others, or those of this node. Returns how
 * many. */
static uint32_t list_roll(const struct ddp_job *job, bool all, uint32_t *ranks)
{
	uint32_t rank, count = 0;

	for (rank = 0; rank < job->size; rank++)
		if (rank != job->self.rank &&
		    (all || is_on_this_node(job, rank)))
			ranks[count++] = rank;
	return count;
}

void ddp_absent_format(const struct ddp_job *job, const bool *here,
		       uint32_t most, struct ddp_text *text)
{
	uint32_t absent = 0, runs = 0, named = 0, first, last;

	for (first = 0; first < job->size; first = last + 1) {
		last = first;
		if (here[first])
			continue;
		while (last + 1 < job->size && !here[last + 1] &&
		       ddp_job_node_of(job, last + 1) ==
		       ddp_job_node_of(job, first))
			last++;
		absent += last - first + 1;
		if (runs++ >= most)
			continue;
		named = absent;
		ddp_text_add(text, "%s%s %u", runs > 1 ? ", " : "",
			     last > first ? "ranks" : "rank", first);
		if (last > first)
			ddp_text_add(text, "-%u", last);
		ddp_text_add(text, " on %s", ddp_job_host(job, first));
	}
	if (absent > named)
		ddp_text_add(text, " and %u more", absent - named);
}

/* The ranks that have not come, as text; "" if all have. NULL: no memory. */
static char *find_absent(const struct ddp_job *job, bool all)
{
	uint32_t *ranks = calloc(job->size, sizeof(*ranks)), count, i;
	bool *here = malloc(job->size * sizeof(*here));
	struct ddp_text text = { 0 };

	if (!ranks || !here) {
		free(ranks);
		free(here);
		return NULL;
	}
	count = list_roll(job, all, ranks);
	/* A rank that is not asked is not called absent. */
	memset(here, true, job->size * sizeof(*here));
	for (i = 0; i < count; i++)
		here[ranks[i]] = false;
	call_roll(job, ranks, count, here);
	ddp_absent_format(job, here, NAMED_MAX, &text);
	free(ranks);
	free(here);
	return ddp_text_finish(&text);
}

void ddp_absent_explain(const struct ddp_job *job, int64_t waited_ms,
			struct ddp_error *why)
{
	bool all = job->size <= ASK_ALL_MAX || job->self.rank == 0;
	char *absent = find_absent(job, all);
	double s = (double)waited_ms / 1000;
	int digits = s < 100 && waited_ms % 1000 != 0;

	if (absent && absent[0] != '\0')
		ddp_error_set(why, DDP_ERROR_TIMEOUT, "waited %.*f s for %s",
			      digits, s, absent);
	else if (all)
		ddp_error_set(why, DDP_ERROR_TIMEOUT, "waited %.*f s, although "
			      "every rank has published its record: one of "
			      "them, or PMIx, has stalled after that, and PMIx "
			      "does not say which", digits, s);
	else
		ddp_error_set(why, DDP_ERROR_TIMEOUT, "waited %.*f s for a "
			      "rank on another node than %s; rank 0 names it",
			      digits, s, job->self.host);
	free(absent);
}
