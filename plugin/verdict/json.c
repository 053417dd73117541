/* SPDX-License-Identifier: BSD-3-Clause */
/* How a step ended, as JSON: for programs. */
#define _GNU_SOURCE
#include "verdict/facts.h"

#include <inttypes.h>
#include <sys/wait.h>

#include "verdict/hang.h"
#include "verdict/names.h"

static void add_text(struct ddp_text *text, const char *name,
		     const char *value)
{
	ddp_text_add(text, ", \"%s\": ", name);
	ddp_text_add_json(text, value);
}

/* One of the two is null. */
static void add_status(struct ddp_text *text, uint32_t status)
{
	if (WIFSIGNALED(status))
		ddp_text_add(text, ", \"exit_code\": null, \"signal\": %d",
			     WTERMSIG(status));
	else
		ddp_text_add(text, ", \"exit_code\": %d, \"signal\": null",
			     WEXITSTATUS(status));
}

static void add_seconds(struct ddp_text *text, const char *name,
			int64_t after_ns)
{
	if (after_ns < 0)
		after_ns = 0;
	ddp_text_add(text, "\"%s\": %" PRId64 ".%03d", name,
		     after_ns / 1000000000, (int)(after_ns / 1000000 % 1000));
}

static void add_after(struct ddp_text *text, int64_t after_ns)
{
	ddp_text_add(text, ", ");
	add_seconds(text, "after_s", after_ns);
}

static void add_launcher(struct ddp_text *text, const struct ddp_step *step,
			 const char *tail)
{
	struct ddp_who_cause cause;

	if (!step->launcher)
		return;
	add_text(text, "launcher", step->launcher);
	if (ddp_who_find_cause(step, tail, &cause))
		ddp_text_add(text, ", \"launcher_rank\": %u", cause.rank);
	else
		ddp_text_add(text, ", \"launcher_rank\": null");
}

static void add_verdict(struct ddp_text *text,
			const struct ddp_verdict *verdict,
			const struct ddp_step *step)
{
	static const char *const kinds[] = {
		[DDP_VERDICT_NONE] = "none", [DDP_VERDICT_RANK] = "rank",
		[DDP_VERDICT_NODE] = "node", [DDP_VERDICT_SIGNAL] = "signal",
		[DDP_VERDICT_HANG] = "hang", [DDP_VERDICT_SAVED] = "saved",
	};
	const struct ddp_step_rank *rank;

	ddp_text_add(text, "{\"kind\": \"%s\"", kinds[verdict->kind]);
	if (verdict->kind == DDP_VERDICT_RANK ||
	    verdict->kind == DDP_VERDICT_NODE) {
		add_text(text, "node", step->nodes[verdict->node].name);
		add_after(text, verdict->after_ns);
	}
	if (verdict->kind == DDP_VERDICT_NODE)
		add_text(text, "cause", step->nodes[verdict->node].orphaned ?
			 "slurmstepd has ended" :
			 step->nodes[verdict->node].unlaunched ?
			 "tasks were not started" : "does not answer");
	if (verdict->kind == DDP_VERDICT_RANK) {
		rank = &step->ranks[verdict->rank];
		ddp_text_add(text, ", \"rank\": %u, \"pid\": %u",
			     verdict->rank, rank->pid);
		add_launcher(text, step, rank->tail);
		add_text(text, "gpus", rank->gpus);
		add_status(text, rank->status);
		add_text(text, "cause", rank->cause ? rank->cause :
			 rank->guess);
		add_text(text, "message", rank->message);
		ddp_text_add(text, ", \"stderr\": ");
		ddp_text_add_json_lines(text, rank->tail);
		ddp_verdict_add_alike_json(text, verdict, step);
	}
	if (verdict->kind == DDP_VERDICT_HANG) {
		add_after(text, verdict->after_ns);
		ddp_hang_add_json(text, step);
	}
	ddp_text_add(text, "}");
}

static void add_ranks(struct ddp_text *text, const struct ddp_step *step)
{
	const struct ddp_step_rank *rank;
	const char *comma = "";
	uint32_t i;

	for (i = 0; i < step->world_size; i++) {
		rank = &step->ranks[i];
		if (!rank->known)
			continue;
		ddp_text_add(text, "%s\n    {\"rank\": %u", comma, i);
		add_text(text, "node", step->nodes[rank->node].name);
		ddp_text_add(text, ", \"pid\": %u", rank->pid);
		if (rank->ended) {
			add_after(text, ddp_step_end_ns(step, i) -
				  step->start_ns);
			add_status(text, rank->status);
		} else {
			ddp_text_add(text, ", \"after_s\": null, \"exit_code\": "
				     "null, \"signal\": null");
		}
		ddp_hang_add_rank_json(text, step, i);
		ddp_text_add(text, "}");
		comma = ",";
	}
}

static void add_lost(struct ddp_text *text, const struct ddp_step *step)
{
	const char *comma = "";
	uint32_t i;

	for (i = 0; i < step->node_count; i++) {
		if (!step->nodes[i].lost && !step->nodes[i].orphaned)
			continue;
		ddp_text_add(text, "%s", comma);
		ddp_text_add_json(text, step->nodes[i].name);
		comma = ", ";
	}
}

struct moment {
	const char *name;
	int64_t at_ns;		/* 0: it has not come */
};

/* Adds an object: each moment by its name, in seconds since srun was started. */
static void add_moments(struct ddp_text *text, const char *name,
			const struct moment *moments, size_t count,
			int64_t start_ns)
{
	const char *comma = "";
	size_t i;

	ddp_text_add(text, ",\n  \"%s\": {", name);
	for (i = 0; i < count; i++) {
		if (!moments[i].at_ns)
			continue;
		ddp_text_add(text, "%s", comma);
		add_seconds(text, moments[i].name, moments[i].at_ns - start_ns);
		comma = ", ";
	}
	ddp_text_add(text, "}");
}

static void add_history(struct ddp_text *text, const struct ddp_facts *facts)
{
	const int64_t *entered_ns = facts->entered_ns;
	const struct ddp_said *said = &facts->said;
	const struct moment phases[] = {
		{ "launching", entered_ns[DDP_PHASE_LAUNCHING] },
		{ "running", entered_ns[DDP_PHASE_RUNNING] },
		{ "failing", entered_ns[DDP_PHASE_FAILING] },
		{ "ending", entered_ns[DDP_PHASE_ENDING] },
		{ "over", entered_ns[DDP_PHASE_OVER] },
	};
	const struct moment events[] = {
		{ "srun_signalled", facts->told_ns },
		{ "srun_interrupted", facts->interrupted_ns },
		{ "slurm_cancels", said->cancelled_ns },
		{ "srun_aborts", said->aborted_ns },
		{ "srun_tells_failure", said->failed_ns },
		{ "mpi_abort", said->aborter_ns },
		{ "first_end", facts->step.end_ns },
		{ "unwatched_failed", facts->unwatched_ns },
		{ "slurmctld_asked", facts->asked_ns },
		{ "decided", facts->decided_ns },
		{ "ranks_sigterm", facts->step.grace.began_ns },
		{ "ranks_sigkill", facts->step.grace.over_ns },
		{ "last_end", facts->step.last_end_ns },
		{ "scancel", facts->scancelled_ns },
		{ "srun_ended", facts->ended_ns },
	};

	add_moments(text, "phases", phases, sizeof(phases) / sizeof(phases[0]),
		    phases[0].at_ns);
	add_moments(text, "events", events, sizeof(events) / sizeof(events[0]),
		    phases[0].at_ns);
}

void ddp_facts_add_json(struct ddp_text *text, const struct ddp_facts *facts,
			const char *start, const char *end,
			const char *attempts)
{
	const struct ddp_step *step = &facts->step;

	ddp_text_add(text, "{\n  \"schema\": 1");
	if (step->world_size > 0)
		ddp_text_add(text, ",\n  \"job\": %u, \"step\": %u, "
			     "\"world_size\": %u", step->job_id,
			     step->step_id, step->world_size);
	ddp_text_add(text, ",\n  \"start\": \"%s\", \"end\": \"%s\"", start,
		     end);
	ddp_text_add(text, ",\n  \"exit_code\": %d", ddp_facts_code(facts));
	add_history(text, facts);
	ddp_text_add(text, ",\n  \"verdict\": ");
	add_verdict(text, &facts->verdict, step);
	ddp_text_add(text, ",\n  \"decision\": ");
	ddp_text_add_json(text, facts->row);
	ddp_text_add(text, ",\n  \"ranks\": [");
	add_ranks(text, step);
	ddp_text_add(text, "\n  ],\n  \"nodes_lost\": [");
	add_lost(text, step);
	ddp_text_add(text, "]");
	if (attempts) {
		ddp_text_add(text, ",\n  \"attempts\": [\n");
		ddp_text_add_fixed(text, attempts);
		ddp_text_add(text, "]");
	}
	ddp_text_add(text, "\n}\n");
}
