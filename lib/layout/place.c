/* SPDX-License-Identifier: BSD-3-Clause */
#include "layout/place.h"

#include <stdlib.h>

#include "layout/near.h"

const char *const ddp_gpus_words[] = { "all", "own", "share", "off", NULL };
const char *const ddp_cpus_words[] = { "near", "spread", "off", NULL };

struct ddp_place {
	uint32_t rank_count;
	struct ddp_placement *placements;
};

static int params_check(const struct ddp_place_params *params,
			struct ddp_error *error)
{
	const struct ddp_place_rank *ranks = params->ranks;
	struct ddp_cpuset cpus;
	uint32_t rank, i;

	if (params->rank_count == 0 || params->rank_count > DDP_PLACE_MAX)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				     "a node has 1 to %d ranks, not %u",
				     DDP_PLACE_MAX, params->rank_count);
	ddp_machine_cpus(params->machine, &cpus);
	for (rank = 0; rank < params->rank_count; rank++) {
		if (ddp_cpuset_empty(&ranks[rank].mask))
			return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				"local rank %u may not run on any CPU", rank);
		if (!ddp_cpuset_meet(&ranks[rank].mask, &cpus))
			return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				"local rank %u may run on no CPU of this "
				"topology, CPU %u say: is it another "
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

static int place_fill(struct ddp_place *place,
		      const struct ddp_place_params *params,
		      struct ddp_error *error)
{
	struct ddp_near *near = calloc(params->gpus->count + 1, sizeof(*near));
	uint32_t i;
	int rc;

	place->rank_count = params->rank_count;
	place->placements = calloc(params->rank_count,
				   sizeof(*place->placements));
	if (near == NULL || place->placements == NULL) {
		free(near);
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "out of memory");
	}
	for (i = 0; i < params->gpus->count; i++)
		ddp_near_find(params->machine, params->gpus->gpus[i].gpu,
			      &near[i]);
	rc = ddp_divide(params, near, place->placements, error);
	if (rc == 0)
		rc = ddp_bind(params, near, place->placements, error);
	free(near);
	return rc;
}

struct ddp_place *ddp_place_create(const struct ddp_place_params *params,
				   struct ddp_error *error)
{
	struct ddp_place *place;

	if (params_check(params, error))
		return NULL;
	place = calloc(1, sizeof(*place));
	if (place == NULL) {
		ddp_error_set(error, DDP_ERROR_SYSTEM, "out of memory");
		return NULL;
	}
	if (place_fill(place, params, error) == 0)
		return place;
	ddp_place_destroy(place);
	return NULL;
}

void ddp_place_destroy(struct ddp_place *place)
{
	if (place == NULL)
		return;
	free(place->placements);
	free(place);
}

const struct ddp_placement *ddp_place_get(const struct ddp_place *place,
					  uint32_t local_rank)
{
	return local_rank < place->rank_count ?
		&place->placements[local_rank] : NULL;
}
