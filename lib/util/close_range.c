/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Closes descriptors, also where the kernel has no call for it; then one by one,
 * and without malloc, as processes that share memory call this.
 */
#define _GNU_SOURCE
#include "util/close_range.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_close_range		/* libc is older than the kernel may be */
#define SYS_close_range 436
#endif

/* No descriptor that is open has this number, or a higher one; -1 with errno. */
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
