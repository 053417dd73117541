/* SPDX-License-Identifier: BSD-3-Clause */
/* The log of a run, JSON lines; report.h names what is in them. */
#ifndef DDP_TRAIN_LOG_H
#define DDP_TRAIN_LOG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct ddp_error;
struct report_step;

struct log {
	FILE *file;			/* NULL: no log */
	const char *path;
	bool begun;			/* has a line of this run */
};

/*
 * Create the file at path, which is borrowed until log_close(); what it holds
 * is replaced by the first line.
 * Returns 0, or -1 with error set.
 */
int log_open(struct log *log, const char *path, struct ddp_error *error);

/*
 * Append a line and flush it; samples and seconds are those of the run so far.
 * Returns 0, also without a log, or -1 with error set.
 */
int log_step(struct log *log, const struct report_step *step,
	     uint64_t samples, double seconds, struct ddp_error *error);
int log_eval(struct log *log, uint64_t step, double loss,
	     struct ddp_error *error);

/* Accepts a log that is not open. */
void log_close(struct log *log);

#endif
