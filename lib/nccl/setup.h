/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One collective call that makes communicators, from its options to the last of
 * them. What goes wrong on this rank before the exchange does not end the call
 * but goes into its card: the others must not wait for it.
 */
#ifndef DDP_NCCL_SETUP_H
#define DDP_NCCL_SETUP_H

#include <stdint.h>

#include "nccl/card.h"
#include "nccl/census.h"
#include "nccl/library.h"
#include "nccl/roster.h"

#define DDP_GROUP_SPLIT 8	/* after those of enum ddp_group */
#define DDP_SETUP_TEAMS 3

/* A communicator in the making. */
struct ddp_team {
	uint32_t group;
	const char *name;
	struct ddp_roster roster;
	ncclUniqueId *ids;	/* [roster.root_count] */
	uint32_t id_count;	/* of them that have arrived */
	ncclComm_t comm;
};

struct ddp_setup {
	struct ddp_job *job;
	struct ddp_nccl_options options;
	int64_t deadline;
	const struct ddp_nccl *nccl;
	ncclConfig_t *config;
	const uint32_t *colors;		/* of a split, [job size]; or NULL */
	unsigned int team_count;
	struct ddp_team teams[DDP_SETUP_TEAMS];
	struct ddp_card mine;
};

/*
 * Begin a collective: read the options, which set the deadline, and wait for
 * other threads' collectives. ddp_setup_end must follow if this returns 0. On
 * -1, error is set.
 */
int ddp_setup_begin(struct ddp_setup *setup, struct ddp_job *job,
		    const struct ddp_nccl_options *options,
		    struct ddp_error *error);
void ddp_setup_end(struct ddp_setup *setup);

/* Why this rank cannot take part; the first error counts. */
void ddp_setup_fail(struct ddp_setup *setup, const struct ddp_error *why);

/* Find NCCL and the GPU. */
void ddp_setup_prepare(struct ddp_setup *setup);

/* Add a communicator; color and key are those of ddp_roster_create. */
void ddp_setup_add(struct ddp_setup *setup, uint32_t group, const char *name,
		   const uint32_t *color, const uint32_t *key);

/* Make the ids that this rank roots, exchange cards, check them, and make the
 * communicators. Returns 0; or -1, and there are none. */
int ddp_setup_finish(struct ddp_setup *setup, struct ddp_error *error);

/* Of the ids on that rank's card, keep those that it roots in this one's
 * communicators. */
void ddp_setup_keep_ids(struct ddp_setup *setup, uint32_t rank,
			const struct ddp_card *card);

/* Where the ranks of a job run. */
struct ddp_places ddp_setup_get_places(const struct ddp_job *job);

#endif
