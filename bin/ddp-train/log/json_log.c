/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes the log of a run. */
#define _GNU_SOURCE
#include "log/json_log.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log/progress.h"
#include "tool/tool.h"
#include "util/error.h"

struct json_log {
	FILE *file;
	const char *path;
	bool begun;			/* it has a line of this run */
	off_t kept;			/* bytes of the steps before this run */
};

/*
 * The bytes of the lines up to step `done`: a last line that was not finished
 * does not count, and a later step ends them.
 */
static int measure_lines(FILE *file, const char *path, uint64_t done,
			 off_t *kept, struct ddp_error *error)
{
	char *line = NULL;
	size_t size = 0;
	ssize_t length;
	uint64_t step;
	int result = 0;

	while ((length = getline(&line, &size, file)) > 0 &&
	       line[length - 1] == '\n') {
		if (sscanf(line, "{\"step\":%" SCNu64 ",", &step) != 1) {
			result = ddp_error_set(error, DDP_ERROR_ARGUMENT,
					       "--log %s has a line that is "
					       "not of a log, at byte %jd; "
					       "name the log that --resume "
					       "is to go on with, or a new "
					       "file", path, (intmax_t)*kept);
			break;
		}
		if (step > done)
			break;
		*kept += length;
	}
	free(line);
	return result;
}

/* Finds how much of a regular file stays; a pipe keeps nothing. */
static int find_kept(struct json_log *log, uint64_t done,
		     struct ddp_error *error)
{
	struct stat status;
	FILE *file;
	int result;

	if (done == 0 || fstat(fileno(log->file), &status) < 0 ||
	    !S_ISREG(status.st_mode))
		return 0;
	file = fopen(log->path, "re");
	if (!file)
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "cannot read "
				     "--log %s, which --resume is to go on "
				     "with: %s; name a new file", log->path,
				     strerror(errno));
	result = measure_lines(file, log->path, done, &log->kept, error);
	fclose(file);
	return result;
}

int json_log_open(struct json_log **log, const char *path, uint64_t done,
		  struct ddp_error *error)
{
	struct json_log *new = calloc(1, sizeof(*new));

	if (!new)
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "no memory for "
				     "the log");
	new->path = path;
	new->file = tool_open_log("--log", path, error);
	if (!new->file || find_kept(new, done, error) < 0) {
		if (new->file)
			fclose(new->file);
		free(new);
		return -1;
	}
	*log = new;
	return 0;
}

static void begin_line(struct json_log *log, uint64_t step)
{
	/* This fails for a pipe, as only a regular file can be cut. */
	if (!log->begun && ftruncate(fileno(log->file), log->kept) < 0)
		errno = 0;
	log->begun = true;
	fprintf(log->file, "{\"step\":%" PRIu64, step);
}

/* Any double reads back exactly from 17 digits. */
static void write_number(struct json_log *log, const char *name, double value,
			 int digits)
{
	if (isfinite(value))
		fprintf(log->file, ",\"%s\":%.*g", name, digits, value);
	else
		fprintf(log->file, ",\"%s\":null", name);
}

static int end_line(struct json_log *log, struct ddp_error *error)
{
	fputs("}\n", log->file);
	if (fflush(log->file) == 0 && !ferror(log->file))
		return 0;
	return ddp_error_set(error, DDP_ERROR_SYSTEM, "cannot write --log %s: "
			     "%s; make room there or name another file",
			     log->path, strerror(errno));
}

int json_log_write_step(struct json_log *log, const struct progress_step *step,
			const struct json_sums *sums, struct ddp_error *error)
{
	begin_line(log, step->step);
	write_number(log, "loss", step->loss, 17);
	write_number(log, "lr", step->lr, 17);
	write_number(log, "norm", step->norm, 17);
	if (step->loss_scale > 0)
		write_number(log, "loss_scale", step->loss_scale, 17);
	fprintf(log->file, ",\"skipped\":%s,\"samples\":%" PRIu64
		",\"tokens\":%" PRIu64, step->skipped ? "true" : "false",
		sums->samples, sums->tokens);
	write_number(log, "seconds", sums->seconds, 9);
	write_number(log, "exposed", step->exposed, 9);
	write_number(log, "waited", step->waited, 9);
	write_number(log, "busy", step->busy, 9);
	write_number(log, "slowest_busy", step->slowest_busy, 9);
	fprintf(log->file, ",\"slowest\":%d", step->slowest);
	fputs(",\"host\":", log->file);
	tool_print_json(log->file, step->host);
	if (sums->mfu > 0)
		write_number(log, "mfu", sums->mfu, 9);
	if (sums->over_predicted > 0)
		write_number(log, "over_predicted", sums->over_predicted, 9);
	return end_line(log, error);
}

int json_log_write_eval(struct json_log *log, uint64_t step, double loss,
			struct ddp_error *error)
{
	begin_line(log, step);
	write_number(log, "eval_loss", loss, 17);
	return end_line(log, error);
}

void json_log_close(struct json_log *log)
{
	if (log)
		fclose(log->file);
	free(log);
}
