/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One collective call that makes communicators: options, this rank's card, the
 * exchange of cards, the census, NCCL. If this rank fails before the exchange,
 * the call goes on, with the error on its card. So the others do not wait for
 * this rank, and learn why.
 */
#ifndef DDP_NCCL_SETUP_H
#define DDP_NCCL_SETUP_H

#include <stdint.h>

#include "nccl/census.h"
#include "nccl/nccl.h"

enum {
	DDP_GROUP_SPLIT = 8,	/* follows those of enum ddp_group */
	DDP_SETUP_TEAMS = 3
};

/* A communicator in the making. */
struct ddp_team {
	uint32_t group;
	const char *name;
	struct ddp_roster roster;
	ncclUniqueId *ids;	/* [roster.root_count] */
	uint32_t id_count;	/* how many have arrived */
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
 * other threads' collectives. Returns 0, and ddp_setup_end must follow; or -1.
 */
int ddp_setup_begin(struct ddp_setup *setup, struct ddp_job *job,
		    const struct ddp_nccl_options *options,
		    struct ddp_error *error);
void ddp_setup_end(struct ddp_setup *setup);

/* Note in the card why this rank cannot take part. The first error counts. */
void ddp_setup_fail(struct ddp_setup *setup, const struct ddp_error *why);

/* Add a communicator; color and key are those of ddp_roster_create. */
void ddp_setup_add(struct ddp_setup *setup, uint32_t group, const char *name,
		   const uint32_t *color, const uint32_t *key);

/* Make the ids of which this rank is the root, exchange and check cards, and
 * make the communicators. Returns 0; or -1, and there are none. */
int ddp_setup_finish(struct ddp_setup *setup, struct ddp_error *error);

/* ---- id.c: unique ids. Any thread may call these. */

/* Make those of which this rank is the root; an error goes onto its card. */
void ddp_ids_make(struct ddp_setup *setup);

/* No rank will connect to them: the next call uses them. */
void ddp_ids_return(struct ddp_setup *setup);

/* Keep the ids on a rank's card of which it is the root in communicators of
 * this one. */
void ddp_ids_keep(struct ddp_setup *setup, uint32_t rank,
		  const struct ddp_card *card);

#endif
