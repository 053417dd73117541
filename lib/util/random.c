/* SPDX-License-Identifier: BSD-3-Clause */
/* Random bytes of the kernel, also where it has no call for them. */
#define _GNU_SOURCE
#include "util/random.h"

#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

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
