/* SPDX-License-Identifier: BSD-3-Clause */
/* The log of a run: one JSON object a line and step. */
#ifndef DDP_TRAIN_LOG_H
#define DDP_TRAIN_LOG_H

#include <stdint.h>
#include <stdio.h>

struct ddp_error;

struct log {
	FILE *file;		/* NULL: no log */
	const char *path;
};

struct log_step {
	uint64_t step;		/* from 1 */
	double loss;		/* of all ranks' batches, before the update */
	double lr;
	uint64_t samples;	/* of all ranks, this step's included */
	double seconds;		/* since training began */
};

/*
 * Create or empty the file at path, which is borrowed until log_close().
 * Returns 0, or -1 with error set.
 */
int log_open(struct log *log, const char *path, struct ddp_error *error);

/* Append and flush a line.  Returns 0 (also without a log) or -1 with error. */
int log_write(struct log *log, const struct log_step *step,
	      struct ddp_error *error);

/* Accepts a log that is not open. */
void log_close(struct log *log);

#endif
