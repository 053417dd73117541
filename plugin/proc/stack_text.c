/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads stacks. */
#define _GNU_SOURCE
#include "proc/stack_text.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "util/text.h"

enum {
	LINE_MAX_BYTES = 200,
	FROM_MAX = 150		/* bytes of a library's name that are shown */
};

/*
 * The function of a line: behind "    " of py-spy, "#1  0x00007f00 in " of gdb,
 * "#1  0x00007f00 " of eu-stack, which may have nothing there. NULL: the line
 * is another.
 */
static const char *find_function(const char *line)
{
	const char *at;
	int skipped = 0;

	if (strncmp(line, "    ", 4) == 0 && line[4] > ' ')
		return line + 4;
	if (line[0] != '#')
		return NULL;
	at = line + 1 + strspn(line + 1, "0123456789");
	at += strspn(at, " ");
	if (sscanf(at, "0x%*[0-9a-f]%n", &skipped) == 0 && skipped > 0)
		at += skipped;
	at += strspn(at, " ");
	if (strncmp(at, "in ", 3) == 0)
		at += 3;
	return *at && *at != '\n' ? at : "?";
}

/* The lines so far, and a run of frames without a name behind them. */
struct reading {
	char *stack;
	int lines;
	int unnamed;		/* how many */
	const char *from;	/* " from LIBRARY" of each, or nothing */
	size_t from_length;
};

static void add(struct reading *reading, const char *function, size_t length)
{
	char line[LINE_MAX_BYTES + 1];
	size_t used = strlen(reading->stack);

	snprintf(line, sizeof(line), "%.*s", (int)length, function);
	ddp_text_quote(line);
	if (reading->lines++ < DDP_STACK_LINES &&
	    used + strlen(line) + 2 <= DDP_WIRE_TAIL_SIZE)
		sprintf(reading->stack + used, "%s\n", line);
}

static void add_unnamed(struct reading *reading)
{
	char line[LINE_MAX_BYTES];

	if (reading->unnamed == 0)
		return;
	snprintf(line, sizeof(line), "?%.*s (%d frame%s without a name)",
		 (int)(reading->from_length < FROM_MAX ? reading->from_length :
		       FROM_MAX), reading->from, reading->unnamed,
		 reading->unnamed == 1 ? "" : "s");
	reading->unnamed = 0;
	add(reading, line, strlen(line));
}

/* "?" or, of gdb, "?? ()" and "?? () from LIBRARY" */
static void count_unnamed(struct reading *reading, const char *function,
			  size_t length)
{
	static const char unknown[] = "?? ()";
	size_t skipped = strncmp(function, unknown, strlen(unknown)) == 0 ?
			 strlen(unknown) : length;

	function += skipped;
	length -= skipped;
	if (reading->unnamed &&
	    (length != reading->from_length ||
	     memcmp(function, reading->from, length) != 0))
		add_unnamed(reading);
	reading->unnamed++;
	reading->from = function;
	reading->from_length = length;
}

void ddp_stack_read(const char *printed, char stack[DDP_WIRE_TAIL_SIZE])
{
	struct reading reading = { .stack = stack };
	const char *line, *next, *function;

	stack[0] = '\0';
	for (line = printed; *line; line = next) {
		next = strchrnul(line, '\n');
		next += *next == '\n';
		/* py-spy has a line for each thread, and the main one first. */
		if (reading.lines > 0 && strncmp(line, "Thread ", 7) == 0)
			break;
		function = find_function(line);
		if (function && *function == '?') {
			count_unnamed(&reading, function,
				      strcspn(function, "\n"));
		} else if (function) {
			add_unnamed(&reading);
			add(&reading, function, strcspn(function, "\n"));
		}
	}
	add_unnamed(&reading);
}

static bool is_common(const char *line)
{
	static const char *const prefixes[] = {
		"_", "?", "<", "Py", "std::", "futex", "pthread_", "poll",
		"ppoll", "select", "epoll_", "syscall", "clock_nanosleep",
		"nanosleep", "sem_", "read ", "recv", "wait",
	};
	size_t i;

	for (i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (strncmp(line, prefixes[i], strlen(prefixes[i])) == 0)
			return true;
	return false;
}

void ddp_stack_find(const char *stack, char name[DDP_STACK_NAME_SIZE])
{
	while (*stack && is_common(stack)) {
		stack += strcspn(stack, "\n");
		stack += *stack == '\n';
	}
	snprintf(name, DDP_STACK_NAME_SIZE, "%.*s",
		 (int)strcspn(stack, " (\n"), stack);
}
