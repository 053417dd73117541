/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A SPANK plugin that measures the task_init of the plugins between its two
 * lines in plugstack.conf, "begin" and "end FILE". Slurm loads it once for both
 * lines, so they share a variable. Each task adds a line to FILE: job and step,
 * its beginning in microseconds, and its time in nanoseconds.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <slurm/spank.h>

SPANK_PLUGIN(stopwatch, 1)

static struct timespec begin;

static int write_line(const char *path, const char *line)
{
	size_t length = strlen(line);
	int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
	int rc = fd >= 0 && write(fd, line, length) == (ssize_t)length ? 0 : -1;

	if (fd >= 0)
		close(fd);
	return rc;
}

int slurm_spank_task_init(spank_t spank, int argc, char **argv)
{
	uint32_t job = 0, step = 0;
	struct timespec end;
	char line[128];

	clock_gettime(CLOCK_MONOTONIC, &end);
	if (argc == 2 && strcmp(argv[0], "end") == 0) {
		spank_get_item(spank, S_JOB_ID, &job);
		spank_get_item(spank, S_JOB_STEPID, &step);
		snprintf(line, sizeof(line), "%u.%u %lld %lld\n", job, step,
			 begin.tv_sec * 1000000LL + begin.tv_nsec / 1000,
			 (end.tv_sec - begin.tv_sec) * 1000000000LL +
			 end.tv_nsec - begin.tv_nsec);
		if (write_line(argv[1], line) < 0)
			slurm_error("stopwatch: cannot write %s", argv[1]);
		return 0;
	}
	/* Last, so that this call itself is not measured. */
	clock_gettime(CLOCK_MONOTONIC, &begin);
	return 0;
}
