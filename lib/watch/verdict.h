/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who failed first, and how that is said. Pure: the supervisor says what has
 * happened, and prints and writes what comes out.
 */
#ifndef DDP_WATCH_VERDICT_H
#define DDP_WATCH_VERDICT_H

#include "layout/text.h"
#include "watch/step.h"

enum {
	DDP_VERDICT_WAIT_MS = 250,	/* for earlier failures, elsewhere */
	DDP_VERDICT_SENT_MS = 500,	/* slurmstepd tells ends one by one */
	DDP_VERDICT_LINES = 10		/* of a rank's stderr are shown */
};

enum ddp_verdict_kind {
	DDP_VERDICT_NONE,	/* nothing has failed */
	DDP_VERDICT_RANK,	/* this rank did, first */
	DDP_VERDICT_NODE,	/* this node was lost first */
	DDP_VERDICT_SIGNAL,	/* somebody has ended the step by a signal */
	DDP_VERDICT_HANG	/* no rank makes progress: see hang.h */
};

struct ddp_verdict {
	enum ddp_verdict_kind kind;
	uint32_t rank, node;	/* node: also the rank's */
	int64_t after_ns;	/* since the step began */
};

/* The verdict by what is known of a step now. */
struct ddp_verdict ddp_verdict_find(const struct ddp_step *step);

/* Whether a signal has ended that rank which others send, as far as is known. */
bool ddp_verdict_is_sent(const struct ddp_verdict *verdict,
			 const struct ddp_step *step);

/* Whether it has failed by itself, whatever else has happened. */
bool ddp_verdict_is_own(const struct ddp_verdict *verdict,
			const struct ddp_step *step);

/*
 * How long to wait for more before there is a verdict. Of a rank that a signal
 * has killed it is open for longer whether it was the only one.
 */
int64_t ddp_verdict_wait_ms(const struct ddp_step *step);

/* The exit code of a step that failed so, of RANK, NODE and HANG. */
int ddp_verdict_code(const struct ddp_verdict *verdict,
		     const struct ddp_step *step);

/*
 * Ranks that have ended because of it: those that failed too, and, where the
 * step is over, those of which nobody could tell the end.
 */
uint32_t ddp_verdict_others(const struct ddp_verdict *verdict,
			    const struct ddp_step *step);

/* What is said of RANK, NODE and HANG, in lines; and of those others. */
void ddp_verdict_add(struct ddp_text *text, const struct ddp_verdict *verdict,
		     const struct ddp_step *step);
void ddp_verdict_add_others(struct ddp_text *text, uint32_t others);

/*
 * Where nobody is named, and agents have gone before their ranks: what can be
 * known all the same. went_on: the step did, after an agent had gone. Nothing if
 * there are no such agents.
 */
void ddp_verdict_add_unknown(struct ddp_text *text,
			     const struct ddp_step *step, bool went_on);

/* Ranks that ended well long ago, while others still run: who they are. */
void ddp_verdict_add_early(struct ddp_text *text, const struct ddp_step *step);

/* Those that had ended well when the step was killed, if others had not. */
void ddp_verdict_add_gone(struct ddp_text *text, const struct ddp_step *step);

/* What a report has beside the verdict. */
struct ddp_verdict_times {
	const char *start, *end;	/* in UTC, as "2026-11-23T08:10:40Z" */
	int exit_code;			/* of srun */
	const char *attempts;		/* the JSON of each, commas between;
					 * NULL: there is one only */
};

/* All of it, as JSON. */
void ddp_verdict_add_json(struct ddp_text *text,
			  const struct ddp_verdict *verdict,
			  const struct ddp_step *step,
			  const struct ddp_verdict_times *times);

#endif
