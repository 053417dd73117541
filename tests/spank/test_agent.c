/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * In slurmstepd, tasks whose programs leave error files when they fail: which
 * of them the agent names, and that it leaves nothing behind. Ends come in the
 * order of local ranks.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <stdio.h>
#include <sys/stat.h>

#include "host.h"

#define STEPD(options) "slurmstepd 0 0 3 6 --ddp " options " train"
#define NODE "SLURM_JOB_ID=12|SLURM_STEP_NUM_TASKS=6|" \
	"SLURM_STEP_NODELIST=n[1-2]|SLURM_STEP_TASKS_PER_NODE=3(x2)|" \
	"SLURMD_NODENAME=n2|SLURM_DISTRIBUTION=block|SLURM_PROCID=3|TZ=UTC"
#define HERE NODE "|FAKE_FILES=@/errors"
#define NAME "/dev/shm/slurm-ddp.12.0."
#define ERROR(text) "{\"message\": {\"message\": \"" text "\"}}"
#define SAYS(line) .err = "slurm-ddp: rank " line "\n", .writes = 1
#define BROKEN "#writes=9.5:" ERROR("OSError: peer") "|#exits=1"

static const struct spank_case name_cases[] = {
	{ .name = "where errors are written", .env = HERE, .tasks = "#cpus=0",
	  .command = STEPD(""),
	  .want = "0:TORCHELASTIC_ERROR_FILE=" NAME "3.*|"
	  "1:TORCHELASTIC_ERROR_FILE=" NAME "4.*|"
	  "2:TORCHELASTIC_ERROR_FILE=" NAME "5.*|-0:DDP_HEARTBEAT_FILE" },
	{ .name = "and heartbeats", .env = HERE, .tasks = "#cpus=0",
	  .command = STEPD("--ddp-watchdog=5"),
	  .want = "0:DDP_HEARTBEAT_FILE=" NAME "3.*|"
	  "2:DDP_HEARTBEAT_FILE=" NAME "5.*" },
	{ .name = "not in TMPDIR, which a container may lack",
	  .env = HERE "|TMPDIR=@/errors", .tasks = "#cpus=0",
	  .command = STEPD(""),
	  .want = "0:TORCHELASTIC_ERROR_FILE=" NAME "3.*" },
	{ .name = "a user's own stays", .tasks = "#cpus=0",
	  .env = NODE "|TORCHELASTIC_ERROR_FILE=mine", .command = STEPD(""),
	  .want = "0:TORCHELASTIC_ERROR_FILE=mine|"
	  "2:TORCHELASTIC_ERROR_FILE=mine" },
	{ .name = "nor is anybody watched where /dev/shm takes no files",
	  .env = NODE "|FAKE_FILES=full", .tasks = "#cpus=0",
	  .command = STEPD(""), .want = "-0:TORCHELASTIC_ERROR_FILE|0:RANK=3",
	  .err = "slurm-ddp: on n2: 3 tasks of this node cannot be watched: No "
	  "space left on device; see that all users can make files in "
	  "/dev/shm there\n", .writes = 1 },
	{ .name = "no name where tasks do not meet", .env = NODE,
	  .tasks = "#cpus=0",
	  .command = STEPD("--ddp-gpus=off --ddp-cpus=off"),
	  .want = "-0:TORCHELASTIC_ERROR_FILE|0:RANK=3" },
};

static const struct spank_case tell_cases[] = {
	{ .name = "a task that fails, on Linux 4.18", .env = HERE,
	  .command = STEPD(""), .tasks = "#cpus=0|#old|#exits=0;"
	  "#cpus=0|#writes=7.25:" ERROR("ValueError: bad") "|#exits=3;"
	  "#cpus=0", .status = 3,
	  SAYS("4 failed first on n2, at 00:00:07.250: ValueError: bad") },
	{ .name = "a task that fails", .env = HERE, .command = STEPD(""),
	  .tasks = "#cpus=0;#cpus=0|#writes=7.25:" ERROR("ValueError: bad")
	  "|#exits=3;#cpus=0", .status = 3, .want = "1:RANK=4|-#agent",
	  SAYS("4 failed first on n2, at 00:00:07.250: ValueError: bad") },
	/* Rank 3 is seen to end first. */
	{ .name = "the one that failed first", .env = HERE,
	  .tasks = BROKEN ";" BROKEN ";#writes=9.499:" ERROR("KeyError: 'a'")
	  "|#exits=1", .command = STEPD(""), .status = 1,
	  SAYS("5 failed first on n2, at 00:00:09.499: KeyError: 'a'") },
	{ .name = "though it still runs", .env = HERE, .command = STEPD(""),
	  .tasks = BROKEN ";#writes=1:" ERROR("E: a") ";#exits=0", .status = 1,
	  SAYS("4 failed first on n2, at 00:00:01.000: E: a") },
	{ .name = "after one that ended well", .env = HERE,
	  .command = STEPD(""), .tasks = "#exits=0;#exits=0;" BROKEN,
	  .status = 1,
	  SAYS("5 failed first on n2, at 00:00:09.500: OSError: peer") },
	{ .name = "one that was killed when it had failed", .env = HERE,
	  .command = STEPD(""), .tasks = "#writes=5:" ERROR("E: a")
	  "|#killed=6;#exits=0;#exits=0", .status = 134,
	  SAYS("3 failed first on n2, at 00:00:05.000: E: a") },
	{ .name = "one that Slurm ended when it had failed", .env = HERE,
	  .command = STEPD(""), .tasks = "#writes=5:" ERROR("E: a")
	  "|#killed=15;#killed=15;" BROKEN, .status = 143,
	  SAYS("3 failed first on n2, at 00:00:05.000: E: a") },
	{ .name = "what others wrote is made printable", .env = HERE,
	  .command = STEPD(""), .status = 1, .tasks = "#exits=0;#exits=0;"
	  "#writes=5:" ERROR("E: \303\251\033[2J\\u001b\\nsrun: fake")
	  "|#exits=1",
	  SAYS("5 failed first on n2, at 00:00:05.000: E: \303\251?[2J?") },
};

/* Nothing is said. */
static const struct spank_case quiet_cases[] = {
	{ .name = "all end well", .env = HERE, .command = STEPD(""),
	  .tasks = "#exits=0", .want = "0:RANK=3|-#agent" },
	{ .name = "a task that waits for the agent", .command =
	  "slurmstepd 0 0 1 1 --ddp train", .tasks = "#children|#exits=0",
	  .env = "SLURM_JOB_ID=12|SLURM_STEP_NUM_TASKS=1|"
	  "SLURM_STEP_NODELIST=n1|SLURM_STEP_TASKS_PER_NODE=1|"
	  "SLURMD_NODENAME=n1|SLURM_DDP_CHILDREN=1|FAKE_FILES=@/errors",
	  .want = "0:RANK=0" },
	{ .name = "a task that is killed before it has started the agent",
	  .command = "slurmstepd 0 0 1 1 --ddp train", .tasks = "#exits=0",
	  .env = "SLURM_JOB_ID=12|SLURM_STEP_NUM_TASKS=1|"
	  "SLURM_STEP_NODELIST=n1|SLURM_STEP_TASKS_PER_NODE=1|"
	  "SLURMD_NODENAME=n1|FAKE_TORN=1|FAKE_FILES=@/errors",
	  .want = "0:#status=137" },
	{ .name = "a failure without a file", .env = HERE, .status = 3,
	  .command = STEPD(""), .tasks = "#exits=0;#exits=3;#exits=0" },
	{ .name = "and then others with one", .env = HERE, .status = 3,
	  .command = STEPD(""), .tasks = "#exits=3;" BROKEN ";" BROKEN },
	{ .name = "a task that is killed", .env = HERE, .status = 1,
	  .command = STEPD(""), .tasks = "#killed=9;" BROKEN ";" BROKEN },
	{ .name = "the end of a step by Slurm", .env = HERE, .status = 143,
	  .command = STEPD(""), .tasks = "#killed=15;#killed=15;" BROKEN },
	{ .name = "torchrun's end by a signal", .env = HERE, .status = 1,
	  .command = STEPD(""), .tasks = "#writes=5:"
	  ERROR("SignalException: Process 7 got signal: 15")
	  "|#exits=1;#exits=0;#exits=0" },
	{ .name = "a file that is something else", .env = HERE, .status = 1,
	  .command = STEPD(""),
	  .tasks = "#writes=5:{\"a\": 1}|#exits=1;#exits=0;#exits=0" },
	{ .name = "an empty file", .env = HERE, .status = 1,
	  .command = STEPD(""),
	  .tasks = "#writes=5:|#exits=1;#exits=0;#exits=0" },
	{ .name = "a user's own file", .status = 1, .command = STEPD(""),
	  .env = HERE "|TORCHELASTIC_ERROR_FILE=/dev/null",
	  .tasks = "#exits=1;#exits=0;#exits=0" },
};

/* The fake of mkostemp has made a link to each file. */
static void test_leftovers(void)
{
	char path[4096];
	struct stat status;
	struct dirent *entry;
	const char *left = NULL;
	unsigned int links = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/errors", cases_dir);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		links++;
		if (fstatat(dirfd(dir), entry->d_name, &status, 0) == 0)
			left = entry->d_name;
	}
	case_report(links > 0 && !left, "no file of a rank is left",
		    left ? left : path);
	if (dir)
		closedir(dir);
}

void test_agent(void)
{
	cases_run(name_cases, COUNT(name_cases));
	cases_run(tell_cases, COUNT(tell_cases));
	cases_run(quiet_cases, COUNT(quiet_cases));
	test_leftovers();
}
