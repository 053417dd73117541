/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The placement of a node's ranks: the input is checked here, GPUs are chosen
 * in divide.c, and CPUs by them in bind.c.
 */
#include "place/placement.h"

#include <stdlib.h>

#include "place/near.h"
#include "util/text.h"

const char *const ddp_gpus_words[] = { "all", "own", "share", "off", NULL };
const char *const ddp_cpus_words[] = { "near", "spread", "off", NULL };

struct ddp_placements {
	uint32_t rank_count;
	struct ddp_placement *ranks;
};

static int check_params(const struct ddp_placement_params *params,
			struct ddp_error *error)
{
	const struct ddp_placement_rank *ranks = params->ranks;
	struct ddp_cpuset cpus;
	uint32_t rank, i;

	if (params->rank_count == 0 || params->rank_count > DDP_PLACEMENT_MAX)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				     "a node has 1 to %d ranks, not %u",
				     DDP_PLACEMENT_MAX, params->rank_count);
	ddp_machine_cpus(params->machine, &cpus);
	for (rank = 0; rank < params->rank_count; rank++) {
		if (ddp_cpuset_empty(&ranks[rank].mask))
			return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				"local rank %u may not run on any CPU", rank);
		if (!ddp_cpuset_meet(&ranks[rank].mask, &cpus))
			return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				"local rank %u may run on CPU %u, and on none "
				"that this topology has; is it another "
				"machine's?", rank,
				ddp_cpuset_next(&ranks[rank].mask, 0));
		for (i = 0; i < ranks[rank].gpu_count; i++)
			if (ranks[rank].gpus[i] >= params->gpus->count)
				return ddp_error_set(error, DDP_ERROR_ARGUMENT,
					"local rank %u has GPU %u of %u", rank,
					ranks[rank].gpus[i],
					params->gpus->count);
	}
	return 0;
}

static int fill_ranks(struct ddp_placements *placements,
		      const struct ddp_placement_params *params,
		      struct ddp_error *error)
{
	struct ddp_near *near = calloc(params->gpus->count + 1, sizeof(*near));
	uint32_t i;
	int rc;

	placements->rank_count = params->rank_count;
	placements->ranks = calloc(params->rank_count,
				   sizeof(*placements->ranks));
	if (!near || !placements->ranks) {
		free(near);
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "out of memory");
	}
	for (i = 0; i < params->gpus->count; i++)
		ddp_near_find(params->machine, params->gpus->gpus[i].gpu,
			      &near[i]);
	rc = ddp_divide(params, near, placements->ranks, error);
	if (rc == 0)
		rc = ddp_bind(params, near, placements->ranks, error);
	free(near);
	return rc;
}

struct ddp_placements *
ddp_placement_create(const struct ddp_placement_params *params,
		     struct ddp_error *error)
{
	struct ddp_placements *placements;

	if (check_params(params, error))
		return NULL;
	placements = calloc(1, sizeof(*placements));
	if (!placements) {
		ddp_error_set(error, DDP_ERROR_SYSTEM, "out of memory");
		return NULL;
	}
	if (fill_ranks(placements, params, error) == 0)
		return placements;
	ddp_placement_destroy(placements);
	return NULL;
}

void ddp_placement_destroy(struct ddp_placements *placements)
{
	if (!placements)
		return;
	free(placements->ranks);
	free(placements);
}

const struct ddp_placement *
ddp_placement_get(const struct ddp_placements *placements, uint32_t local_rank)
{
	return local_rank < placements->rank_count ?
		&placements->ranks[local_rank] : NULL;
}

void ddp_placement_positions(const struct ddp_placement *placement,
			     char out[DDP_POSITIONS_SIZE])
{
	char *at = out;
	uint32_t i, k;

	for (k = 0; k < placement->gpu_count; k++)
		for (i = 0; i < placement->visible_count; i++) {
			if (placement->visible[i] != placement->gpus[k])
				continue;
			if (at > out)
				*at++ = ',';
			at += ddp_text_digits(i, at);
		}
	*at = '\0';
}
