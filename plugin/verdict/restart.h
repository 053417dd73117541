/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether a step that has failed is started again, and on which nodes. Pure:
 * the supervisor tells what has happened, and starts srun.
 *
 * A process that fails is no fault of its node: the same nodes are used. A node
 * that is lost is left out for good, and a spare takes its place. The world
 * never gets smaller.
 */
#ifndef DDP_VERDICT_RESTART_H
#define DDP_VERDICT_RESTART_H

#include "layout/hostlist.h"
#include "layout/network.h"
#include "util/error.h"
#include "verdict/verdict.h"

enum {
	DDP_RESTART_QUICK_S = 10,	/* a failure so soon is a quick one */
	DDP_RESTART_QUICK_MAX = 3,	/* of them in a row, and it is a bug */
	DDP_RESTART_OFTEN_MAX = 10,	/* failures in a row, in less than ... */
	DDP_RESTART_OFTEN_S = 600,	/* ... this, are one, too */
	DDP_RESTART_NEVER = 65		/* a rank's exit code: EX_DATAERR */
};

/* Begin with { .max, .lists }. */
struct ddp_restart {
	uint32_t max;		/* --ddp-restarts */
	uint32_t done;		/* restarts so far */
	uint32_t quick;		/* quick failures in a row */
	uint32_t failed;	/* failures in a row that were no node's loss */
	int64_t lasted_ns[DDP_RESTART_OFTEN_MAX];	/* the last of them */
	bool lists;		/* srun may be given a list of nodes */
	bool overlap;		/* an earlier attempt still holds what it had */
	uint32_t count;		/* nodes of the step; 0: srun's own choice */
	uint32_t spares;	/* nodes that are kept back */
	const char **names;	/* count of the step, then the spares */
	struct ddp_hostlist *hosts;	/* whose names these are */
	struct ddp_network *network;	/* NULL: all nodes are equally near */
};

void ddp_restart_clear(struct ddp_restart *restart);

/* What the nodes of a step are chosen from; lists as Slurm writes them. */
struct ddp_restart_job {
	const char *nodes;	/* those of the job */
	const char *wanted;	/* --nodelist; NULL: not given */
	const char *excluded;	/* --exclude; the same */
	uint32_t count;		/* --nodes; 0: all but the spares */
	uint32_t spares;	/* --ddp-spares */
};

/* Choose nodes and spares. Returns 0, or -1 if the job has too few. */
int ddp_restart_choose(struct ddp_restart *restart,
		       const struct ddp_restart_job *job,
		       struct ddp_error *error);

/* The nodes of the step with commas between, the caller's; NULL on error. */
char *ddp_restart_format(const struct ddp_restart *restart);

/*
 * Leave a node of the step out for good. Returns the name of the spare that
 * takes its place, borrowed, the nearest one; NULL: none is left, and nothing
 * changes.
 */
const char *ddp_restart_replace(struct ddp_restart *restart, const char *node);

/* Leave a spare out for good. Returns false if this node is none. */
bool ddp_restart_drop(struct ddp_restart *restart, const char *node);

/*
 * An attempt has failed. Returns whether there is another, for which restart is
 * then ready. gone: none of its processes can still run, but for those on nodes
 * that are lost. Adds to text what the user is told; nothing where nobody
 * expects a restart.
 */
bool ddp_restart_next(struct ddp_restart *restart,
		      const struct ddp_verdict *verdict,
		      const struct ddp_step *step, bool gone,
		      struct ddp_text *text);

#endif
