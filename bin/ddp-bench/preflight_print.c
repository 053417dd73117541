/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints what a preflight has found: a line for each finding, or one of
 * success. */
#include <stdio.h>
#include <stdlib.h>

#include "preflight.h"
#include "tool/tool.h"
#include "util/text.h"

static void print_node_json(const struct world *world, int node)
{
	if (node < 0)
		printf("null");
	else
		tool_print_json(stdout, world_host(world, node));
}

static void print_findings_json(const struct preflight_summary *summary,
				const struct verdict *verdict)
{
	for (size_t i = 0; i < verdict->count; i++) {
		const struct finding *finding = &verdict->list[i];

		printf("{\"node\":");
		print_node_json(summary->world, finding->node);
		printf(",\"check\":\"%s\",\"text\":", finding->check);
		tool_print_json(stdout, finding->text);
		puts("}");
	}
}

/*
 * The GPUs of all nodes together, given and untried: each node's lowest rank sees
 * them all.
 */
static struct facts count_gpus(const struct preflight_summary *summary)
{
	struct facts sum = { .gpus_given = 0 };

	for (int rank = 0; rank < summary->world->size; rank++) {
		if (summary->world->members[rank].local_rank != 0)
			continue;
		sum.gpus_given += summary->facts[rank].gpus_given;
		sum.gpus_untried += summary->facts[rank].gpus_untried;
	}
	return sum;
}

static void print_json(const struct preflight_summary *summary,
		       const struct verdict *verdict)
{
	const struct facts gpus = count_gpus(summary);
	const struct world *world = summary->world;
	const char *comma = "";

	print_findings_json(summary, verdict);
	printf("{\"ok\":%s,\"ranks\":%d,\"nodes\":%d,\"seconds\":%.3f,"
	       "\"gpus\":%u,\"gpus_untried\":%u,\"not_moved\":",
	       verdict_is_bad(verdict) ? "false" : "true", world->size,
	       world->node_count, summary->seconds, gpus.gpus_given,
	       gpus.gpus_untried);
	if (summary->why_not_moved)
		tool_print_json(stdout, summary->why_not_moved);
	else
		printf("null");
	printf(",\"bad_nodes\":[");
	for (int node = 0; node < world->node_count; node++) {
		if (!verdict_has(verdict, node))
			continue;
		printf("%s", comma);
		print_node_json(world, node);
		comma = ",";
	}
	puts("]}");
}

/*
 * Print the nodes that all findings name together, as an option of srun's; if
 * they have names, and there are other nodes.
 */
static void print_unfit(const struct preflight_summary *summary,
			const struct verdict *verdict)
{
	const struct world *world = summary->world;
	struct ddp_text list = { 0 };
	int count = 0;

	for (int node = 0; node < world->node_count; node++)
		if (verdict_has(verdict, node))
			ddp_text_add(&list, "%s%s", count++ > 0 ? "," : "",
				     world_host(world, node));
	if (count > 0 && count < world->node_count && summary->named &&
	    !list.failed && !verdict->failed && !verdict_has(verdict, -1))
		fprintf(stderr, "ddp-bench: preflight failed: leave out %d of "
			"%d nodes: --exclude=%.*s\n", count, world->node_count,
			(int)list.length, list.data);
	free(list.data);
}

static double find_clocks(const struct preflight_summary *summary)
{
	const struct facts *all = summary->facts;
	double low = all[0].clock_s, high = low;

	for (int rank = 0; rank < summary->world->size; rank++) {
		low = all[rank].clock_s < low ? all[rank].clock_s : low;
		high = all[rank].clock_s > high ? all[rank].clock_s : high;
	}
	return high - low;
}

/* ", 4 GPUs" */
static void print_count(uint32_t gpus, const char *words)
{
	if (gpus > 0)
		printf(", %u GPU%s%s", gpus, gpus > 1 ? "s" : "", words);
}

static void print_versions(const struct preflight_summary *summary)
{
	static const char *const names[VERSIONS] = {
		[DRIVER] = "driver ", [CUDA] = "CUDA ", [NCCL] = "NCCL ",
		[LIBDDP] = "libddp ", [MPI] = ""
	};

	for (int what = 0; what < VERSIONS; what++) {
		const char *text = verdict_version(summary->world,
						   summary->facts,
						   (enum version)what);

		if (text)
			printf(", %s%s", names[what], text);
	}
}

static void print_passed(const struct preflight_summary *summary)
{
	const struct world *world = summary->world;
	const struct facts gpus = count_gpus(summary);
	struct link link = summary->facts[0].link;

	printf("ddp-bench: preflight passed: %d rank%s on %d node%s in %.1f s",
	       world->size, world->size > 1 ? "s" : "", world->node_count,
	       world->node_count > 1 ? "s" : "", summary->seconds);
	print_count(gpus.gpus_given, "");
	print_count(gpus.gpus_untried, " by AMD not tried");
	print_versions(summary);
	printf(", master reached, clocks within %.1f ms",
	       find_clocks(summary) * 1e3);
	if (link.speed > 0)
		printf(", links %.1f GT/s x%u", link.speed / 10., link.width);
	if (summary->why_not_moved)
		printf(", exchanges and all-reduce not checked (%s)\n",
		       summary->why_not_moved);
	else
		printf(", all-reduce by %s right, %s\n", summary->backend,
		       world->node_count > 2 ? "no node slow" :
		       "too few nodes to tell a slow one");
}

void preflight_print(const struct preflight_summary *summary,
		     const struct verdict *verdict, bool json)
{
	if (verdict->failed)
		fprintf(stderr, "ddp-bench: out of memory: not all could be "
			"judged; let the step have more on rank 0's node\n");
	if (json) {
		print_json(summary, verdict);
		return;
	}
	if (!verdict_is_bad(verdict)) {
		print_passed(summary);
		return;
	}
	for (size_t i = 0; i < verdict->count; i++) {
		const struct finding *finding = &verdict->list[i];
		const char *host = world_host(summary->world, finding->node);

		fprintf(stderr, "ddp-bench: %s%s%s\n", host ? host : "",
			host ? ": " : "", finding->text);
	}
	print_unfit(summary, verdict);
}
