/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads and replaces files, names private ones, closes descriptors. */
#define _GNU_SOURCE
#include "util/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util/clock.h"

char *ddp_file_read_fd(int fd, size_t max, size_t *length)
{
	size_t have = 0, size = 4096;
	int cause;
	char *text = malloc(size), *more;
	ssize_t got = text ? 1 : -1;

	while (got > 0) {
		do
			got = read(fd, text + have, size - have - 2);
		while (got < 0 && errno == EINTR);
		have += got > 0 ? (size_t)got : 0;
		if (have > max) {
			errno = EFBIG;
			got = -1;
		}
		if (got <= 0 || have + 2 < size)
			continue;
		more = realloc(text, size *= 2);
		if (!more)
			got = -1;
		else
			text = more;
	}
	if (got < 0) {
		cause = errno;	/* which free of glibc before 2.33 may set */
		free(text);
		errno = cause;
		return NULL;
	}
	text[have] = text[have + 1] = '\0';
	if (length)
		*length = have;
	return text;
}

char *ddp_file_read_regular(const char *what, const char *path, size_t max,
			    size_t *length, struct ddp_error *error)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	struct stat info;
	char *text = NULL;

	if (fd < 0 || fstat(fd, &info) < 0)
		ddp_error_set(error, DDP_ERROR_SYSTEM, "cannot open %s %s: %s",
			      what, path, strerror(errno));
	else if (!S_ISREG(info.st_mode))
		ddp_error_set(error, DDP_ERROR_ARGUMENT,
			      "%s %s is not a regular file", what, path);
	else if (!(text = ddp_file_read_fd(fd, max, length)) && errno == EFBIG)
		ddp_error_set(error, DDP_ERROR_ARGUMENT,
			      "%s %s is longer than %zu bytes", what, path,
			      max);
	else if (!text)
		ddp_error_set(error, DDP_ERROR_SYSTEM, "cannot read %s %s: %s",
			      what, path, strerror(errno));
	if (fd >= 0)
		close(fd);
	return text;
}

char *ddp_file_read(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	char *text;

	if (fd < 0)
		return NULL;
	text = ddp_file_read_fd(fd, SIZE_MAX, NULL);
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

bool ddp_path_next(const char **path, const char *name, char *file)
{
	const char *folder;
	size_t length;
	int size;

	while (*path && **path) {
		folder = *path;
		length = strcspn(folder, ":");
		*path += length + (folder[length] == ':');
		if (length == 0 || length >= PATH_MAX)
			continue;
		size = snprintf(file, PATH_MAX, "%.*s/%s", (int)length, folder,
				name);
		if (size < PATH_MAX)
			return true;
	}
	return false;
}

int ddp_random_fill(void *bytes, size_t size)
{
	ssize_t got = getrandom(bytes, size, 0);
	int fd = -1;

	if (got < 0)	/* before Linux 3.17 */
		fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		got = read(fd, bytes, size);
		close(fd);
	}
	return got == (ssize_t)size ? 0 : -1;
}

/*
 * mkostemp would give the file mode 0600, and the umask, by which others see a
 * file or not, cannot be read without a change that other threads would feel.
 */
int ddp_file_open_beside(const char *path, char **name)
{
	const char *slash = strrchr(path, '/');
	int folder = slash ? (int)(slash + 1 - path) : 0;
	uint32_t number;

	if (ddp_random_fill(&number, sizeof(number)) < 0 ||
	    asprintf(name, "%.*s.ddp-%08" PRIx32, folder, path, number) < 0) {
		*name = NULL;
		return -1;
	}
	return open(*name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
}

static int write_all(int fd, const char *text, size_t length)
{
	ssize_t written;

	while (length > 0) {
		written = write(fd, text, length);
		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return -1;
		text += written;
		length -= (size_t)written;
	}
	return 0;
}

int ddp_file_replace(const char *path, const char *text, size_t length)
{
	char *name;
	int fd = ddp_file_open_beside(path, &name);
	int rc = fd < 0 ? -1 : write_all(fd, text, length), cause = errno;

	if (fd >= 0 && close(fd) < 0 && rc == 0) {
		rc = -1;
		cause = errno;
	}
	if (rc == 0 && rename(name, path) < 0) {
		rc = -1;
		cause = errno;
	}
	if (fd >= 0 && rc < 0)
		unlink(name);
	free(name);
	errno = cause;
	return rc;
}

const char *const ddp_private_parents[] = { "/dev/shm", "/tmp", NULL };

void ddp_private_format(uint32_t job_id, uint32_t step_id, uint32_t rank,
			char name[DDP_PRIVATE_SIZE])
{
	snprintf(name, DDP_PRIVATE_SIZE,
		 "slurm-ddp.%" PRIu32 ".%" PRIu32 ".%" PRIu32 ".", job_id,
		 step_id, rank);
}

#ifndef SYS_close_range		/* libc is older than the kernel may be */
#define SYS_close_range 436
#endif

/*
 * No descriptor that is open has this number, or a higher one; -1 with errno. The
 * memory may be another process's, so this allocates nothing.
 */
static int find_end(void)
{
	static const char name[] = "\nFDSize:";
	char text[1024], *at;
	int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	ssize_t got;

	if (fd < 0)
		return -1;
	got = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[got > 0 ? got : 0] = '\0';
	at = strstr(text, name);
	errno = EPROTO;
	return at ? atoi(at + strlen(name)) : -1;
}

int ddp_close_from(int first)
{
	int fd, end;

	if (syscall(SYS_close_range, first, ~0U, 0) == 0)
		return 0;
	close(first);	/* room, where as many are open as may be */
	end = find_end();
	for (fd = first + 1; fd < end; fd++)
		close(fd);
	return end < 0 ? -1 : 0;
}

/* Linux tells at either end of a pipe how many bytes are in it. */
void ddp_drain_wait(int fd, int timeout_ms)
{
	struct pollfd no_reader = { .fd = fd, .events = 0 };
	int64_t until_ms = ddp_clock_ms() + timeout_ms;
	struct stat status;
	int left;

	if (fstat(fd, &status) < 0 || !S_ISFIFO(status.st_mode))
		return;
	while (ioctl(fd, FIONREAD, &left) == 0 && left > 0 &&
	       poll(&no_reader, 1, 1) <= 0 && ddp_clock_ms() < until_ms)
		;
}
