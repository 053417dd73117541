/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The log of a run: a JSON object a line. A line of a step has "step", "loss",
 * "lr", "norm", in fp16 "loss_scale" (of the next step), "skipped", "samples"
 * and "tokens" (of all ranks and steps so far; 0 tokens for a model without
 * them), "seconds" (of all steps so far, without evaluation and the comparison
 * of parameters); and of this step, in seconds, "exposed", "waited", "busy" and
 * "slowest_busy", then "slowest" (a rank) and "host"; where the GPUs are known
 * "mfu", and "over_predicted", the step's time in units of the predicted one. A
 * line of an evaluation has "step" and "eval_loss". A number that
 * is not finite is null; losses, lr and norm read back exactly.
 */
#ifndef DDP_TRAIN_JSON_LOG_H
#define DDP_TRAIN_JSON_LOG_H

#include <stdint.h>

struct ddp_error;
struct json_log;
struct progress_step;

/*
 * Create or open the file, to go on after the lines of the first `done` steps;
 * the first line cuts off what follows them, so that a start that is refused
 * loses nothing. A file that is not such a log is an error where done is above
 * 0. path is borrowed until json_log_close(). Like the
 * functions below, returns 0, or -1 with error set.
 */
int json_log_open(struct json_log **log, const char *path, uint64_t done,
		  struct ddp_error *error);

/* The numbers of a step's line besides the step. */
struct json_sums {
	double seconds;			/* of all steps so far, and so on */
	uint64_t samples, tokens;
	double mfu, over_predicted;	/* of this step; 0: unknown */
};

int json_log_write_step(struct json_log *log, const struct progress_step *step,
			const struct json_sums *sums, struct ddp_error *error);

int json_log_write_eval(struct json_log *log, uint64_t step, double loss,
			struct ddp_error *error);

/* Accepts NULL. */
void json_log_close(struct json_log *log);

#endif
