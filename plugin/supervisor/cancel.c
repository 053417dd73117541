/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether somebody has cancelled the step, or its job, so that what its ranks
 * then do is no failure. slurmstepd says so; but it says the same where
 * mpi/pmix has the step killed as one of its ranks has ended, and may be faster
 * than that rank's agent. That is by SIGKILL, which agents do not survive, and
 * by which no rank ends with an exit code. A job that is cancelled may get
 * SIGTERM just before; then slurmctld knows it.
 */
#define _GNU_SOURCE
#include "supervisor/cancel.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "srun/program.h"
#include "supervisor/now.h"

enum {
	SAID_MS = 40000,	/* for so long it explains what ranks do: more
				 * than KillWait usually is */
	ANSWER_MS = 1500	/* slurmctld's */
};

static bool was_said(int64_t said_ns, int64_t now_ns)
{
	return said_ns && now_ns - said_ns < ms(SAID_MS);
}

void ddp_cancel_note(struct ddp_attempt *attempt, int64_t now_ns)
{
	const struct ddp_relay *relay = &attempt->relay;

	attempt->cancelled = was_said(relay->cancelled_ns, now_ns);
	attempt->aborted = was_said(relay->aborted_ns, now_ns);
}

/* In the helper: 0 if the job simply runs. */
static int ask(const void *argument)
{
	const struct ddp_attempt *attempt = argument;
	char id[16], *answer;
	const char *argv[] = { "scontrol", "-o", "show", "job", id, NULL };
	bool runs;

	/* A user has nothing from its complaints. */
	dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDERR_FILENO);
	snprintf(id, sizeof(id), "%u", attempt->step.job_id);
	answer = ddp_program_read(argv);
	runs = answer && strstr(answer, " JobState=RUNNING ");
	free(answer);
	return runs ? 0 : 1;
}

static bool has_lost_agents(const struct ddp_step *step)
{
	uint32_t i;

	for (i = 0; i < step->node_count; i++)
		if (step->nodes[i].left)
			return true;
	return false;
}

bool ddp_cancel_is_clear(struct ddp_attempt *attempt, int64_t now_ns)
{
	struct ddp_verdict verdict = ddp_verdict_find(&attempt->step);
	struct ddp_child *child = &attempt->child;

	if (!attempt->cancelled || !has_lost_agents(&attempt->step) ||
	    verdict.kind != DDP_VERDICT_RANK ||
	    ddp_verdict_is_own(&verdict, &attempt->step) ||
	    ddp_verdict_is_sent(&verdict, &attempt->step))
		return true;
	if (!attempt->doubted_ns) {
		attempt->doubted_ns = now_ns;
		ddp_child_help(child, ask, attempt);
	}
	if (child->helper)
		return now_ns - attempt->doubted_ns >= ms(ANSWER_MS);
	if (child->answer == 0)
		attempt->cancelled = false;
	child->answer = -1;
	return true;
}

bool ddp_cancel_explains(const struct ddp_attempt *attempt,
			 const struct ddp_verdict *verdict)
{
	return (attempt->cancelled &&
		!ddp_verdict_is_own(verdict, &attempt->step)) ||
	       (attempt->aborted &&
		ddp_verdict_is_sent(verdict, &attempt->step));
}
