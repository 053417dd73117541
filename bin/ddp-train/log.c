/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "layout/error.h"
#include "log.h"

int log_open(struct log *log, const char *path, struct ddp_error *error)
{
	FILE *file = fopen(path, "we");

	if (!file)
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "cannot write "
				     "--log %s: %s; name a file that you may "
				     "write", path, strerror(errno));
	log->file = file;
	log->path = path;
	return 0;
}

int log_write(struct log *log, const struct log_step *step,
	      struct ddp_error *error)
{
	if (!log->file)
		return 0;
	fprintf(log->file, "{\"step\":%" PRIu64 ",\"loss\":%.9g,\"lr\":%.9g,"
		"\"samples\":%" PRIu64 ",\"seconds\":%.6f}\n", step->step,
		step->loss, step->lr, step->samples, step->seconds);
	if (fflush(log->file) == 0)
		return 0;
	return ddp_error_set(error, DDP_ERROR_SYSTEM, "cannot write --log "
			     "%s: %s", log->path, strerror(errno));
}

void log_close(struct log *log)
{
	if (log->file)
		fclose(log->file);
	log->file = NULL;
}
