/* SPDX-License-Identifier: BSD-3-Clause */
/* Decides by the facts of a step who is named, when, and what ends. */
#ifndef DDP_VERDICT_DECIDE_H
#define DDP_VERDICT_DECIDE_H

#include "verdict/facts.h"

enum ddp_decision_kind {
	DDP_DECISION_WAIT,	/* better evidence may come */
	DDP_DECISION_ASK,	/* slurmctld must tell whether the job runs */
	DDP_DECISION_NOBODY,	/* what ended is the supervisor's own doing */
	DDP_DECISION_USER,	/* somebody has ended the step */
	DDP_DECISION_HIDDEN,	/* another rank may have been the first */
	DDP_DECISION_CANDIDATE	/* the verdict by what agents tell is right */
};

struct ddp_decision {
	enum ddp_decision_kind kind;
	const char *row;	/* the name of the row that holds */
	struct ddp_verdict verdict;	/* of a rank only with CANDIDATE */
	bool by_user;		/* a user has ended the step, whatever the kind */
};

/* Decides about a step that has failed, by what is known now. */
struct ddp_decision ddp_decide(const struct ddp_facts *facts, int64_t now_ns);

/* While no rank has failed: whether all agents say that srun's lines are not of
 * this step. */
bool ddp_decide_forgets(const struct ddp_facts *facts, int64_t now_ns);

/* Returns true if Slurm's own lines are held back, as ours come first. */
bool ddp_decide_holds(const struct ddp_facts *facts, int64_t now_ns);

/* Returns true if the step must be ended now, by what is decided. */
bool ddp_decide_ends(const struct ddp_facts *facts, int64_t now_ns);

/*
 * srun has ended: whether by all that is known here a rank has called MPI_Abort
 * of which no agent could tell. Then slurmctld is asked whether the job was
 * cancelled; if that runs, take() adds the rank's end to the step.
 */
bool ddp_abort_is_likely(const struct ddp_facts *facts);
bool ddp_abort_take(struct ddp_facts *facts);

/*
 * Returns true if a user has ended the step, killed srun, or has pressed Ctrl-C
 * since it failed.
 */
bool ddp_facts_unwanted(const struct ddp_facts *facts);

#endif
