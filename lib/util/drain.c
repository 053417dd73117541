/* SPDX-License-Identifier: BSD-3-Clause */
/* Waits until a pipe has been read. */
#define _GNU_SOURCE
#include "util/drain.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "util/clock.h"

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
