/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A clock that is 30 s slow, as an LD_PRELOAD library, for the agent and for the
 * tasks it watches alone: slurmd itself waits by the clock. Both clocks are off,
 * as those of two machines are. (Time namespaces leave CLOCK_REALTIME alone.)
 */
#define _GNU_SOURCE
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { SLOW_S = 30 };

static int is_slow(void)
{
	char name[16] = "";

	prctl(PR_GET_NAME, name);
	return strncmp(name, "ddp-", 4) == 0;
}

int clock_gettime(clockid_t id, struct timespec *at)
{
	long rc = syscall(SYS_clock_gettime, id, at);

	if (rc == 0 && is_slow())
		at->tv_sec -= SLOW_S;
	return (int)rc;
}

time_t time(time_t *at)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	if (at)
		*at = now.tv_sec;
	return now.tv_sec;
}

int gettimeofday(struct timeval *restrict at, void *restrict zone)
{
	struct timespec now;

	(void)zone;
	clock_gettime(CLOCK_REALTIME, &now);
	*at = (struct timeval){ now.tv_sec, now.tv_nsec / 1000 };
	return 0;
}
