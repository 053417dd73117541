/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzzes placement. The input is a byte each for the two policies, then two
 * for each rank: its mask, and the GPUs that it sees.
 */
#include "fuzz.h"
#include "fuzz_machine.h"
#include "place/placement.h"

enum { RANKS = 16 };

/* Read all but the ranks' memory, which is the caller's. */
static void read_params(const unsigned char *data, size_t size,
			struct ddp_placement_params *params,
			struct ddp_placement_rank *ranks, uint32_t views[][4])
{
	uint32_t i, k;

	params->gpus_policy = (enum ddp_gpus_policy)(data[0] % 4);
	params->cpus_policy = (enum ddp_cpus_policy)(data[1] % 3);
	params->cpus_bound = data[1] >> 7;
	params->rank_count = (uint32_t)(size - 2) / 2;
	if (params->rank_count > RANKS)
		params->rank_count = RANKS;
	params->ranks = ranks;
	for (i = 0; i < params->rank_count; i++) {
		ranks[i].mask.words[0] = data[2 + 2 * i];
		ranks[i].gpus = views[i];
		for (k = 0; k < FUZZ_GPUS; k++)
			if (data[3 + 2 * i] >> k & 1)
				views[i][ranks[i].gpu_count++] = k;
	}
}

static int is_among(uint32_t gpu, const uint32_t *gpus, uint32_t count)
{
	while (count > 0)
		if (gpus[--count] == gpu)
			return 1;
	return 0;
}

/* A rank has CPUs, all of its mask, and GPUs that it saw before. */
static void check_placement(const struct ddp_placement *got,
			    const struct ddp_placement_rank *rank)
{
	struct ddp_cpuset out;
	uint32_t i;

	CHECK(!ddp_cpuset_empty(&got->cpus));
	ddp_cpuset_andnot(&out, &got->cpus, &rank->mask);
	CHECK(ddp_cpuset_empty(&out));
	for (i = 0; i < got->gpu_count; i++)
		CHECK(is_among(got->gpus[i], rank->gpus, rank->gpu_count));
	for (i = 0; i < got->visible_count; i++) {
		CHECK(is_among(got->visible[i], rank->gpus, rank->gpu_count));
		CHECK(!is_among(got->visible[i], got->visible, i));
	}
	CHECK(got->why_count >= 1 && got->why_count <= DDP_WHY_MAX);
	for (i = 0; i < got->why_count; i++)
		fuzz_check_line(got->why[i]);
}

/* Unless they share, no two ranks have the same GPU where all see the same. */
static void check_apart(const struct ddp_placement_params *params,
			const struct ddp_placements *placements)
{
	const struct ddp_placement *a, *b;
	uint32_t i, k;

	for (i = 0; i < params->rank_count; i++)
		if (params->ranks[i].gpu_count != FUZZ_GPUS)
			return;
	for (i = 1; i < params->rank_count; i++)
		for (k = 0; k < i; k++) {
			a = ddp_placement_get(placements, i);
			b = ddp_placement_get(placements, k);
			CHECK(a->gpu_count == 0 ||
			      !is_among(a->gpus[0], b->gpus, b->gpu_count));
		}
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	struct ddp_placement_rank ranks[RANKS] = { 0 };
	struct ddp_view view = { .count = FUZZ_GPUS };
	struct ddp_placement_params params = { .gpus = &view };
	struct ddp_error error = { 0 };
	struct ddp_machine *machine;
	uint32_t views[RANKS][4], i;
	struct ddp_placements *placements;

	if (size < 2)
		return 0;
	machine = fuzz_machine();
	for (i = 0; i < FUZZ_GPUS; i++)
		view.gpus[i].gpu = i;
	params.machine = machine;
	read_params(data, size, &params, ranks, views);
	placements = ddp_placement_create(&params, &error);
	if (placements) {
		for (i = 0; i < params.rank_count; i++)
			check_placement(ddp_placement_get(placements, i),
					&ranks[i]);
		if (params.gpus_policy != DDP_GPUS_SHARE)
			check_apart(&params, placements);
	} else {
		fuzz_check_error(&error, DDP_ERROR_ARGUMENT);
	}
	ddp_placement_destroy(placements);
	ddp_machine_destroy(machine);
	return 0;
}
