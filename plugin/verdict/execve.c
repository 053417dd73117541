/* SPDX-License-Identifier: BSD-3-Clause */
/* A command that could not be executed, as slurmstepd says it. */
#define _GNU_SOURCE
#include "verdict/execve.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#define CANNOT "cannot execute "

enum { COMMAND_MAX = 160 };	/* bytes of it that are shown */

/* "slurmstepd-n1: error: execve(): COMMAND: No such file or directory" */
void ddp_execve_take(char *tail, uint32_t status, char cause[DDP_FAILURE_SIZE])
{
	static const char words[] = " error: execve(): ";
	const char *why = strerror(WEXITSTATUS(status));
	size_t length = strlen(tail), size = strlen(why), shown;
	char *line, *at;

	cause[0] = '\0';
	length -= length > 0 && tail[length - 1] == '\n';
	line = memrchr(tail, '\n', length);
	line = line ? line + 1 : tail;
	at = strstr(line, words);
	if (!at || !WIFEXITED(status))
		return;
	at += strlen(words);
	shown = (size_t)(tail + length - at);
	if (shown < size + 2 || memcmp(tail + length - size, why, size) != 0 ||
	    memcmp(tail + length - size - 2, ": ", 2) != 0)
		return;
	shown -= size + 2;
	snprintf(cause, DDP_FAILURE_SIZE, CANNOT "%.*s: %s",
		 shown < COMMAND_MAX ? (int)shown : COMMAND_MAX, at, why);
	*line = '\0';
}

bool ddp_execve_is(const char *cause)
{
	return cause && strncmp(cause, CANNOT, strlen(CANNOT)) == 0;
}
