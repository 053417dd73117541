/* SPDX-License-Identifier: BSD-3-Clause */
/* What became of the ranks that a verdict does not name, and how it is said. */
#define _GNU_SOURCE
#include "verdict/verdict.h"

#include "verdict/who.h"

enum end {
	APART,		/* it is the one that is named, or not of the step's end */
	ALIKE,		/* it failed in the same way */
	LEFT, KILLED,	/* it got time to end, and did; and did not */
	BECAUSE		/* it ended because of the one that is named */
};

static bool is_named(const struct ddp_verdict *verdict, uint32_t rank,
		     uint32_t node)
{
	if (verdict->kind == DDP_VERDICT_NODE)
		return node == verdict->node;
	return verdict->kind == DDP_VERDICT_RANK && rank == verdict->rank;
}

static enum end find_end(const struct ddp_verdict *verdict,
			 const struct ddp_step *step, uint32_t rank)
{
	const struct ddp_step_rank *of = &step->ranks[rank];
	const struct ddp_step_grace *grace = &step->grace;

	if (!of->known || is_named(verdict, rank, of->node))
		return APART;
	if (of->ended && grace->began_ns && of->seen_ns >= grace->began_ns) {
		if (!ddp_step_was_killed(of->status))
			return LEFT;
		if (grace->over_ns && of->seen_ns >= grace->over_ns)
			return KILLED;
	}
	if (verdict->kind == DDP_VERDICT_HANG)
		return APART;
	if (ddp_verdict_is_alike(verdict, step, rank))
		return ALIKE;
	return !of->ended || (of->status != 0 && !of->answered) ?
		BECAUSE : APART;
}

/*
 * Whether it was killed, though the time of --ddp-grace was not over. Its agent
 * may have been killed with it, and then that has ended since the first failure.
 */
static bool is_early(const struct ddp_step *step, uint32_t rank)
{
	const struct ddp_step_rank *of = &step->ranks[rank];
	const struct ddp_step_node *node = &step->nodes[of->node];
	const struct ddp_step_grace *grace = &step->grace;
	int64_t at_ns = of->ended ? of->seen_ns : node->left_ns;

	if (!grace->began_ns || (grace->over_ns && at_ns >= grace->over_ns))
		return false;
	return of->ended ? ddp_step_was_killed(of->status) && !of->cause :
		node->left && step->end_ns && at_ns >= step->end_ns;
}

/* "3 other ranks" */
static void add_count(struct ddp_text *text, const struct ddp_verdict *verdict,
		      const struct ddp_step *step, uint32_t count)
{
	if (count > 0)
		ddp_text_add(text, "%u", count);
	else
		ddp_text_add(text, "no");
	ddp_text_add(text, verdict->kind == DDP_VERDICT_HANG ? " " : " other ");
	ddp_who_add_word(text, step);
	ddp_text_add(text, "%s", count > 1 ? "s" : "");
}

static void add_grace(struct ddp_text *text, const struct ddp_verdict *verdict,
		      const struct ddp_step *step, uint32_t left,
		      uint32_t killed)
{
	ddp_text_add(text, "slurm-ddp: --ddp-grace=%u: ", step->grace.seconds);
	add_count(text, verdict, step, left);
	ddp_text_add(text, " ended by %s, ", left > 1 ? "themselves" : "itself");
	if (killed > 0)
		ddp_text_add(text, "%u had to be killed\n", killed);
	else
		ddp_text_add(text, "none had to be killed\n");
}

/* It is not known who has killed them, only that Slurm does so. */
static void add_early(struct ddp_text *text, const struct ddp_verdict *verdict,
		      const struct ddp_step *step, uint32_t early)
{
	ddp_text_add(text, "slurm-ddp: --ddp-grace=%u: ", step->grace.seconds);
	add_count(text, verdict, step, early);
	ddp_text_add(text, " %s killed before that, and not by slurm-ddp; "
		     "Slurm's PMIx plugin does so when a rank ends without "
		     "MPI_Finalize\n", early > 1 ? "were" : "was");
}

void ddp_verdict_add_others(struct ddp_text *text,
			    const struct ddp_verdict *verdict,
			    const struct ddp_step *step)
{
	uint32_t counts[BECAUSE + 1] = { 0 }, early = 0, said, i;
	enum end end;

	for (i = 0; i < step->world_size; i++) {
		end = find_end(verdict, step, i);
		counts[end]++;
		early += end == BECAUSE && is_early(step, i);
	}
	/* Of these it is said already; since, a clock may be known better. */
	said = verdict->together > 0 ? verdict->together - 1 : 0;
	counts[ALIKE] -= said < counts[ALIKE] ? said : counts[ALIKE];
	if (counts[ALIKE] > 0) {
		ddp_text_add(text, "slurm-ddp: ");
		add_count(text, verdict, step, counts[ALIKE]);
		ddp_text_add(text, " failed in the same way\n");
	}
	if (counts[BECAUSE] > 0) {
		ddp_text_add(text, "slurm-ddp: ");
		add_count(text, verdict, step, counts[BECAUSE]);
		ddp_text_add(text, " ended because of it\n");
	}
	if (early > 0)
		add_early(text, verdict, step, early);
	if (counts[LEFT] + counts[KILLED] > 0)
		add_grace(text, verdict, step, counts[LEFT], counts[KILLED]);
}

void ddp_verdict_add_alike_json(struct ddp_text *text,
				const struct ddp_verdict *verdict,
				const struct ddp_step *step)
{
	const char *comma = "";
	uint32_t i;

	ddp_text_add(text, ", \"alike\": [");
	for (i = 0; i < step->world_size; i++) {
		if (find_end(verdict, step, i) != ALIKE)
			continue;
		ddp_text_add(text, "%s%u", comma, i);
		comma = ", ";
	}
	ddp_text_add(text, "]");
}
