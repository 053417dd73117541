/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * --ddp-watchdog: whether a step hangs, and who holds it up. Agents say every
 * second for how long none of their ranks has made progress. When that is true
 * of all nodes for long enough, they are asked what each rank does, and one
 * rule names those who lag. Pure: the supervisor asks, prints and ends.
 */
#ifndef DDP_VERDICT_HANG_H
#define DDP_VERDICT_HANG_H

#include <stdbool.h>

#include "util/text.h"
#include "verdict/step.h"

enum {
	DDP_HANG_CODE = 124	/* the exit code, as timeout(1) has it */
};

/*
 * What sets those who lag apart, in the order in which it is asked. From BEATS
 * on it must be the same for more than half of the ranks that run, and they are
 * not named.
 */
enum ddp_hang_why {
	DDP_HANG_NOBODY,	/* nothing does: all are alike */
	DDP_HANG_STOPPED,	/* by a signal or a debugger */
	DDP_HANG_BLOCKED,	/* in uninterruptible wait */
	DDP_HANG_ENDED,		/* they have, and most have not */
	DDP_HANG_LEFT,		/* they run, and most have ended */
	DDP_HANG_BEATS,		/* fewer heartbeats */
	DDP_HANG_PLACE,		/* they wait elsewhere */
	DDP_HANG_IDLE,		/* their last progress is older */
	DDP_HANG_NCCL		/* they have launched less; asked last, and
				 * taken if it names fewer than the rules from
				 * BEATS on */
};

/* What a rank does. */
struct ddp_hang_rank {
	bool told;
	bool lags;
	char state;		/* as in /proc/PID/stat */
	uint32_t idle_ms;	/* since its last progress */
	uint64_t beats;
	uint32_t depth;		/* bytes of its stack; 0: not known */
	uint32_t behind;	/* in NCCL's operations: see ras.h */
	char *where;		/* what it waits in; NULL: it runs */
	char *stack;		/* lines, the innermost first; NULL */
};

struct ddp_hang {
	uint32_t seconds;
	enum ddp_hang_why why;
	int64_t judged_ns;		/* 0: not yet */
	struct ddp_hang_rank *ranks;	/* as those of the step */
};

/* A PULSE of a node, and a DETAIL, which is ignored if nobody asked. */
void ddp_hang_add_pulse(struct ddp_step *step, uint32_t node,
			const struct ddp_wire *wire);
void ddp_hang_add_detail(struct ddp_step *step, uint32_t node,
			 const struct ddp_wire *wire);

/*
 * For how long no rank of the step has made progress, of which its end is some:
 * others may have waited for it. 0 also if that cannot be known, as one rank has
 * not begun, a node is not watched any more, or its agent does not answer.
 */
uint32_t ddp_hang_idle_ms(const struct ddp_step *step, int64_t now_ns);

/* Make room for details. Returns 0; -1 if memory is short. */
int ddp_hang_begin(struct ddp_step *step, uint32_t seconds);

/* Whether all ranks that run have said what they do. */
bool ddp_hang_complete(const struct ddp_step *step);

/* Find those who lag: the step hangs from now on. */
void ddp_hang_judge(struct ddp_step *step, int64_t now_ns);

/* Forget the details: it goes on. Does nothing if there are none. */
void ddp_hang_clear(struct ddp_step *step);

/* What is said of it, in lines; and as members of JSON objects, each of which
 * begins with a comma: of the verdict, and of a rank. */
void ddp_hang_add_words(struct ddp_text *text, const struct ddp_step *step);
void ddp_hang_add_json(struct ddp_text *text, const struct ddp_step *step);
void ddp_hang_add_rank_json(struct ddp_text *text, const struct ddp_step *step,
			    uint32_t rank);

#endif
