/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data.h"
#include "layout/error.h"

/* What a handler of SIGBUS must know: no argument reaches it. */
static struct {
	const unsigned char *begin, *end;
	const char *path;
} mapped;

static void say(const char *text)
{
	if (write(STDERR_FILENO, text, strlen(text)) < 0)
		_exit(1);
}

/* Reading a page that the file no longer has raises SIGBUS. */
static void on_bus_error(int number, siginfo_t *info, void *context)
{
	const unsigned char *address = info->si_addr;

	(void)context;
	if (address < mapped.begin || address >= mapped.end) {
		signal(number, SIG_DFL);
		return;
	}
	say("ddp-train: --data ");
	say(mapped.path);
	say(" shrank while it was read; leave the file alone during a run\n");
	_exit(1);
}

static int check(const char *path, const struct stat *status, size_t min_size,
		 struct ddp_error *error)
{
	if (S_ISDIR(status->st_mode))
		return ddp_error_set(error, DDP_ERROR_SYSTEM,
				     "--data %s is a directory; name a file",
				     path);
	if (!S_ISREG(status->st_mode))
		return ddp_error_set(error, DDP_ERROR_SYSTEM,
				     "--data %s is not a regular file; copy "
				     "the text to one", path);
	if ((uintmax_t)status->st_size < min_size)
		return ddp_error_set(error, DDP_ERROR_SYSTEM,
				     "--data %s has %jd bytes; at least %zu "
				     "are needed", path,
				     (intmax_t)status->st_size, min_size);
	return 0;
}

int data_open(struct data *data, const char *path, size_t min_size,
	      struct ddp_error *error)
{
	struct sigaction action = {
		.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO
	};
	struct stat status;
	void *bytes;
	/* O_NONBLOCK: a pipe without a writer must not hold the job up. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0 || fstat(fd, &status) < 0) {
		ddp_error_set(error, DDP_ERROR_SYSTEM, "cannot open --data "
			      "%s: %s; name a file that every node can read",
			      path, strerror(errno));
		goto fail;
	}
	if (check(path, &status, min_size, error) < 0)
		goto fail;
	bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd,
		     0);
	if (bytes == MAP_FAILED) {
		ddp_error_set(error, DDP_ERROR_SYSTEM, "cannot map --data "
			      "%s: %s", path, strerror(errno));
		goto fail;
	}
	close(fd);
	data->bytes = bytes;
	data->size = (size_t)status.st_size;
	data->device = status.st_dev;
	data->inode = status.st_ino;
	mapped.begin = data->bytes;
	mapped.end = data->bytes + data->size;
	mapped.path = path;
	sigaction(SIGBUS, &action, NULL);
	return 0;
fail:
	if (fd >= 0)
		close(fd);
	return -1;
}

bool data_is(const struct data *data, const char *path)
{
	struct stat status;

	return data->bytes && stat(path, &status) == 0 &&
	       status.st_dev == data->device && status.st_ino == data->inode;
}

void data_close(struct data *data)
{
	if (!data->bytes)
		return;
	signal(SIGBUS, SIG_DFL);
	munmap((void *)data->bytes, data->size);
	data->bytes = NULL;
}
