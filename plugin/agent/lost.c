/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The supervisor has ended while tasks run. Then they are killed, but not where
 * Slurm ends a batch job: it kills the script with all that this has started, and
 * so srun, at once, and leaves the tasks the time of KillWait after SIGTERM. Only
 * slurmctld knows which it is; a helper process asks it.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/state.h"
#include "srun/scontrol.h"

enum {
	ANSWER_MS = 6000,
	LOOK_MS = 50
};

static bool has_word(const char *text, const char *name, const char *value)
{
	int length;
	const char *at = ddp_scontrol_find_word(text, name, &length);

	return (size_t)length == strlen(value) &&
	       strncmp(at, value, (size_t)length) == 0;
}

/* In the helper: whether Slurm ends the job. */
static bool is_ended(const struct ddp_agent *agent)
{
	char id[16], *text;

	snprintf(id, sizeof(id), "%u", agent->job_id);
	if (agent->path)
		setenv("PATH", agent->path, 1);
	text = ddp_scontrol_show("job", id);
	return has_word(text, "BatchFlag", "1") &&
	       !has_word(text, "JobState", "RUNNING");
}

void ddp_lost_begin(struct ddp_agent *agent)
{
	struct ddp_lost *lost = &agent->lost;

	lost->until_ms = ddp_clock_ms() + ANSWER_MS;
	lost->helper = fork();
	if (lost->helper == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(DDP_AGENT_NULL, STDIN_FILENO);
		dup2(DDP_AGENT_NULL, STDERR_FILENO);
		_exit(is_ended(agent) ? 0 : 1);
	}
	if (lost->helper > 0)
		return;
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
		kill(lost->helper, SIGKILL);
	if (waitpid(lost->helper, &status, late ? 0 : WNOHANG) == 0)
		return;
	lost->helper = 0;
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		ddp_agent_kill(agent);
}
