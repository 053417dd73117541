/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which ranks failed in the same way as the one that a verdict names.
 *
 * Ranks that meet the same mistake, as a bad option or a bad batch, fail within
 * the time by which they begin, or leave their last collective, one after the
 * other. Ranks that lose a peer fail after it, often with its words, as the two
 * ends of a connection do. So nobody was first only where all failed within
 * DDP_VERDICT_WAIT_MS, which is also how long a verdict usually waits for them:
 * where it comes later, as an agent is slow, it says the same.
 */
#define _GNU_SOURCE
#include "verdict/verdict.h"

#include <ctype.h>
#include <string.h>
#include <sys/wait.h>
#include <sysexits.h>

#include "verdict/who.h"

enum {
	USAGE = 2,	/* as shells, getopt's users and argparse have it */
	WAIT_NS = DDP_VERDICT_WAIT_MS * 1000000
};

/* What a rank said last: its error, or the last line of its stderr; or "". */
static const char *find_last(const struct ddp_step_rank *rank, size_t *length)
{
	const char *text = rank->message ? rank->message : rank->tail;
	const char *at, *end;

	if (!text)
		text = "";
	end = text + strlen(text);
	while (end > text && isspace((unsigned char)end[-1]))
		end--;
	for (at = end; at > text && at[-1] != '\n';)
		at--;
	*length = (size_t)(end - at);
	return at;
}

static void skip_digits(const char **at, const char *end)
{
	while (*at < end && isdigit((unsigned char)**at))
		++*at;
}

/*
 * Whether two ranks said the same last. Their lines may differ in numbers: in a
 * rank's own ("[rank1]: ..."), a GPU's, a time.
 */
static bool has_said_same(const struct ddp_step_rank *a,
			  const struct ddp_step_rank *b)
{
	size_t length_a, length_b;
	const char *at_a = find_last(a, &length_a), *end_a = at_a + length_a;
	const char *at_b = find_last(b, &length_b), *end_b = at_b + length_b;

	while (at_a < end_a && at_b < end_b) {
		if (isdigit((unsigned char)*at_a) &&
		    isdigit((unsigned char)*at_b)) {
			skip_digits(&at_a, end_a);
			skip_digits(&at_b, end_b);
		} else if (*at_a++ != *at_b++) {
			return false;
		}
	}
	return at_a == end_a && at_b == end_b;
}

static bool has_spoken(const struct ddp_step_rank *rank)
{
	size_t length;

	find_last(rank, &length);
	return length > 0 || rank->cause;
}

/*
 * Whether it refuses its command line, which all ranks have. Then one of them
 * may speak for all that end at the same time: a silent one that ends later may
 * have ended because of it. So may all others of a rank that is silent and has
 * another exit code.
 */
static bool is_refusal(const struct ddp_step_rank *rank)
{
	return WIFEXITED(rank->status) &&
	       (WEXITSTATUS(rank->status) == USAGE ||
		WEXITSTATUS(rank->status) == EX_USAGE);
}

bool ddp_verdict_is_refusal(const struct ddp_verdict *verdict,
			    const struct ddp_step *step)
{
	return verdict->kind == DDP_VERDICT_RANK &&
	       is_refusal(&step->ranks[verdict->rank]);
}

bool ddp_verdict_is_in_time(const struct ddp_verdict *verdict,
			    const struct ddp_step *step, uint32_t rank)
{
	return step->ranks[rank].ended &&
	       ddp_step_end_ns(step, rank) - verdict->at_ns <= WAIT_NS;
}

/*
 * A signal that was sent tells nothing: it may be the one that ends all. Nor does
 * torchrun's summary, whose last lines are always the same.
 */
bool ddp_verdict_is_alike(const struct ddp_verdict *verdict,
			  const struct ddp_step *step, uint32_t rank)
{
	const struct ddp_step_rank *first = &step->ranks[verdict->rank];
	const struct ddp_step_rank *of = &step->ranks[rank];
	struct ddp_who_cause cause;

	return verdict->kind == DDP_VERDICT_RANK &&
	       !ddp_who_find_cause(step, of->tail, &cause) &&
	       !ddp_verdict_is_sent(verdict, step) &&
	       of->ended && !of->answered && of->status == first->status &&
	       strcmp(of->cause ? of->cause : "",
		      first->cause ? first->cause : "") == 0 &&
	       (has_said_same(of, first) ||
		(is_refusal(of) && !has_spoken(of) &&
		 ddp_verdict_is_in_time(verdict, step, rank)));
}

/* The lowest rank that ended in time, with the first one's code, and spoke. */
static uint32_t find_speaker(const struct ddp_verdict *verdict,
			     const struct ddp_step *step)
{
	const struct ddp_step_rank *first = &step->ranks[verdict->rank], *of;
	uint32_t i;

	for (i = 0; i < step->world_size && !has_spoken(first); i++) {
		of = &step->ranks[i];
		if (ddp_verdict_is_in_time(verdict, step, i) &&
		    of->status == first->status && has_spoken(of))
			return i;
	}
	return verdict->rank;
}

void ddp_verdict_find_together(struct ddp_verdict *verdict,
			       const struct ddp_step *step)
{
	struct ddp_verdict found = *verdict;
	uint32_t i, ended = 0, alike = 0;

	if (is_refusal(&step->ranks[verdict->rank]))
		found.rank = find_speaker(verdict, step);
	found.node = step->ranks[found.rank].node;
	if (!has_spoken(&step->ranks[found.rank]))
		return;
	for (i = 0; i < step->world_size; i++) {
		if (!ddp_verdict_is_in_time(verdict, step, i))
			continue;
		ended++;
		alike += ddp_verdict_is_alike(&found, step, i);
	}
	if (alike < ended || alike <= step->world_size / 2 || alike == 1)
		return;
	found.together = alike;
	*verdict = found;
}
