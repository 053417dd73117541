/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Holds back what srun prints while it reads its command line, and prints its
 * last sentence.
 */
#define _GNU_SOURCE
#include "srun/output.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <slurm/spank.h>

#include "srun/context.h"
#include "util/text.h"

void ddp_output_hold(void)
{
	ddp_srun.held = memfd_create("srun-stderr", MFD_CLOEXEC);
	ddp_srun.terminal = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 10);
	if (ddp_srun.held >= 0 && ddp_srun.terminal >= 0)
		dup2(ddp_srun.held, STDERR_FILENO);
}

void ddp_output_drop(void)
{
	fflush(stderr);
	if (ddp_srun.terminal >= 0) {
		dup2(ddp_srun.terminal, STDERR_FILENO);
		close(ddp_srun.terminal);
	}
	ddp_srun.terminal = -1;
}

/* Runs at exit, too, in case srun ends before it has read its command line. */
__attribute__((destructor)) void ddp_output_release(void)
{
	char buffer[4096];
	ssize_t got;

	ddp_output_drop();
	if (ddp_srun.held < 0)
		return;
	lseek(ddp_srun.held, 0, SEEK_SET);
	while ((got = read(ddp_srun.held, buffer, sizeof(buffer))) > 0)
		if (write(STDERR_FILENO, buffer, (size_t)got) != got)
			break;
	close(ddp_srun.held);
	ddp_srun.held = -1;
}

FILE *ddp_output_open(void)
{
	return fdopen(dup(ddp_srun.terminal >= 0 ? ddp_srun.terminal :
			  STDERR_FILENO), "w");
}

void ddp_srun_refuse(const char *format, ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	ddp_output_release();
	slurm_error("slurm-ddp: %s", ddp_text_quote(text));
	exit(1);
}
