/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of what is wrong, and what ranks have: GPUs and versions. */
#include "verdict.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void verdict_add(struct verdict *verdict, int node, const char *check,
		 const char *format, ...)
{
	struct finding *list = verdict->list;
	size_t count = verdict->count;
	va_list args;

	for (size_t i = 0; i < count; i++)
		if (list[i].node == node && strcmp(list[i].check, check) == 0)
			return;
	list = realloc(list, (count + 1) * sizeof(*list));
	if (!list) {
		verdict->failed = true;
		return;
	}
	list[count] = (struct finding){ .node = node, .check = check };
	va_start(args, format);
	vsnprintf(list[count].text, sizeof(list[count].text), format, args);
	va_end(args);
	verdict->list = list;
	verdict->count++;
}

bool verdict_has(const struct verdict *verdict, int node)
{
	for (size_t i = 0; i < verdict->count; i++)
		if (verdict->list[i].node == node)
			return true;
	return false;
}

void verdict_clear(struct verdict *verdict)
{
	free(verdict->list);
	*verdict = (struct verdict){ 0 };
}

bool verdict_is_common(const struct world *world, int ranks)
{
	return world->node_count > 3 && 2 * ranks > world->size;
}

void verdict_absent(struct verdict *verdict, const struct world *world,
		    const bool *here, bool came_before)
{
	int absent = 0;

	for (int rank = 0; rank < world->size; rank++)
		absent += !here[rank];
	if (verdict_is_common(world, absent)) {
		verdict_add(verdict, -1, "rank", "%d of %d ranks have not "
			    "answered in time: all nodes are busy, or apart; "
			    "try a larger --limit", absent, world->size);
		return;
	}
	for (int rank = 0; rank < world->size; rank++)
		if (!here[rank])
			verdict_add(verdict, world->members[rank].node, "rank",
				    came_before ? "rank %d began, and answers "
				    "no more: see there what it hangs in" :
				    "rank %d has not come: it hangs before "
				    "main() or its node does; see there, or "
				    "leave the node out", rank);
}

/* A value of some ranks, and how many have it. */
struct common {
	int rank;			/* the first that has it; -1: none */
	int count, others;		/* others: of the next common one */
	int having;			/* ranks that have any value */
};

static int count_version(const struct world *world, const struct facts *all,
			 enum version what, int rank)
{
	int count = 0;

	for (int other = 0; other < world->size; other++)
		count += strcmp(all[other].versions[what],
				all[rank].versions[what]) == 0;
	return count;
}

static bool is_first(const struct facts *all, enum version what, int rank)
{
	int other = 0;

	while (strcmp(all[other].versions[what], all[rank].versions[what]) != 0)
		other++;
	return other == rank;
}

static struct common find_common(const struct world *world,
				 const struct facts *all, enum version what)
{
	struct common common = { .rank = -1 };

	for (int rank = 0; rank < world->size; rank++) {
		int count;

		common.having += all[rank].versions[what][0] != '\0';
		if (all[rank].versions[what][0] == '\0' ||
		    !is_first(all, what, rank))
			continue;
		count = count_version(world, all, what, rank);
		if (count > common.count) {
			common.others = common.count;
			common.count = count;
			common.rank = rank;
		} else if (count > common.others) {
			common.others = count;
		}
	}
	return common;
}

const char *verdict_version(const struct world *world, const struct facts *all,
			    enum version what)
{
	struct common common = find_common(world, all, what);

	return common.rank < 0 ? NULL : all[common.rank].versions[what];
}

static const struct {
	const char *check, *name;
} versions[VERSIONS] = {
	[DRIVER] = { "driver", "the NVIDIA driver" },
	[CUDA] = { "cuda", "the CUDA of the driver" },
	[NCCL] = { "nccl", "NCCL" },
	[LIBDDP] = { "libddp", "libddp" },
	[MPI] = { "mpi", "the MPI library" }
};

static void judge_version(struct verdict *verdict, const struct world *world,
			  const struct facts *all, enum version what)
{
	struct common common = find_common(world, all, what);
	const char *wanted;

	if (common.rank < 0)
		return;
	wanted = all[common.rank].versions[what];
	for (int rank = 0; rank < world->size; rank++) {
		const struct member *member = &world->members[rank];
		const char *had = all[rank].versions[what];

		/* What cannot be used has been named, with the cause. */
		if (strcmp(had, wanted) == 0 ||
		    (had[0] == '\0' && all[rank].gpu_error[0] != '\0'))
			continue;
		had = had[0] != '\0' ? had : "missing";
		if (common.count > common.others)
			verdict_add(verdict, member->node, versions[what].check,
				    "%s is %s, but %s on %d of %d ranks: have "
				    "the same on all nodes",
				    versions[what].name, had, wanted,
				    common.count, world->size);
		else
			verdict_add(verdict, member->node, versions[what].check,
				    "%s is %s, but %s on %s, and neither is "
				    "the more common: have the same on all "
				    "nodes", versions[what].name, had, wanted,
				    world->members[common.rank].host);
	}
}

static void judge_gpus(struct verdict *verdict, const struct world *world,
		       const struct facts *all, int rank)
{
	const struct facts *facts = &all[rank];
	int node = world->members[rank].node;

	if (facts->gpus_given == 0)
		verdict_add(verdict, node, "gpu", "the step has no GPU here, "
			    "but has some on other nodes: ask for the same on "
			    "each, as with --gres");
	else if (facts->gpu_error[0] != '\0')
		verdict_add(verdict, node, "gpu", "the step has %u GPU%s here "
			    "and rank %d cannot use them: %s",
			    facts->gpus_given,
			    facts->gpus_given > 1 ? "s" : "", rank,
			    facts->gpu_error);
	else if (facts->gpus_seen < facts->gpus_given)
		verdict_add(verdict, node, "gpu", "the step has %u GPU%s here "
			    "and CUDA finds %u: look at nvidia-smi and for "
			    "'Xid' in dmesg", facts->gpus_given,
			    facts->gpus_given > 1 ? "s" : "",
			    facts->gpus_seen);
}

void verdict_facts(struct verdict *verdict, const struct world *world,
		   const struct facts *all)
{
	bool gpus = false;

	for (int rank = 0; rank < world->size; rank++)
		gpus |= all[rank].gpus_given > 0;
	for (int rank = 0; rank < world->size && gpus; rank++)
		judge_gpus(verdict, world, all, rank);
	for (int what = 0; what < VERSIONS; what++)
		judge_version(verdict, world, all, (enum version)what);
	if (all[0].port_error[0] != '\0')
		verdict_add(verdict, world->members[0].node, "master", "%s",
			    all[0].port_error);
}
