/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads files of /proc and /sys, which do not tell their size. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/state.h"

static char *read_all(int fd)
{
	size_t length = 0, size = 4096;
	char *text = malloc(size), *more;
	ssize_t got = text ? 1 : -1;

	while (got > 0) {
		do
			got = read(fd, text + length, size - length - 2);
		while (got < 0 && errno == EINTR);
		length += got > 0 ? (size_t)got : 0;
		if (got <= 0 || length + 2 < size)
			continue;
		more = realloc(text, size *= 2);
		if (!more)
			got = -1;
		else
			text = more;
	}
	if (got < 0) {
		free(text);
		return NULL;
	}
	text[length] = text[length + 1] = '\0';
	return text;
}

char *ddp_file_read(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	char *text;

	if (fd < 0)
		return NULL;
	text = read_all(fd);
	close(fd);
	return text;
}

char *ddp_file_read_of(pid_t pid, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	return ddp_file_read(path);
}
