/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plugin/verdict is pure: it has what is known of a step (facts.h, of which step.h
 * is what agents tell, and said.h what srun says), what follows from that
 * (decide.h), who hangs, whether the step starts again, and the words for it. All
 * times are in times.h. The supervisor fills the facts in, and prints and writes
 * what comes out.
 *
 * Here: who failed first by what agents tell, and how that is said.
 */
#ifndef DDP_VERDICT_VERDICT_H
#define DDP_VERDICT_VERDICT_H

#include "util/text.h"
#include "verdict/step.h"

enum {
	DDP_VERDICT_LINES = 10		/* of a rank's stderr are shown */
};

enum ddp_verdict_kind {
	DDP_VERDICT_NONE,	/* nothing has failed */
	DDP_VERDICT_RANK,	/* this rank did, first */
	DDP_VERDICT_NODE,	/* this node was lost first */
	DDP_VERDICT_SIGNAL,	/* somebody has ended the step by a signal */
	DDP_VERDICT_HANG,	/* no rank makes progress: see hang.h */
	DDP_VERDICT_SAVED	/* all ranks ended with 75 (EX_TEMPFAIL): they
				 * have saved, and there is more to do */
};

struct ddp_verdict {
	enum ddp_verdict_kind kind;
	uint32_t rank, node;	/* node: also the rank's */
	int64_t at_ns;		/* RANK, NODE: when, as in ddp_step */
	int64_t after_ns;	/* since the step began */
	uint32_t together;	/* RANK: so many had failed in the same way, most
				 * ranks and no other, so that none was first:
				 * this one has said why; or so many launchers
				 * tell no order; 0: it was first */
};

/* The verdict by what is known of a step now. */
struct ddp_verdict ddp_verdict_find(const struct ddp_step *step);

/*
 * Whether this rank failed in the same way as the one of RANK: with the same
 * status, cause and last words; or is unordered, see below.
 */
bool ddp_verdict_is_alike(const struct ddp_verdict *verdict,
			  const struct ddp_step *step, uint32_t rank);

/*
 * Returns true if this rank and that of RANK are launchers that have told of their
 * ranks, and nobody knows which of these failed before the other; also of that of
 * RANK itself.
 */
bool ddp_verdict_is_unordered(const struct ddp_verdict *verdict,
			      const struct ddp_step *step, uint32_t rank);

/*
 * Whether this rank had ended DDP_ALIKE_MS after the first one, of RANK with
 * at_ns, or sooner.
 */
bool ddp_verdict_is_in_time(const struct ddp_verdict *verdict,
			    const struct ddp_step *step, uint32_t rank);

/* Whether a signal has ended that rank which others send, as far as is known. */
bool ddp_verdict_is_sent(const struct ddp_verdict *verdict,
			 const struct ddp_step *step);

/*
 * Whether it is one of these ranks, a list that was checked (layout/tasks.h), or
 * has ended before one of them, or failed together with one: then what followed
 * from that has not ended it.
 */
bool ddp_verdict_is_before(const struct ddp_verdict *verdict,
			   const struct ddp_step *step, const char *ranks);

/* Whether this rank has refused its command line, by its exit code. */
bool ddp_verdict_is_refusal(const struct ddp_verdict *verdict,
			    const struct ddp_step *step);

/* Whether it has failed by itself, whatever else has happened. */
bool ddp_verdict_is_own(const struct ddp_verdict *verdict,
			const struct ddp_step *step);

/*
 * Whether this rank, which has not ended yet, had left an error before the one of
 * RANK ended, or left its own; and whether any had, unless that one has failed by
 * itself: to end takes Python some time.
 */
bool ddp_verdict_had_error(const struct ddp_verdict *verdict,
			   const struct ddp_step *step, uint32_t rank);
bool ddp_verdict_awaits_error(const struct ddp_verdict *verdict,
			      const struct ddp_step *step);

/*
 * Returns true if a signal has ended this rank when it had told an error, and so was
 * about to end: others have sent it, as the step ended. Python would have ended
 * with 1.
 */
bool ddp_verdict_was_ending(const struct ddp_step *step, uint32_t rank);

/* The exit code of a step that failed so, of RANK, NODE and HANG. */
int ddp_verdict_code(const struct ddp_verdict *verdict,
		     const struct ddp_step *step);

/*
 * Adds lines that say RANK, NODE, HANG or SAVED. They repeat a warning of the
 * step's tasks if it waited in vain, or somebody has ended it.
 */
void ddp_verdict_add(struct ddp_text *text, const struct ddp_verdict *verdict,
		     const struct ddp_step *step);

/*
 * When the step is over: how many others have failed in the same way, by the
 * exit code and what they said last; how many have ended because of it, which
 * are those that failed too, and those of which nobody could tell the end; and
 * how many used the time of --ddp-grace, or were killed before it was over.
 */
void ddp_verdict_add_others(struct ddp_text *text,
			    const struct ddp_verdict *verdict,
			    const struct ddp_step *step);

/* A member for JSON: which ranks have failed in the same way. */
void ddp_verdict_add_alike_json(struct ddp_text *text,
				const struct ddp_verdict *verdict,
				const struct ddp_step *step);

/*
 * Where nobody is named, and agents have gone before their ranks: what can be
 * known all the same. Nothing if there are no such agents.
 */
void ddp_verdict_add_unknown(struct ddp_text *text,
			     const struct ddp_step *step);

/* Adds a line that says why nobody is named: the agent of which node is silent. */
void ddp_verdict_add_hidden(struct ddp_text *text, const struct ddp_step *step);

/*
 * Ranks that ended well long ago, while others still run, or may: who they are.
 */
void ddp_verdict_add_early(struct ddp_text *text, const struct ddp_step *step);

/* Those that had ended well when the step was killed, if others had not. */
void ddp_verdict_add_gone(struct ddp_text *text, const struct ddp_step *step);

#endif
