/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "layout/error.h"
#include "log.h"
#include "report.h"

int log_open(struct log *log, const char *path, struct ddp_error *error)
{
	/* Emptied by the first line: a start that is refused loses none. */
	FILE *file = fopen(path, "ae");

	if (!file)
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "cannot write "
				     "--log %s: %s; name a file that you may "
				     "write", path, strerror(errno));
	log->file = file;
	log->path = path;
	log->begun = false;
	return 0;
}

static void begin_line(struct log *log, uint64_t step)
{
	/* What is no regular file has nothing to be emptied of. */
	if (!log->begun && ftruncate(fileno(log->file), 0) < 0)
		errno = 0;
	log->begun = true;
	fprintf(log->file, "{\"step\":%" PRIu64, step);
}

/* With 17 digits any double reads back exactly. */
static void add_number(struct log *log, const char *name, double value,
		       int digits)
{
	if (isfinite(value))
		fprintf(log->file, ",\"%s\":%.*g", name, digits, value);
	else
		fprintf(log->file, ",\"%s\":null", name);
}

/* A node's name; in none is what JSON would want escaped. */
static void add_host(struct log *log, const char *host)
{
	fputs(",\"host\":\"", log->file);
	for (; *host; host++)
		if ((unsigned char)*host >= ' ' && !strchr("\"\\", *host))
			fputc(*host, log->file);
	fputc('"', log->file);
}

static int end_line(struct log *log, struct ddp_error *error)
{
	fputs("}\n", log->file);
	if (fflush(log->file) == 0 && !ferror(log->file))
		return 0;
	return ddp_error_set(error, DDP_ERROR_SYSTEM, "cannot write --log %s: "
			     "%s; make room there or name another file",
			     log->path, strerror(errno));
}

int log_step(struct log *log, const struct report_step *step,
	     uint64_t samples, double seconds, struct ddp_error *error)
{
	if (!log->file)
		return 0;
	begin_line(log, step->step);
	add_number(log, "loss", step->loss, 17);
	add_number(log, "lr", step->lr, 17);
	add_number(log, "norm", step->norm, 17);
	fprintf(log->file, ",\"skipped\":%s,\"samples\":%" PRIu64,
		step->skipped ? "true" : "false", samples);
	add_number(log, "seconds", seconds, 9);
	add_number(log, "exposed", step->exposed, 9);
	add_number(log, "waited", step->waited, 9);
	add_number(log, "busy", step->busy, 9);
	add_number(log, "slowest_busy", step->slowest_busy, 9);
	fprintf(log->file, ",\"slowest\":%d", step->slowest);
	add_host(log, step->host);
	return end_line(log, error);
}

int log_eval(struct log *log, uint64_t step, double loss,
	     struct ddp_error *error)
{
	if (!log->file)
		return 0;
	begin_line(log, step);
	add_number(log, "eval_loss", loss, 17);
	return end_line(log, error);
}

void log_close(struct log *log)
{
	if (log->file)
		fclose(log->file);
	log->file = NULL;
}
