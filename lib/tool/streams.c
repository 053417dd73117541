/* SPDX-License-Identifier: BSD-3-Clause */
/* The standard streams of a program. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool/tool.h"
#include "util/text.h"

void tool_start(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDONLY);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
	signal(SIGXFSZ, SIG_IGN);
}

int tool_flush(struct ddp_error *error)
{
	errno = 0;
	if (fflush(stdout) == 0 && !ferror(stdout))
		return 0;
	return ddp_error_set(error, DDP_ERROR_SYSTEM, "cannot write the "
			     "standard output: %s; send it elsewhere",
			     errno ? strerror(errno) : "a write failed");
}

bool tool_has_colour(FILE *file)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

	return (!no || *no == '\0') && term && strcmp(term, "dumb") != 0 &&
	       isatty(fileno(file)) == 1;
}

void tool_print_json(FILE *file, const char *string)
{
	struct ddp_text text = { 0 };
	char *json;

	ddp_text_add_json(&text, string);
	json = ddp_text_finish(&text);
	fputs(json ? json : "null", file);
	free(json);
}

void tool_print_error(const char *program, const struct ddp_error *error)
{
	fprintf(stderr, "%s: %s\n", program, error->text);
}

int tool_print_text(char *text, struct ddp_error *error)
{
	if (!text)
		return ddp_error_set(error, DDP_ERROR_SYSTEM,
				     "out of memory for the output");
	fputs(text, stdout);
	free(text);
	return 0;
}
