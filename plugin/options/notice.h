/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The notice that --ddp-signal gives to the ranks: a signal, some time before
 * their job ends. The end can change while the job runs, so it is asked for
 * again and again, and once more shortly before the signal. This file knows
 * when; who asks and who sends is others' matter. Times are those of time(2).
 */
#ifndef DDP_OPTIONS_NOTICE_H
#define DDP_OPTIONS_NOTICE_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "util/error.h"

enum {
	DDP_NOTICE_SECONDS_MAX = 65535,	/* as Slurm's --signal */
	DDP_NOTICE_ASK_S = 300,		/* the longest time between questions */
	DDP_NOTICE_AGAIN_S = 10,	/* when there was no answer */
	DDP_NOTICE_LAST_S = 5		/* the last one before the signal */
};

struct ddp_notice {
	int number;		/* the signal's; 0: no notice */
	uint32_t before_s;	/* how long before the job's end */
};

/*
 * Parse "SIGNAL@SECONDS": a name, with or without SIG, in upper or lower case,
 * or a number; no signal that a program cannot handle.
 */
int ddp_notice_parse(const char *text, struct ddp_notice *notice,
		     struct ddp_error *error);

/* The name of a signal that parse takes, such as "USR1"; else NULL. */
const char *ddp_notice_name(int number);

enum ddp_notice_answer {
	DDP_NOTICE_NONE,	/* no answer, or one without an end */
	DDP_NOTICE_UNLIMITED,	/* the job has no limit */
	DDP_NOTICE_SUSPENDED,	/* its end moves on */
	DDP_NOTICE_END
};

/*
 * Read what squeue says of a job's state and end, as "RUNNING 1795". Sets *end
 * where it returns END.
 */
enum ddp_notice_answer ddp_notice_read(const char *text, time_t *end);

struct ddp_notice_plan {
	uint32_t before_s;
	time_t start;	/* of the step */
	time_t end;	/* of the job, as last heard; 0: not known */
	time_t ask;	/* when to ask for it; 0: no more */
};

void ddp_notice_begin(struct ddp_notice_plan *plan, uint32_t before_s,
		      time_t now);

/* Take an answer. After UNLIMITED there are no questions and no signal. */
void ddp_notice_answer(struct ddp_notice_plan *plan, time_t now,
		       enum ddp_notice_answer answer, time_t end);

/*
 * When the signal is due; 0: not known. A step that starts later than that gets
 * it halfway to the end: a signal that its ranks do not handle yet would kill
 * them.
 */
time_t ddp_notice_due(const struct ddp_notice_plan *plan);

#endif
