/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a run says while it trains: one line that is rewritten where stdout is
 * a terminal, lines now and then elsewhere (the first step, every tenth of the
 * steps, a skipped one, the last one, and where a minute has passed), and a
 * JSON object a line and step in the log.  Rank 0's alone.
 *
 * Of a step the log has "step", "loss", "lr", "norm", "skipped", "samples" (of
 * all ranks and steps so far), "seconds" (of all steps so far: evaluation and
 * the comparison of parameters are not in them), and of this step, in seconds,
 * "exposed", "waited", "busy" and "slowest_busy", then "slowest" (a rank) and
 * "host".  Of an evaluation it has "step" and "eval_loss".  A number that is
 * not finite is null; losses, lr and norm read back exactly.
 *
 * The last line leaves the first step out of its rates, as it warms up, if
 * there are more than two.  Exposed is the sum of "exposed" over that of the
 * steps' seconds.  The parallel efficiency is the share of their time that the
 * ranks did not wait for gradients, 1 - sum of waited / sum of seconds: what
 * they have of one rank's speed, as far as they do not slow each other down
 * while they compute.
 */
#ifndef DDP_TRAIN_REPORT_H
#define DDP_TRAIN_REPORT_H

#include <stdbool.h>
#include <stdint.h>

struct ddp_error;
struct report;

struct report_plan {
	const char *log;		/* file to create or empty, borrowed
					   until report_close(); NULL: none */
	uint64_t steps;
	uint64_t samples;		/* of one step, all ranks */
	uint64_t tokens;		/* likewise; 0: the model has none */
	int ranks;			/* at least 1 */
};

struct report_step {
	uint64_t step;			/* from 1 */
	double loss;			/* of all samples, before the update */
	double lr;
	double norm;			/* of the gradient before clipping */
	bool skipped;			/* not finite: no update was made */
	double seconds;			/* of the step, on rank 0 */
	double exposed;			/* from the end of a rank's backward
					   pass to its last gradient reduced,
					   the largest over ranks, but no more
					   than seconds: another rank may
					   begin the step earlier */
	double waited;			/* the mean of that over ranks */
	double busy;			/* until the end of the backward pass,
					   the mean over ranks */
	double slowest_busy;		/* the largest, and whose it is */
	int slowest;			/* 0 .. ranks - 1 */
	const char *host;		/* the slowest rank's node, borrowed
					   during the call */
};

/*
 * The log is created here, and emptied by the first step.  Returns 0, or -1
 * with error set.
 */
int report_open(struct report **report, const struct report_plan *plan,
		struct ddp_error *error);

/* Returns 0, or -1 with error set when the log or stdout cannot be written. */
int report_step(struct report *report, const struct report_step *step,
		struct ddp_error *error);

/* The mean loss over the held-out sequences after a step; likewise. */
int report_eval(struct report *report, uint64_t step, double loss,
		struct ddp_error *error);

/* The last line: speed, exposed share, parallel efficiency; likewise. */
int report_end(struct report *report, struct ddp_error *error);

/* Accepts NULL.  Leaves the cursor at the beginning of a line. */
void report_close(struct report *report);

#endif
