/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A run prints a table while it trains: the names of columns, and rows below
 * them. On a terminal one row is rewritten. Elsewhere there are rows now and
 * then: the first step, every tenth of the steps, the last one, and one if a
 * minute has passed. A step that is skipped has a line of its own. Rank 0 alone
 * does this, and writes the log.
 *
 * The last line leaves the first step out of its rates, as it warms up, if
 * there are more than two. Exposed is the sum of "exposed" over that of the
 * steps' seconds. The parallel efficiency is the share of their time in which
 * the ranks did not wait for gradients, 1 - sum of waited / sum of seconds. It
 * is how close they are to one rank's speed, if they do not slow each other
 * down while they compute. The model FLOPs utilisation (MFU) is the FLOP of the
 * steps over what the GPUs could have done in their seconds.
 *
 * The log is a JSON object a line. A line of a step has "step", "loss", "lr",
 * "norm", in fp16 "loss_scale" (of the next step), "skipped", "samples" and
 * "tokens" (of all ranks and steps so far; 0 tokens for a model without them),
 * "seconds" (of all steps so far, without evaluation and the comparison of
 * parameters); and of this step, in seconds, "exposed", "waited", "busy" and
 * "slowest_busy", then "slowest" (a rank) and "host"; where the GPUs are known
 * "mfu", and "over_predicted", the step's time in units of the predicted one. A
 * line of an evaluation has "step" and "eval_loss". A number that is not finite
 * is null; losses, lr and norm read back exactly.
 */
#ifndef DDP_TRAIN_PROGRESS_H
#define DDP_TRAIN_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct ddp_error;
struct progress;

struct progress_plan {
	const char *log;		/* file to create or empty, borrowed
					   until progress_close(); NULL: none */
	uint64_t steps;
	uint64_t samples;		/* of one step, all ranks */
	uint64_t tokens;		/* likewise; 0: the model has none */
	int ranks;			/* at least 1 */
	uint64_t done;			/* steps before this run: the log goes
					   on after them; 0: a new one */
	double seconds;			/* that they took */
	double flops;			/* FLOP of a step, all ranks: see
					   predict.h */
};

struct progress_step {
	uint64_t step;			/* from 1 */
	double loss;			/* of all samples, before the update */
	double lr;
	double norm;			/* of the gradient before clipping */
	double loss_scale;		/* of the next step; 0: there is none */
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
 * The log is created here; the next step cuts off what follows the ones done,
 * so that a start that is refused loses nothing.
 * Returns 0, or -1 with error set.
 */
int progress_open(struct progress **progress, const struct progress_plan *plan,
		  struct ddp_error *error);

/*
 * Sets what the GPUs of all ranks do at most together, FLOP/s, and how long a
 * step should take, seconds; 0 if unknown. Call it before the first step.
 */
void progress_set_rates(struct progress *progress, double peak,
			double predicted);

/* Returns 0, or -1 with error set when the log or stdout cannot be written. */
int progress_print_step(struct progress *progress,
			const struct progress_step *step,
			struct ddp_error *error);

/* The mean loss over the held-out sequences after a step; likewise. */
int progress_print_eval(struct progress *progress, uint64_t step, double loss,
			struct ddp_error *error);

/* A line that stays; likewise. */
int progress_print_line(struct progress *progress, const char *line,
			struct ddp_error *error);

/* Seconds of all steps, also of those before this run; of NULL 0. */
double progress_count_seconds(const struct progress *progress);

/* The last line: speed, exposed share, parallel efficiency; likewise. */
int progress_print_end(struct progress *progress, struct ddp_error *error);

/* Accepts NULL. Leaves the cursor at the start of a line. */
void progress_close(struct progress *progress);

#endif
