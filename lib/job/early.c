/* SPDX-License-Identifier: BSD-3-Clause */
/* Waits until other nodes have started their tasks. */
#define _GNU_SOURCE
#include "job/early.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "util/clock.h"

/* The age of this process; 0 where /proc does not say it. */
static int64_t find_age_ms(void)
{
	FILE *file = fopen("/proc/self/stat", "re");
	long hertz = sysconf(_SC_CLK_TCK);
	unsigned long long start = 0;
	struct timespec now;
	char line[1024] = "", *after;

	if (!file)
		return 0;
	after = fgets(line, sizeof(line), file) ? strrchr(line, ')') : NULL;
	fclose(file);
	/* Behind the name, which may have anything in it: field 22 */
	if (!after || hertz <= 0 ||
	    sscanf(after + 1, " %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
		   "%*s %*s %*s %*s %*s %*s %*s %*s %llu", &start) != 1 ||
	    clock_gettime(CLOCK_BOOTTIME, &now) < 0)
		return 0;
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000 -
	       (int64_t)(start * 1000 / (unsigned long long)hertz);
}

void ddp_early_wait(int64_t deadline)
{
	const char *name = getenv("PMIX_NAMESPACE");
	int64_t ms = DDP_EARLY_MS - find_age_ms();

	if (name && strncmp(name, "slurm.", 6) == 0)
		ddp_clock_sleep(ms < DDP_EARLY_MS ? ms : DDP_EARLY_MS,
				deadline);
}
