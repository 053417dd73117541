/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All that is known of one attempt at a step: what agents, srun, slurmctld and the
 * user did, and what the supervisor has done itself. decide.h says what follows
 * from it. Times are ddp_clock_ns(); 0: not yet.
 */
#ifndef DDP_VERDICT_FACTS_H
#define DDP_VERDICT_FACTS_H

#include "verdict/said.h"
#include "verdict/step.h"
#include "verdict/verdict.h"

/* A step goes from one to a later one, and may leave some out. */
enum ddp_phase {
	DDP_PHASE_LAUNCHING,	/* srun has begun, and no agent is here */
	DDP_PHASE_RUNNING,	/* the first agent is */
	DDP_PHASE_FAILING,	/* a rank has failed, or a node is lost */
	DDP_PHASE_ENDING,	/* the ranks are told to end, or killed */
	DDP_PHASE_OVER,		/* srun has ended, and what it left */
	DDP_PHASES
};

/* slurmctld tells whether the job simply runs (RUNS), and is not cancelled. */
enum ddp_job { DDP_JOB_UNASKED, DDP_JOB_ASKED, DDP_JOB_RUNS, DDP_JOB_UNKNOWN };

struct ddp_facts {
	/* as the user wants it */
	bool kills;		/* a failure ends the step */
	bool alone;		/* and Slurm leaves that to the supervisor */

	struct ddp_step step;	/* what agents tell, and before that srun: its
				 * number */
	struct ddp_said said;
	enum ddp_phase phase;
	int64_t entered_ns[DDP_PHASES];
	int64_t failed_ns;	/* the first failure was heard of: perhaps in a
				 * later phase than FAILING */

	/* srun */
	uint32_t tasks;		/* that it launches; 0: not known */
	int64_t ended_ns;
	int status;		/* then: as of wait(2) */
	int64_t told_ns;	/* it last got a signal that ends a step */
	int64_t interrupted_ns;	/* and SIGINT */

	/* slurmctld */
	enum ddp_job job;
	int64_t asked_ns;

	/* noted when the first failure is heard of, as it may explain that */
	bool told;		/* srun got a signal just before */
	bool by_user;		/* it did, or was killed; or decided since */
	bool cancelled, aborted;	/* Slurm has said so just before */

	/* the verdict */
	struct ddp_verdict verdict;
	int64_t decided_ns;
	const char *row;	/* of the table in decide.c, by which it is so;
				 * NULL: not decided */
	bool hidden;		/* it names nobody, as an agent is silent */

	/* what the supervisor has done; see also step.grace */
	int64_t unwatched_ns;	/* it ends the step for a rank of which srun alone
				 * tells */
	int64_t scancelled_ns;	/* scancel was started */
	bool struck;		/* srun was killed */
};

void ddp_facts_clear(struct ddp_facts *facts);

/* The phase is this one from now on, unless it is that or a later one already. */
void ddp_facts_enter(struct ddp_facts *facts, enum ddp_phase phase,
		     int64_t now_ns);

/*
 * The first failure is heard of, unless there was one: the step is FAILING, and
 * it is noted what may explain the failure.
 */
void ddp_facts_fail(struct ddp_facts *facts, int64_t now_ns);

/* The exit code of the step, which is over. */
int ddp_facts_code(const struct ddp_facts *facts);

/* Returns true if a rank or a node was named, or the step hangs. */
bool ddp_facts_named(const struct ddp_facts *facts);

/*
 * Returns true if others have killed srun: what the ranks do follows from that.
 */
bool ddp_facts_was_killed(const struct ddp_facts *facts);

/* srun's exit code, as a shell has it. */
int ddp_facts_srun_code(const struct ddp_facts *facts);

/*
 * Returns true if no process of the step can still run on a node that is not
 * lost.
 */
bool ddp_facts_gone(const struct ddp_facts *facts);

/* Returns true if no agent has anything more to tell. */
bool ddp_facts_all_told(const struct ddp_facts *facts);

/*
 * json.c. All that a report has of a step that is over. start and end are in UTC, as
 * "2026-11-23T08:10:40Z". attempts: the reports of all, commas between; NULL: there
 * is one.
 */
void ddp_facts_add_json(struct ddp_text *text, const struct ddp_facts *facts,
			const char *start, const char *end,
			const char *attempts);

#endif
