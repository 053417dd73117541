/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads stacks. */
#define _GNU_SOURCE
#include "watch/stack.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "layout/text.h"

enum { LINE_MAX_BYTES = 200 };

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

static void add(char stack[DDP_WIRE_TAIL_SIZE], const char *function,
		size_t length)
{
	char line[LINE_MAX_BYTES + 1];
	size_t used = strlen(stack);

	snprintf(line, sizeof(line), "%.*s", (int)length, function);
	ddp_text_quote(line);
	if (used + strlen(line) + 2 <= DDP_WIRE_TAIL_SIZE)
		sprintf(stack + used, "%s\n", line);
}

void ddp_stack_read(const char *printed, char stack[DDP_WIRE_TAIL_SIZE])
{
	const char *line, *function;
	int lines = 0;

	stack[0] = '\0';
	for (line = printed; *line && lines < DDP_STACK_LINES;
	     line += line[strcspn(line, "\n")] ? strcspn(line, "\n") + 1 :
		     strlen(line)) {
		/* py-spy has a line for each thread, and the main one first. */
		if (lines > 0 && strncmp(line, "Thread ", 7) == 0)
			return;
		function = find_function(line);
		if (!function)
			continue;
		add(stack, function, strcspn(function, "\n"));
		lines++;
	}
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
