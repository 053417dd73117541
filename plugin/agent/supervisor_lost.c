/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The supervisor has ended while tasks run. Then they are killed, but not where
 * Slurm ends a batch job: it kills the script with all that this has started, and
 * so srun, at once, and leaves the tasks the time of KillWait after SIGTERM. In
 * the step both look alike, so a helper process asks slurmctld.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/state.h"
#include "slurm/scontrol.h"
#include "util/file.h"

enum {
	ANSWER_MS = 8000,
	AGAIN_MS = 500,		/* from one question to the next */
	LOOK_MS = 50
};

/*
 * Returns true if Slurm ends this batch job. Its state tells, and its flag, which
 * is 0 for other jobs and counts how often a batch job began.
 */
static bool is_ended(const char *job)
{
	static const char *const lives[] = {
		"RUNNING", "SUSPENDED", "STOPPED", "RESIZING", "CONFIGURING",
		"SIGNALING",
	};
	char state[32];
	int flag;
	size_t i;

	if (sscanf(job, "%31s %d", state, &flag) != 2)
		return false;
	for (i = 0; i < sizeof(lives) / sizeof(lives[0]); i++)
		if (strcmp(state, lives[i]) == 0)
			return false;
	return flag != 0;
}

/* The helper. Slurm's SIGTERM for the step must not end squeue. */
__attribute__((noreturn)) static void ask(const struct ddp_agent *agent)
{
	char id[16], *job;

	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGTERM, SIG_IGN);
	dup2(DDP_AGENT_NULL, STDIN_FILENO);
	dup2(DDP_AGENT_NULL, STDERR_FILENO);
	ddp_close_from(STDERR_FILENO + 1);
	snprintf(id, sizeof(id), "%u", agent->job_id);
	if (agent->path)
		setenv("PATH", agent->path, 1);
	while (!(job = ddp_squeue_show(id, "-O",
				       "JobID:20,State:20,BatchFlag:20")))
		usleep(1000 * AGAIN_MS);
	_exit(is_ended(job) ? 0 : 1);
}

void ddp_lost_begin(struct ddp_agent *agent)
{
	struct ddp_lost *lost = &agent->lost;

	lost->until_ms = ddp_clock_ms() + ANSWER_MS;
	lost->helper = fork();
	if (lost->helper == 0)
		ask(agent);
	if (lost->helper > 0) {
		/* Whoever is first. */
		setpgid(lost->helper, lost->helper);
		return;
	}
	lost->helper = 0;
	ddp_agent_kill(agent);
}

int64_t ddp_lost_deadline(const struct ddp_agent *agent)
{
	return agent->lost.helper ? ddp_clock_ms() + LOOK_MS : DDP_CLOCK_NEVER;
}

void ddp_lost_serve(struct ddp_agent *agent)
{
	struct ddp_lost *lost = &agent->lost;
	bool late = ddp_clock_ms() >= lost->until_ms;
	int status;

	if (!lost->helper)
		return;
	if (late)
		kill(-lost->helper, SIGKILL);
	if (waitpid(lost->helper, &status, late ? 0 : WNOHANG) == 0)
		return;
	lost->helper = 0;
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		ddp_agent_kill(agent);
}
