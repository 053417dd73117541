/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "util/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char *ddp_file_read_fd(int fd, size_t *length)
{
	size_t have = 0, size = 4096;
	char *text = malloc(size), *more;
	ssize_t got = text ? 1 : -1;

	while (got > 0) {
		do
			got = read(fd, text + have, size - have - 2);
		while (got < 0 && errno == EINTR);
		have += got > 0 ? (size_t)got : 0;
		if (got <= 0 || have + 2 < size)
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
	text[have] = text[have + 1] = '\0';
	if (length)
		*length = have;
	return text;
}

char *ddp_file_read(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	char *text;

	if (fd < 0)
		return NULL;
	text = ddp_file_read_fd(fd, NULL);
	close(fd);
	return text;
}

char *ddp_file_read_of(pid_t pid, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	return ddp_file_read(path);
}

void ddp_file_read_line(const char *path, char *line, size_t size)
{
	FILE *file = fopen(path, "re");

	if (!file || !fgets(line, (int)size, file))
		*line = '\0';
	line[strcspn(line, "\n")] = '\0';
	if (file)
		fclose(file);
}
