/* SPDX-License-Identifier: BSD-3-Clause */
/* A task that ddp-info --doctor starts on a node: it prints what it finds. */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor.h"
#include "place/report.h"
#include "tool/tool.h"

void doctor_print_fact(const char *format, ...)
{
	const char *node = getenv("SLURMD_NODENAME");
	struct ddp_text text = { 0 };
	va_list arguments;
	char *line = NULL;

	va_start(arguments, format);
	if (vasprintf(&line, format, arguments) < 0)
		line = NULL;
	va_end(arguments);
	ddp_text_add_quoted(&text, "%s%s %s", DOCTOR_PREFIX,
			    node ? node : "-", line ? line : "");
	ddp_text_add(&text, "\n");
	free(line);
	tool_print_text(ddp_text_finish(&text), NULL);
	fflush(stdout);
}

static int print_facts(const char *config, struct ddp_error *error)
{
	struct ddp_text text = { 0 };
	char *facts, *line, *save;

	doctor_facts(&text, config, true);
	facts = ddp_text_finish(&text);
	if (!facts)
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "out of memory");
	for (line = strtok_r(facts, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save))
		doctor_print_fact("%s", line);
	free(facts);
	return 0;
}

static void print_variable(const char *fact, const char *variable)
{
	const char *value = getenv(variable);

	if (value)
		doctor_print_fact("%s %s", fact, value);
}

int doctor_task(const char *config, struct ddp_error *error)
{
	char what[16];

	check_get(config, "Doctor", what, sizeof(what));
	if (strcmp(what, "meet") != 0)
		return print_facts(config, error);
	print_variable("rank", "RANK");
	/* The plugin sets this one only where an agent runs. */
	if (getenv(DDP_PLACEMENT) && !getenv("TORCHELASTIC_ERROR_FILE"))
		doctor_print_fact("unwatched yes");
	print_variable("pmix_server", "PMIX_VERSION");
	print_variable("pmix_security", "PMIX_SECURITY_MODE");
	doctor_meet();
	return 0;
}
