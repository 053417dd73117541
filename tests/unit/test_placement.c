/* SPDX-License-Identifier: BSD-3-Clause */
/* Which GPUs and CPUs the ranks of a node get. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "machines.h"
#include "place/steps.h"

#define RANKS 16

/* A node and its ranks, which at first see all GPUs and all CPUs. */
struct node {
	struct ddp_machine *machine;
	struct ddp_view view;
	struct ddp_placement_rank ranks[RANKS];
	uint32_t views[RANKS][DDP_GPU_MAX];
	struct ddp_placement_params params;
	struct ddp_error error;
};

static void init_node(struct node *node, struct ddp_machine *machine,
		      uint32_t ranks)
{
	uint32_t i, k;

	memset(node, 0, sizeof(*node));
	node->machine = machine;
	view_make(&node->view, machine->gpu_count);
	for (i = 0; i < RANKS; i++) {
		ddp_machine_cpus(machine, &node->ranks[i].mask);
		node->ranks[i].gpu_count = machine->gpu_count;
		node->ranks[i].gpus = node->views[i];
		for (k = 0; k < machine->gpu_count; k++)
			node->views[i][k] = k;
	}
	node->params = (struct ddp_placement_params){
		.machine = machine, .gpus = &node->view,
		.rank_count = ranks, .ranks = node->ranks };
}

static void set_mask(struct node *node, uint32_t rank, const char *text)
{
	cr_assert_eq(ddp_cpuset_parse(text, &node->ranks[rank].mask, NULL), 0);
}

static void see_only(struct node *node, uint32_t rank, uint32_t first,
		     uint32_t count)
{
	uint32_t i;

	node->ranks[rank].gpu_count = count;
	for (i = 0; i < count; i++)
		node->views[rank][i] = first + i;
}

static struct ddp_placements *place(struct node *node)
{
	return ddp_placement_create(&node->params, &node->error);
}

/* A rank's placement as "own GPUs/visible GPUs/CPUs". */
static void expect(const struct ddp_placements *placed, uint32_t rank,
		   const char *expected)
{
	const struct ddp_placement *placement = ddp_placement_get(placed, rank);
	char text[512] = "", cpus[256];
	uint32_t i;

	for (i = 0; i < placement->gpu_count; i++)
		sprintf(text + strlen(text), "%u", placement->gpus[i]);
	strcat(text, "/");
	for (i = 0; i < placement->visible_count; i++)
		sprintf(text + strlen(text), "%u", placement->visible[i]);
	ddp_cpuset_format(&placement->cpus, cpus, sizeof(cpus));
	strcat(text, "/");
	strcat(text, cpus);
	cr_expect_str_eq(text, expected, "rank %u: %s", rank, text);
}

/* 2 packages of 4 cores, two threads each (8 apart), 4 GPUs, two each. */
static struct ddp_machine *server(void)
{
	struct ddp_machine *machine = machine_make(2, 1, 4, 2, 4);
	uint32_t i;

	for (i = 0; i < 4; i++)
		machine_attach(machine, i, i / 2);
	return machine;
}

Test(place, one_gpu_each)
{
	struct node node;
	struct ddp_placements *placed;

	init_node(&node, server(), 4);
	placed = place(&node);
	cr_assert_not_null(placed, "%s", node.error.text);
	expect(placed, 0, "0/0123/0-1,8-9");
	expect(placed, 1, "1/0123/2-3,10-11");
	expect(placed, 2, "2/0123/4-5,12-13");
	expect(placed, 3, "3/0123/6-7,14-15");
	cr_expect(ddp_placement_get(placed, 3)->local_rank_is_device);
	cr_expect_eq(ddp_placement_get(placed, 1)->memory_numa, 0);
	cr_expect_eq(ddp_placement_get(placed, 2)->memory_numa, 1);
	cr_expect_null(ddp_placement_get(placed, 4));
	ddp_placement_destroy(placed);
	ddp_placement_destroy(NULL);
	ddp_machine_destroy(node.machine);
}

/* Slurm gave tasks to the sockets in turn: GPUs follow, CPUs stay. */
Test(place, gpus_follow_pinned_ranks)
{
	static const char *const masks[] = { "4,12", "0,8", "5,13", "1,9" };
	struct node node;
	struct ddp_placements *placed;
	uint32_t i;

	init_node(&node, server(), 4);
	for (i = 0; i < 4; i++)
		set_mask(&node, i, masks[i]);
	placed = place(&node);
	expect(placed, 0, "2/2031/4,12");
	expect(placed, 1, "0/2031/0,8");
	expect(placed, 2, "3/2031/5,13");
	expect(placed, 3, "1/2031/1,9");
	cr_expect(ddp_placement_get(placed, 0)->local_rank_is_device);
	ddp_placement_destroy(placed);
	/* --cpu-bind and --ddp-cpus=off keep any mask */
	set_mask(&node, 0, "3-4,12");
	node.params.cpus_bound = true;
	placed = place(&node);
	expect(placed, 0, "2/2031/3-4,12");
	cr_expect_eq(ddp_placement_get(placed, 0)->memory_numa, -1);
	ddp_placement_destroy(placed);
	node.params.cpus_bound = false;
	node.params.cpus_policy = DDP_CPUS_OFF;
	placed = place(&node);
	expect(placed, 0, "2/2031/3-4,12");
	ddp_placement_destroy(placed);
	ddp_machine_destroy(node.machine);
}

Test(place, several_gpus_each)
{
	struct node node;
	struct ddp_placements *placed;

	init_node(&node, server(), 2);
	placed = place(&node);
	expect(placed, 0, "01/0213/0-3,8-11");
	expect(placed, 1, "23/0213/4-7,12-15");
	ddp_placement_destroy(placed);
	/* 4 GPUs by 3 ranks: the first has one more */
	init_node(&node, node.machine, 3);
	placed = place(&node);
	expect(placed, 0, "01/0231/0-3,8-11");
	expect(placed, 1, "2/0231/4-5,12-13");
	expect(placed, 2, "3/0231/6-7,14-15");
	ddp_placement_destroy(placed);
	/* groups of GPUs are exchanged too */
	init_node(&node, node.machine, 2);
	set_mask(&node, 0, "4-7");
	set_mask(&node, 1, "0-3");
	placed = place(&node);
	expect(placed, 0, "23/2013/4-7");
	expect(placed, 1, "01/2013/0-3");
	ddp_placement_destroy(placed);
	ddp_machine_destroy(node.machine);
}

Test(place, own)
{
	struct node node;
	struct ddp_placements *placed;

	init_node(&node, server(), 2);
	node.params.gpus_policy = DDP_GPUS_OWN;
	placed = place(&node);
	expect(placed, 0, "01/01/0-3,8-11");
	expect(placed, 1, "23/23/4-7,12-15");
	cr_expect(!ddp_placement_get(placed, 0)->local_rank_is_device);
	ddp_placement_destroy(placed);
	/* a single rank has all GPUs, so LOCAL_RANK is a device */
	node.params.rank_count = 1;
	placed = place(&node);
	expect(placed, 0, "0123/0123/0-15");
	cr_expect(ddp_placement_get(placed, 0)->local_rank_is_device);
	ddp_placement_destroy(placed);
	ddp_machine_destroy(node.machine);
}

Test(place, share)
{
	struct node node;
	struct ddp_placements *placed;

	init_node(&node, server(), 6);
	placed = place(&node);
	cr_expect_null(placed);
	cr_expect_not_null(strstr(node.error.text, "--gres=gpu:6"));
	cr_expect_not_null(strstr(node.error.text, "--ddp-gpus=share"));
	node.params.gpus_policy = DDP_GPUS_SHARE;
	placed = place(&node);
	expect(placed, 0, "0/0/0,8");
	expect(placed, 1, "0/0/1,9");
	expect(placed, 2, "1/1/2,10");
	expect(placed, 3, "1/1/3,11");
	expect(placed, 4, "2/2/4-5,12-13");
	expect(placed, 5, "3/3/6-7,14-15");
	cr_expect(!ddp_placement_get(placed, 0)->local_rank_is_device);
	ddp_placement_destroy(placed);
	/* ranks share only if there are more of them than GPUs */
	node.params.rank_count = 4;
	placed = place(&node);
	expect(placed, 2, "2/0123/4-5,12-13");
	ddp_placement_destroy(placed);
	ddp_machine_destroy(node.machine);
}

/* Each rank is on one socket, in turn, and shares the GPU of that socket. */
Test(place, shares_near)
{
	struct ddp_machine *machine = machine_make(2, 1, 4, 1, 2);
	struct node node;
	struct ddp_placements *placed;
	uint32_t i;

	machine_attach(machine, 0, 0);
	machine_attach(machine, 1, 1);
	init_node(&node, machine, 4);
	for (i = 0; i < 4; i++)
		set_mask(&node, i, i % 2 ? "0-3" : "4-7");
	node.params.gpus_policy = DDP_GPUS_SHARE;
	placed = place(&node);
	expect(placed, 0, "1/1/4-5");
	expect(placed, 1, "0/0/0-1");
	expect(placed, 2, "1/1/6-7");
	expect(placed, 3, "0/0/2-3");
	ddp_placement_destroy(placed);
	ddp_machine_destroy(machine);
}

Test(place, off)
{
	struct node node;
	struct ddp_placements *placed;

	init_node(&node, server(), 6);
	node.params.gpus_policy = DDP_GPUS_OFF;
	placed = place(&node);
	/* 8 cores, 6 ranks: 2, 2, 1, 1, 1, 1 */
	expect(placed, 0, "//0-1,8-9");
	expect(placed, 1, "//2-3,10-11");
	expect(placed, 2, "//4,12");
	expect(placed, 5, "//7,15");
	cr_expect(!ddp_placement_get(placed, 0)->local_rank_is_device);
	ddp_placement_destroy(placed);
	ddp_machine_destroy(node.machine);
}

/* --gpus-per-task=1: each task sees its own GPU only. */
Test(place, views_cut_by_task)
{
	struct node node;
	struct ddp_placements *placed;
	uint32_t i;

	init_node(&node, server(), 4);
	for (i = 0; i < 4; i++)
		see_only(&node, i, 3 - i, 1);
	placed = place(&node);
	expect(placed, 0, "3/3/4-5,12-13");
	expect(placed, 1, "2/2/6-7,14-15");
	expect(placed, 2, "1/1/0-1,8-9");
	expect(placed, 3, "0/0/2-3,10-11");
	cr_expect(!ddp_placement_get(placed, 0)->local_rank_is_device);
	ddp_placement_destroy(placed);
	ddp_machine_destroy(node.machine);
}

/* --gpu-bind=closest: two tasks see the same two GPUs; device 0 is its own. */
Test(place, views_cut_by_socket)
{
	struct node node;
	struct ddp_placements *placed;
	uint32_t i;

	init_node(&node, server(), 4);
	for (i = 0; i < 4; i++)
		see_only(&node, i, i < 2 ? 2 : 0, 2);
	placed = place(&node);
	expect(placed, 0, "2/23/4-5,12-13");
	expect(placed, 1, "3/32/6-7,14-15");
	expect(placed, 2, "0/01/0-1,8-9");
	expect(placed, 3, "1/10/2-3,10-11");
	ddp_placement_destroy(placed);
	/* three tasks are too many for two GPUs here too */
	see_only(&node, 2, 2, 2);
	cr_expect_null(place(&node));
	cr_expect_not_null(strstr(node.error.text, "3 ranks have 2 GPUs"));
	ddp_machine_destroy(node.machine);
}

Test(place, views_that_overlap_stay)
{
	struct node node;
	struct ddp_placements *placed;

	init_node(&node, server(), 3);
	see_only(&node, 0, 0, 2);
	see_only(&node, 1, 1, 2);
	see_only(&node, 2, 3, 1);
	placed = place(&node);
	/* 8 cores: 3 of its socket, 3 of both, 2 of its socket */
	expect(placed, 0, "01/01/0-2,8-10");
	expect(placed, 1, "12/12/3-5,11-13");
	expect(placed, 2, "3/3/6-7,14-15");
	ddp_placement_destroy(placed);
	ddp_machine_destroy(node.machine);
}

Test(place, locality_unknown)
{
	struct node node;
	struct ddp_placements *placed;
	const struct ddp_placement *placement;

	init_node(&node, server(), 4);
	node.view.gpus[1].gpu = DDP_GPU_NONE;
	node.view.gpus[3].gpu = DDP_GPU_NONE;
	placed = place(&node);
	/* 2 cores each; ranks 1 and 3 take what the others leave */
	expect(placed, 0, "0/0123/0-1,8-9");
	expect(placed, 1, "1/0123/2-3,10-11");
	expect(placed, 2, "2/0123/4-5,12-13");
	expect(placed, 3, "3/0123/6-7,14-15");
	placement = ddp_placement_get(placed, 1);
	cr_expect_not_null(strstr(placement->why[1], "locality unknown"));
	ddp_placement_destroy(placed);
	/* A GPU beside a known one may be anywhere: no CPU is left out. */
	node.params.rank_count = 1;
	see_only(&node, 0, 0, 2);
	placed = place(&node);
	expect(placed, 0, "01/01/0-15");
	ddp_placement_destroy(placed);
	ddp_machine_destroy(node.machine);
}

Test(place, fewer_cores_than_ranks)
{
	struct node node;
	struct ddp_placements *placed;
	uint32_t i;

	/* 2 cores, 4 threads, 4 ranks: a thread each */
	init_node(&node, server(), 4);
	for (i = 0; i < 4; i++)
		set_mask(&node, i, "0-1,8-9");
	placed = place(&node);
	expect(placed, 0, "0/0123/0");
	expect(placed, 1, "1/0123/8");
	expect(placed, 2, "2/0123/1");
	expect(placed, 3, "3/0123/9");
	ddp_placement_destroy(placed);
	/* 1 thread: all share it */
	for (i = 0; i < 4; i++)
		set_mask(&node, i, "1");
	placed = place(&node);
	for (i = 0; i < 4; i++)
		cr_expect_eq(ddp_cpuset_count(&ddp_placement_get(placed, i)
					      ->cpus), 1);
	cr_expect_not_null(strstr(ddp_placement_get(placed, 0)->why[1],
				  "shared"));
	ddp_placement_destroy(placed);
	/* Slurm pinned each rank to one thread of the same core */
	node.params.rank_count = 2;
	set_mask(&node, 0, "8");
	set_mask(&node, 1, "0");
	placed = place(&node);
	expect(placed, 0, "01/0213/8");
	expect(placed, 1, "23/0213/0");
	ddp_placement_destroy(placed);
	ddp_machine_destroy(node.machine);
}

/* 4 of 32 cores near its GPU are too few for the only rank. */
Test(place, too_few_near)
{
	struct ddp_machine *machine = machine_make(2, 4, 4, 1, 2);
	struct node node;
	struct ddp_placements *placed;

	machine_attach(machine, 0, 3);
	machine_attach(machine, 1, 1);
	init_node(&node, machine, 1);
	node.params.gpus_policy = DDP_GPUS_OWN;
	see_only(&node, 0, 0, 1);
	placed = place(&node);
	expect(placed, 0, "0/0/0-15");
	ddp_placement_destroy(placed);
	/* two ranks share the package; each part has the rank's near cores */
	init_node(&node, machine, 2);
	placed = place(&node);
	expect(placed, 0, "0/01/0-3,12-15");
	expect(placed, 1, "1/01/4-11");
	ddp_placement_destroy(placed);
	/* with the cores of only two NUMA nodes, the near ones are enough */
	set_mask(&node, 0, "4-7,12-15");
	set_mask(&node, 1, "4-7,12-15");
	placed = place(&node);
	expect(placed, 0, "0/01/12-15");
	expect(placed, 1, "1/01/4-7");
	ddp_placement_destroy(placed);
	ddp_machine_destroy(machine);
}

Test(place, spread)
{
	struct ddp_machine *machine = machine_make(2, 2, 2, 1, 0);
	struct node node;
	struct ddp_placements *placed;

	init_node(&node, machine, 2);
	placed = place(&node);
	expect(placed, 0, "//0-3");
	expect(placed, 1, "//4-7");
	cr_expect_eq(ddp_placement_get(placed, 0)->memory_numa, -1);
	ddp_placement_destroy(placed);
	node.params.rank_count = 4;
	placed = place(&node);
	expect(placed, 2, "//4-5");
	cr_expect_eq(ddp_placement_get(placed, 2)->memory_numa, 2);
	ddp_placement_destroy(placed);
	ddp_machine_destroy(machine);
}

Test(place, masks_of_another_machine)
{
	struct node node;
	struct ddp_placements *placed;

	init_node(&node, server(), 1);
	set_mask(&node, 0, "2,100");
	placed = place(&node);
	expect(placed, 0, "0123/0123/2");
	cr_expect_not_null(strstr(ddp_placement_get(placed, 0)->why[2],
				  "left out"));
	ddp_placement_destroy(placed);
	set_mask(&node, 0, "100-200");
	cr_expect_null(place(&node));
	cr_expect_not_null(strstr(node.error.text, "CPU 100"));
	ddp_cpuset_clear(&node.ranks[0].mask);
	cr_expect_null(place(&node));
	cr_expect_not_null(strstr(node.error.text, "any CPU"));
	ddp_machine_destroy(node.machine);
}

Test(place, refuses_nonsense)
{
	struct node node;

	init_node(&node, server(), 0);
	cr_expect_null(place(&node));
	node.params.rank_count = DDP_PLACEMENT_MAX + 1;
	cr_expect_null(place(&node));
	node.params.rank_count = 1;
	node.views[0][0] = 4;
	cr_expect_null(place(&node));
	ddp_machine_destroy(node.machine);
}

/* Random machines, GPUs and masks. */
struct world {
	struct node node;
	uint64_t state;
};

static void random_mask(struct world *w, struct ddp_cpuset *mask)
{
	struct ddp_machine *machine = w->node.machine;
	uint32_t i, from, count;

	ddp_cpuset_clear(mask);
	from = random_below(&w->state, machine->cpu_count);
	count = random_below(&w->state, machine->cpu_count) + 1;
	for (i = 0; i < count; i++)
		ddp_cpuset_add(mask, machine->cpus[(from + i) %
						   machine->cpu_count].cpu);
}

static void random_world(struct world *w, uint64_t seed)
{
	struct ddp_machine *machine;
	struct ddp_cpuset mask;
	uint32_t gpus, ranks, numas, packages, kind, i;

	w->state = seed * 2654435761u + 1;
	packages = random_below(&w->state, 3) + 1;
	numas = random_below(&w->state, 3) + 1;
	gpus = random_below(&w->state, 7);
	machine = machine_make(packages, numas,
			       random_below(&w->state, 5) + 1,
			       random_below(&w->state, 3) + 1, gpus);
	for (i = 0; i < gpus; i++)
		machine_attach(machine, i,
			       random_below(&w->state, packages * numas));
	ranks = random_below(&w->state, gpus > 0 ? gpus : 8) + 1;
	init_node(&w->node, machine, ranks);
	kind = random_below(&w->state, 3);
	random_mask(w, &mask);
	for (i = 0; i < ranks && kind > 0; i++) {
		if (kind == 2)
			random_mask(w, &mask);
		w->node.ranks[i].mask = mask;
	}
	if (random_below(&w->state, 8) == 0 && gpus > 0)
		w->node.view.gpus[0].gpu = DDP_GPU_NONE;
}

static uint32_t distance_of(const struct node *node, uint32_t rank, uint32_t gpu)
{
	struct ddp_near near;
	uint32_t count;

	ddp_near_find(node->machine, node->view.gpus[gpu].gpu, &near);
	return ddp_near_distance(&near, &node->ranks[rank].mask, &count);
}

static uint32_t group_distance(const struct node *node, uint32_t rank,
			       uint32_t group)
{
	uint32_t ranks = node->params.rank_count, gpus = node->view.count;
	uint32_t more = gpus % ranks, size = gpus / ranks, sum = 0, i, first;

	first = group * size + (group < more ? group : more);
	for (i = first; i < first + size + (group < more); i++)
		sum += distance_of(node, rank, i);
	return sum;
}

/* The least sum of all ways to give the ranks from rank on a group each. */
static uint32_t least_distance(const struct node *node, uint32_t rank,
			       uint32_t taken)
{
	uint32_t best = UINT32_MAX, sum, group;

	if (rank == node->params.rank_count)
		return 0;
	for (group = 0; group < node->params.rank_count; group++) {
		if (taken >> group & 1)
			continue;
		sum = group_distance(node, rank, group) +
		      least_distance(node, rank + 1, taken | 1u << group);
		if (sum < best)
			best = sum;
	}
	return best;
}

/* Give a rank a CPU of its own; others may change theirs for it (Kuhn). */
static bool match_cpu(const struct node *node, uint32_t rank, uint32_t *owner,
		      struct ddp_cpuset *tried)
{
	uint32_t i, cpu;

	for (i = 0; i < node->machine->cpu_count; i++) {
		cpu = node->machine->cpus[i].cpu;
		if (!ddp_cpuset_has(&node->ranks[rank].mask, cpu) ||
		    ddp_cpuset_has(tried, cpu))
			continue;
		ddp_cpuset_add(tried, cpu);
		if (owner[i] == UINT32_MAX ||
		    match_cpu(node, owner[i], owner, tried)) {
			owner[i] = rank;
			return true;
		}
	}
	return false;
}

static bool can_be_disjoint(const struct node *node)
{
	uint32_t owner[256], rank, i;

	for (i = 0; i < 256; i++)
		owner[i] = UINT32_MAX;
	for (rank = 0; rank < node->params.rank_count; rank++) {
		struct ddp_cpuset tried = { { 0 } };

		if (!match_cpu(node, rank, owner, &tried))
			return false;
	}
	return true;
}

static void check_gpus(const struct node *node,
		       const struct ddp_placements *placed,
		       uint64_t seed)
{
	const struct ddp_placement *first = ddp_placement_get(placed, 0);
	uint32_t ranks = node->params.rank_count, distance = 0, own = 0, i, k;

	for (i = 0; i < ranks; i++) {
		const struct ddp_placement *one = ddp_placement_get(placed, i);

		cr_assert_eq(one->visible_count, node->view.count);
		cr_assert_arr_eq(one->visible, first->visible,
				 one->visible_count * sizeof(uint32_t),
				 "seed %lu: orders differ", seed);
		cr_assert_eq(one->visible[i], one->gpus[0], "seed %lu", seed);
		for (k = 0; k < one->gpu_count; k++) {
			cr_assert_eq(own >> one->gpus[k] & 1, 0,
				     "seed %lu: twice", seed);
			own |= 1u << one->gpus[k];
			distance += distance_of(node, i, one->gpus[k]);
		}
	}
	cr_assert_eq(own, (1u << node->view.count) - 1, "seed %lu", seed);
	cr_assert_eq(distance, least_distance(node, 0, 0),
		     "seed %lu: %u is not the least distance", seed, distance);
}

static void check_cpus(const struct node *node,
		       const struct ddp_placements *placed,
		       uint64_t seed)
{
	uint32_t ranks = node->params.rank_count, i, k;
	bool disjoint = can_be_disjoint(node);

	for (i = 0; i < ranks; i++) {
		const struct ddp_placement *one = ddp_placement_get(placed, i);
		struct ddp_cpuset outside;

		cr_assert(!ddp_cpuset_empty(&one->cpus), "seed %lu: rank %u",
			  seed, i);
		ddp_cpuset_andnot(&outside, &one->cpus, &node->ranks[i].mask);
		cr_assert(ddp_cpuset_empty(&outside), "seed %lu: rank %u is "
			  "outside its mask", seed, i);
		for (k = 0; k < i && disjoint; k++)
			cr_assert(!ddp_cpuset_meet(&one->cpus,
				&ddp_placement_get(placed, k)->cpus),
				"seed %lu: ranks %u and %u share", seed, k, i);
	}
}

Test(place, properties)
{
	struct world w;
	uint64_t seed;

	for (seed = 0; seed < 5000; seed++) {
		struct ddp_placements *placed;

		random_world(&w, seed);
		placed = place(&w.node);
		cr_assert_not_null(placed, "seed %lu: %s", seed,
				   w.node.error.text);
		if (w.node.view.count > 0)
			check_gpus(&w.node, placed, seed);
		check_cpus(&w.node, placed, seed);
		ddp_placement_destroy(placed);
		ddp_machine_destroy(w.node.machine);
	}
}

Test(placement, positions)
{
	char text[DDP_POSITIONS_SIZE];
	struct ddp_placement some = {
		.gpu_count = 2, .gpus = { 7, 4 },
		.visible_count = 3, .visible = { 4, 5, 7 },
	}, all = { .gpu_count = DDP_GPU_MAX, .visible_count = DDP_GPU_MAX };
	uint32_t i;

	ddp_placement_positions(&some, text);
	cr_expect_str_eq(text, "2,0");
	some.gpu_count = 0;
	ddp_placement_positions(&some, text);
	cr_expect_str_eq(text, "");
	for (i = 0; i < DDP_GPU_MAX; i++)
		all.gpus[i] = all.visible[i] = i;
	ddp_placement_positions(&all, text);
	cr_expect_eq(strlen(text), 10 * 2 + 54 * 3 - 1);
	cr_expect_str_eq(text + strlen(text) - 5, "62,63");
}

/* There is room for four. */
Test(placement, keeps_the_first_reasons)
{
	struct ddp_placement placement = { 0 };
	uint32_t i;

	for (i = 0; i < 6; i++)
		ddp_why_add(&placement, "reason %u", i);
	cr_expect_eq(placement.why_count, 4);
	for (i = 0; i < 4; i++)
		cr_expect_eq(placement.why[i][7], '0' + (char)i);
}
