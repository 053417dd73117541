/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The placement of a node's ranks: GPUs are chosen in divide_gpus.c, and CPUs
 * near them here, which split_cpus.c deals out.
 */
#include "place/placement.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "place/steps.h"
#include "util/text.h"

/* ---- distances and reasons */

void ddp_near_find(const struct ddp_machine *machine, uint32_t gpu,
		   struct ddp_near *near)
{
	memset(near, 0, sizeof(*near));
	if (gpu == DDP_GPU_NONE)
		return;
	near->known = true;
	near->cpus[0] = machine->gpus[gpu].cpus;
	ddp_machine_packages(machine, &near->cpus[0], &near->cpus[1]);
}

uint32_t ddp_near_distance(const struct ddp_near *near,
			   const struct ddp_cpuset *mask, uint32_t *count)
{
	struct ddp_cpuset part;
	uint32_t level;

	*count = ddp_cpuset_count(mask);
	if (!near->known)
		return 0;
	for (level = 0; level < DDP_NEAR_LEVELS; level++) {
		ddp_cpuset_and(&part, mask, &near->cpus[level]);
		if (ddp_cpuset_empty(&part))
			continue;
		*count = ddp_cpuset_count(&part);
		return level;
	}
	return DDP_NEAR_LEVELS;
}

void ddp_why_add(struct ddp_placement *placement, const char *format, ...)
{
	va_list args;

	if (placement->why_count == DDP_WHY_MAX)
		return;
	va_start(args, format);
	vsnprintf(placement->why[placement->why_count++], DDP_WHY_SIZE, format,
		  args);
	va_end(args);
}

/* ---- CPUs, near the GPUs that a rank has */

enum {
	LEVELS = DDP_NEAR_LEVELS + 1,	/* and the whole mask */
	SCALE = 720720			/* 1 / n is whole for n up to 16 */
};

enum reason {
	REASON_SPREAD,		/* it has no near CPUs to prefer */
	REASON_NEAR,
	REASON_PACKAGE,
	REASON_FAR,
	REASON_TAKEN		/* the near ones are, by other ranks */
};

struct wish {
	struct ddp_cpuset cpus[LEVELS];	/* of its mask, by distance */
	enum reason reason;
	bool some_nearer;	/* than what it is given, but too few */
};

struct binding {
	const struct ddp_placement_params *params;
	const struct ddp_near *near;
	struct ddp_placement *placements;
	struct ddp_cpuset *masks;	/* Slurm's, as far as they exist */
	struct ddp_cpuset *want, *like;
	struct ddp_cpuset *get;
	struct wish *wishes;
	enum ddp_split *how;
	uint16_t users[LEVELS][DDP_CPU_MAX];	/* ranks that have a CPU in
						 * their wish's level */
};

static uint32_t count_cores(const struct ddp_machine *machine,
			    const struct ddp_cpuset *cpus)
{
	uint32_t count = 0, last = UINT32_MAX, i;

	for (i = 0; i < machine->cpu_count; i++) {
		if (!ddp_cpuset_has(cpus, machine->cpus[i].cpu) ||
		    machine->cpus[i].core == last)
			continue;
		last = machine->cpus[i].core;
		count++;
	}
	return count;
}

/*
 * Join the CPUs near the rank's GPUs; false if the locality of one is unknown.
 */
static bool join_near(const struct binding *b, uint32_t rank,
		      struct ddp_near *near)
{
	const struct ddp_placement *placement = &b->placements[rank];
	uint32_t i, level;

	*near = (struct ddp_near){ .known = placement->gpu_count > 0 };
	for (i = 0; i < placement->gpu_count; i++) {
		const struct ddp_near *one = &b->near[placement->gpus[i]];

		near->known = near->known && one->known;
		for (level = 0; level < DDP_NEAR_LEVELS; level++)
			ddp_cpuset_or(&near->cpus[level], &near->cpus[level],
				      &one->cpus[level]);
	}
	return near->known;
}

/*
 * Find what the rank may wish for, and count the ranks that may wish for the
 * same.
 */
static void find_wish(struct binding *b, uint32_t rank)
{
	struct wish *wish = &b->wishes[rank];
	struct ddp_near near;
	uint32_t level, cpu;

	if (b->params->cpus_policy != DDP_CPUS_SPREAD &&
	    join_near(b, rank, &near))
		wish->reason = REASON_NEAR;
	for (level = 0; level < LEVELS; level++) {
		wish->cpus[level] = b->masks[rank];
		if (wish->reason == REASON_NEAR && level < DDP_NEAR_LEVELS)
			ddp_cpuset_and(&wish->cpus[level], &b->masks[rank],
				       &near.cpus[level]);
		for (cpu = ddp_cpuset_next(&wish->cpus[level], 0);
		     cpu < DDP_CPU_MAX;
		     cpu = ddp_cpuset_next(&wish->cpus[level], cpu + 1))
			b->users[level][cpu]++;
	}
}

/*
 * Returns a rank's part, in CPUs * SCALE, if all ranks that wish for a CPU of
 * the level shared it; a little more where that is not whole.
 */
static uint64_t find_share(const struct binding *b, uint32_t rank,
			   uint32_t level)
{
	const struct ddp_cpuset *cpus = &b->wishes[rank].cpus[level];
	uint64_t share = 0;
	uint32_t cpu, users;

	for (cpu = ddp_cpuset_next(cpus, 0); cpu < DDP_CPU_MAX;
	     cpu = ddp_cpuset_next(cpus, cpu + 1)) {
		users = b->users[level][cpu];
		share += (SCALE + users - 1) / users;
	}
	return share;
}

/* Let the rank want the nearest CPUs that are not too few. */
static void find_want(const struct binding *b, uint32_t rank)
{
	uint64_t share, all = find_share(b, rank, DDP_NEAR_LEVELS);
	struct wish *wish = &b->wishes[rank];
	uint32_t level;

	for (level = 0; level < DDP_NEAR_LEVELS; level++) {
		share = find_share(b, rank, level);
		if (share > 0 && 2 * share + DDP_CPU_MAX >= all)
			break;
		wish->some_nearer = wish->some_nearer || share > 0;
	}
	b->want[rank] = wish->cpus[level];
	b->like[rank] = wish->cpus[0];
	if (wish->reason == REASON_NEAR)
		wish->reason = (enum reason)(REASON_NEAR + level);
}

/* Let ranks that got no core of their own near their GPU want all CPUs. */
static bool want_more(const struct binding *b)
{
	bool more = false;
	uint32_t rank;

	for (rank = 0; rank < b->params->rank_count; rank++) {
		if (b->how[rank] == DDP_SPLIT_CORES ||
		    ddp_cpuset_equal(&b->want[rank], &b->masks[rank]))
			continue;
		b->want[rank] = b->masks[rank];
		b->wishes[rank].reason = REASON_TAKEN;
		more = true;
	}
	return more;
}

/* Returns true if the rank has got near CPUs only, whatever it wanted. */
static bool got_near(const struct binding *b, uint32_t rank)
{
	struct ddp_cpuset far;

	ddp_cpuset_andnot(&far, &b->get[rank], &b->like[rank]);
	return b->wishes[rank].reason != REASON_SPREAD &&
	       ddp_cpuset_empty(&far);
}

static void explain_cpus(const struct binding *b, uint32_t rank)
{
	const struct ddp_machine *machine = b->params->machine;
	struct ddp_placement *placement = &b->placements[rank];
	const struct wish *wish = &b->wishes[rank];
	const char *it = placement->gpu_count > 1 ? "them" : "it";
	const char *nearer = wish->some_nearer ? "few" : "none";
	uint32_t got = count_cores(machine, &b->get[rank]);
	uint32_t all = count_cores(machine, &b->want[rank]);

	if (b->how[rank] == DDP_SPLIT_THREADS)
		ddp_why_add(placement, "fewer cores than ranks: %u threads",
			    ddp_cpuset_count(&b->get[rank]));
	else if (b->how[rank] == DDP_SPLIT_SHARED)
		ddp_why_add(placement, "fewer CPUs than ranks: shared ones");
	else if (got_near(b, rank))
		ddp_why_add(placement, "%u of %u cores near %s", got,
			    count_cores(machine, &b->like[rank]), it);
	else if (wish->reason == REASON_SPREAD)
		ddp_why_add(placement, "%u of %u cores, spread", got, all);
	else if (wish->reason == REASON_PACKAGE)
		ddp_why_add(placement, "%u of %u cores of its package, %s "
			    "nearer", got, all, nearer);
	else if (wish->reason == REASON_FAR)
		ddp_why_add(placement, "%u of %u cores of its mask, %s "
			    "nearer", got, all, nearer);
	else
		ddp_why_add(placement, "%u of %u cores of its mask, those "
			    "near %s being taken", got, all, it);
}

/* The one NUMA node to which all these CPUs belong, or -1. */
static int32_t find_numa(const struct ddp_machine *machine,
			 const struct ddp_cpuset *cpus)
{
	struct ddp_cpuset numas;

	ddp_machine_numas(machine, cpus, &numas);
	return ddp_cpuset_count(&numas) != 1 ? -1 :
		(int32_t)ddp_cpuset_next(&numas, 0);
}

static int make_binding(struct binding *b, struct ddp_error *error)
{
	const struct ddp_machine *machine = b->params->machine;
	uint32_t count = b->params->rank_count, rank;
	struct ddp_cpuset cpus;

	ddp_machine_cpus(machine, &cpus);
	for (rank = 0; rank < count; rank++)
		ddp_cpuset_and(&b->masks[rank], &b->params->ranks[rank].mask,
			       &cpus);
	for (rank = 0; rank < count; rank++)
		find_wish(b, rank);
	for (rank = 0; rank < count; rank++)
		find_want(b, rank);
	do
		if (ddp_split(machine, count, b->want, b->like, b->get, b->how,
			      error))
			return -1;
	while (want_more(b));
	for (rank = 0; rank < count; rank++) {
		b->placements[rank].cpus = b->get[rank];
		b->placements[rank].memory_numa =
			find_numa(machine, &b->get[rank]);
		explain_cpus(b, rank);
		if (!ddp_cpuset_equal(&b->masks[rank],
				      &b->params->ranks[rank].mask))
			ddp_why_add(&b->placements[rank], "CPUs that this "
				    "topology lacks are left out");
	}
	return 0;
}

static void bind_nothing(const struct ddp_placement_params *params,
			 struct ddp_placement *placements)
{
	uint32_t rank;

	for (rank = 0; rank < params->rank_count; rank++) {
		placements[rank].cpus = params->ranks[rank].mask;
		placements[rank].memory_numa = -1;
		ddp_why_add(&placements[rank], params->cpus_bound ?
			    "CPUs by --cpu-bind" : "CPUs as Slurm gave them");
	}
}

/*
 * Choose the CPUs of all ranks, whose own GPUs have been chosen. Fills in cpus
 * and memory_numa and adds the reasons. Returns 0, or -1 if memory is short.
 */
static int bind_ranks(const struct ddp_placement_params *params,
		      const struct ddp_near *near,
		      struct ddp_placement *placements, struct ddp_error *error)
{
	uint32_t count = params->rank_count;
	struct binding *b;
	int rc = -1;

	if (params->cpus_bound || params->cpus_policy == DDP_CPUS_OFF) {
		bind_nothing(params, placements);
		return 0;
	}
	b = calloc(1, sizeof(*b));
	if (!b)
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "out of memory");
	b->params = params;
	b->near = near;
	b->placements = placements;
	b->masks = calloc((size_t)4 * count, sizeof(*b->masks));
	b->wishes = calloc(count, sizeof(*b->wishes));
	b->how = calloc(count, sizeof(*b->how));
	if (b->masks && b->wishes && b->how) {
		b->want = b->masks + count;
		b->like = b->want + count;
		b->get = b->like + count;
		rc = make_binding(b, error);
	} else {
		ddp_error_set(error, DDP_ERROR_SYSTEM, "out of memory");
	}
	free(b->masks);
	free(b->wishes);
	free(b->how);
	free(b);
	return rc;
}

/* ---- placements */

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
		rc = bind_ranks(params, near, placements->ranks, error);
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
