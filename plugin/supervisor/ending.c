/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a step ends. Agents kill what is left on their nodes, at once, where
 * Slurm itself would first wait for KillWait. srun then ends by itself, but not
 * where a node or its slurmstepd is gone, and sometimes not at all.
 */
#define _GNU_SOURCE
#include "supervisor/ending.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proc/kernel.h"
#include "supervisor/cancel.h"
#include "supervisor/now.h"
#include "util/file.h"
#include "util/program.h"

enum {
	AGENTS_MS = 3000,	/* to kill, or to say what cannot be killed */
	SRUN_MS = 2000,		/* to end after that, and after scancel */
	LOST_MS = 700,		/* the same where it cannot */
	ASK_MS = 3000		/* how often Slurm is asked for the step */
};

/* Whether srun misses the ends of some ranks, as they cannot end or tell. */
static bool misses_ends(const struct ddp_attempt *attempt)
{
	const struct ddp_step *step = &attempt->step;
	uint32_t i;

	if (ddp_agents_open(&attempt->agents) > 0)
		return true;
	for (i = 0; i < step->node_count; i++)
		if ((step->nodes[i].lost && (!step->nodes[i].unlaunched ||
					     step->nodes[i].awaited)) ||
		    step->nodes[i].orphaned)
			return true;
	return false;
}

static void end_ranks(struct ddp_attempt *attempt, int64_t now_ns)
{
	int64_t grace_ns = ms(1000 * (int64_t)attempt->wish->grace_s);
	struct ddp_step_grace *grace = &attempt->step.grace;

	if (attempt->killed_ns)
		return;
	if (attempt->untold_ns && ddp_agents_open(&attempt->agents) == 0)
		grace_ns = 0;
	if (grace_ns && !grace->began_ns) {
		ddp_agents_tell(&attempt->agents, DDP_WIRE_SIGNAL, SIGTERM);
		grace->seconds = attempt->wish->grace_s;
		grace->began_ns = now_ns;
	}
	if (grace_ns && now_ns - grace->began_ns < grace_ns)
		return;
	ddp_agents_tell(&attempt->agents, DDP_WIRE_KILL, 0);
	/* Ranks without an agent srun itself can end. */
	if (attempt->untold_ns && !attempt->child.ended)
		kill(attempt->child.pid, SIGTERM);
	attempt->killed_ns = grace->over_ns = now_ns;
}

/* In the helper. Of a job that is srun's own nothing is left to wait for. */
static int cancel(const void *argument)
{
	const struct ddp_attempt *attempt = argument;
	uint32_t job_id = attempt->child.launch.job_id;
	uint32_t step_id = attempt->child.launch.step_id;
	char id[32];
	const char *argv[] = { "scancel", "-Q", id, NULL };

	/* Else srun was told to end it. */
	if (attempt->step.world_size > 0) {
		job_id = attempt->step.job_id;
		step_id = attempt->step.step_id;
	} else if (!attempt->child.launched_ms) {
		return 0;
	}
	if (attempt->wish->own_job)
		snprintf(id, sizeof(id), "%u", job_id);
	else
		snprintf(id, sizeof(id), "%u.%u", job_id, step_id);
	free(ddp_program_read(argv));
	return 0;
}

/* In the helper: 0 if Slurm knows the step no more. It prints a heading. */
static int ask(const void *argument)
{
	const struct ddp_attempt *attempt = argument;
	char id[32], *answer, *rows;
	const char *argv[] = { "squeue", "-s", id, "-o", "%i", NULL };
	bool gone;

	snprintf(id, sizeof(id), "%u.%u", attempt->step.job_id,
		 attempt->step.step_id);
	answer = ddp_program_read(argv);
	rows = answer ? strchr(answer, '\n') : NULL;
	gone = rows && !rows[1];
	free(answer);
	return gone ? 0 : 1;
}

static void strike(struct ddp_attempt *attempt)
{
	if (!attempt->struck)
		kill(attempt->child.pid, SIGKILL);
	attempt->struck = true;
}

static void end_failed(struct ddp_attempt *attempt, int64_t now_ns)
{
	bool misses = misses_ends(attempt);

	if (!attempt->asked_ns &&
	    (misses || now_ns - attempt->over_ns >= ms(SRUN_MS))) {
		ddp_child_help(&attempt->child, cancel, attempt);
		attempt->asked_ns = now_ns;
	}
	if (attempt->asked_ns &&
	    now_ns - attempt->asked_ns >= ms(misses ? LOST_MS : SRUN_MS))
		strike(attempt);
}

/* A task epilog, or that of srun, may take long; then Slurm has the step. */
static void end_well(struct ddp_attempt *attempt, int64_t now_ns)
{
	struct ddp_child *child = &attempt->child;

	if (attempt->asked_ns && child->answer == 0) {
		strike(attempt);
	} else if (!child->helper && now_ns - attempt->over_ns >= ms(ASK_MS) &&
		   now_ns - attempt->asked_ns >= ms(ASK_MS)) {
		ddp_child_help(child, ask, attempt);
		attempt->asked_ns = now_ns;
	}
}

bool ddp_ending_is_writing(const struct ddp_attempt *attempt)
{
	struct pollfd out = { .fd = STDOUT_FILENO, .events = POLLOUT };

	return attempt->relay.out.length > 0 || poll(&out, 1, 0) == 0;
}

/* srun may still have much to write, though whoever reads it is fast. */
static bool has_written(struct ddp_attempt *attempt)
{
	char *text = ddp_file_read_of(attempt->child.pid, "io");
	uint64_t before = attempt->written;

	attempt->written = ddp_kernel_read_io(text, "wchar");
	free(text);
	return attempt->written != before;
}

static bool is_over(const struct ddp_attempt *attempt, int64_t now_ns)
{
	if (!attempt->killed_ns)
		return ddp_agents_over(&attempt->agents);
	return ddp_agents_open(&attempt->agents) == 0 ||
	       now_ns - attempt->killed_ns >= ms(AGENTS_MS);
}

/*
 * Also where a signal to srun explains the failure and nobody is named: srun
 * may have taken the signal for a question, and go on. Where Slurm itself
 * cancels the step, it gives the ranks a time of its own; if it then has not
 * ended where we alone end steps, that was said of another.
 */
static bool must_end(const struct ddp_attempt *attempt, int64_t now_ns)
{
	bool failed = attempt->decided_ns &&
		      attempt->verdict.kind != DDP_VERDICT_SAVED;

	return attempt->verdict.kind == DDP_VERDICT_HANG ||
	       attempt->untold_ns ||
	       (attempt->wish->kill &&
		(ddp_attempt_named(attempt) || attempt->hidden ||
		 (failed && attempt->told))) ||
	       (attempt->wish->alone && failed &&
		!ddp_cancel_was_said(attempt, now_ns));
}

void ddp_ending_tick(struct ddp_attempt *attempt, int64_t now_ns)
{
	if (must_end(attempt, now_ns))
		end_ranks(attempt, now_ns);
	if (attempt->child.ended || !is_over(attempt, now_ns))
		return;
	if (!attempt->over_ns || ddp_ending_is_writing(attempt) ||
	    has_written(attempt))
		attempt->over_ns = now_ns;
	if (attempt->killed_ns)
		end_failed(attempt, now_ns);
	else
		end_well(attempt, now_ns);
}
