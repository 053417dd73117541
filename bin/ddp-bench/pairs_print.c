/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints the pairs of nodes, as a table or as JSON, and which are slow. */
#include <inttypes.h>
#include <stdio.h>

#include "figures.h"
#include "pairs_print.h"
#include "tool/tool.h"

/* Both nodes send at once: the bytes of one direction count. */
static double bandwidth(const struct world *world,
			const struct options *options, int a, int b,
			double seconds)
{
	return (double)options->min_bytes * world_pair_width(world, a, b) /
		1e9 / seconds;
}

static const char *host(const struct world *world, int node)
{
	int rank = 0;

	while (world->members[rank].node != node)
		rank++;
	return world->members[rank].host;
}

static void print_pair_json(const struct world *world, int a, int b)
{
	putchar('[');
	tool_print_json(stdout, host(world, a));
	putchar(',');
	tool_print_json(stdout, host(world, b));
	putchar(']');
}

static bool is_slow(const struct outliers *slow, int a, int b)
{
	return slow->nodes[a] || slow->nodes[b] ||
		slow->pairs[pair_index(a, b)];
}

static void print_pair(const struct world *world,
		       const struct options *options,
		       const struct pairs *pairs, int a, int b)
{
	size_t i = pair_index(a, b);
	double time = pairs->times[i];
	double speed = bandwidth(world, options, a, b, time);
	bool slow = is_slow(&pairs->slow, a, b);
	char wrong[32] = "N/A";

	if (options->check > 0)
		snprintf(wrong, sizeof(wrong), "%" PRIu64, pairs->wrong[i]);
	if (!options->json) {
		printf("%12s  %12s  %6d  %9.1f  %8.2f  %6s%s\n",
		       host(world, a), host(world, b),
		       world_pair_width(world, a, b), time * 1e6, speed, wrong,
		       slow ? "  slow" : "");
		return;
	}
	printf("{\"nodes\":");
	print_pair_json(world, a, b);
	printf(",\"backend\":\"%s\",\"ranks\":%d,\"size\":%" PRIu64 ",\"time\":"
	       "%.3f,\"bw\":%.6f,\"nwrong\":%s,\"slow\":%s}\n",
	       world->backend->name, world_pair_width(world, a, b),
	       options->min_bytes, time * 1e6, speed,
	       options->check > 0 ? wrong : "null", slow ? "true" : "false");
}

static void print_head(const struct world *world,
		       const struct options *options)
{
	figures_world(world);
	printf("# pairs of nodes: rank i of each sends %" PRIu64 " bytes to "
	       "rank i of the other, both ways at once; median of %" PRIu64
	       "\n", options->min_bytes, options->iters);
	printf("# %10s  %12s  %6s  %9s  %8s  %6s\n", "node", "node", "ranks",
	       "time", "bw", "#wrong");
	printf("# %10s  %12s  %6s  %9s  %8s  %6s\n", "", "", "", "(us)",
	       "(GB/s)", "");
}

static void print_slow(const struct world *world, const struct pairs *pairs)
{
	const struct outliers *slow = &pairs->slow;
	const struct bounds *bounds = &slow->node_bounds;
	int nodes = world->node_count;

	printf("# fastest pair of each node: median %.1f us, MAD %.1f us; "
	       "above %.1f us is slow\n", bounds->median * 1e6,
	       bounds->mad * 1e6, bounds->above * 1e6);
	printf("# pair / slower node's fastest pair: median %.2f, MAD %.2f; "
	       "above %.2f is slow\n", slow->pair_bounds.median,
	       slow->pair_bounds.mad, slow->pair_bounds.above);
	for (int a = 0; a < nodes; a++)
		if (slow->nodes[a])
			printf("# slow node: %s, whose fastest pair, with %s, "
			       "takes %.1f us, %.1f times the median\n",
			       host(world, a), host(world, slow->partners[a]),
			       slow->node_times[a] * 1e6,
			       slow->node_times[a] / bounds->median);
	for (int b = 1; b < nodes; b++)
		for (int a = 0; a < b; a++)
			if (slow->pairs[pair_index(a, b)])
				printf("# slow pair: %s and %s take %.1f us, "
				       "others of theirs do not\n",
				       host(world, a), host(world, b),
				       pairs->times[pair_index(a, b)] * 1e6);
	if (nodes == 2)
		printf("# two nodes are one pair: there is nothing to compare "
		       "it with\n");
	else if (slow->node_count == 0 && slow->pair_count == 0)
		printf("# no node and no pair is slow\n");
}

static void print_json_slow(const struct world *world,
			    const struct pairs *pairs)
{
	const struct outliers *slow = &pairs->slow;
	const struct bounds *node = &slow->node_bounds;
	const struct bounds *pair = &slow->pair_bounds;
	int nodes = world->node_count;
	const char *comma = "";

	printf("{\"node_median\":%.3f,\"node_mad\":%.3f,\"node_above\":%.3f,"
	       "\"ratio_median\":%.4f,\"ratio_mad\":%.4f,\"ratio_above\":%.4f,"
	       "\"slow_nodes\":[", node->median * 1e6, node->mad * 1e6,
	       node->above * 1e6, pair->median, pair->mad, pair->above);
	for (int a = 0; a < nodes; a++) {
		if (!slow->nodes[a])
			continue;
		printf("%s", comma);
		tool_print_json(stdout, host(world, a));
		comma = ",";
	}
	printf("],\"slow_pairs\":[");
	comma = "";
	for (int b = 1; b < nodes; b++) {
		for (int a = 0; a < b; a++) {
			if (!slow->pairs[pair_index(a, b)])
				continue;
			printf("%s", comma);
			print_pair_json(world, a, b);
			comma = ",";
		}
	}
	puts("]}");
}

void pairs_print(const struct world *world, const struct options *options,
		 const struct pairs *pairs)
{
	int nodes = world->node_count;

	if (!options->json)
		print_head(world, options);
	for (int a = 0; a < nodes; a++)
		for (int b = a + 1; b < nodes; b++)
			print_pair(world, options, pairs, a, b);
	if (options->json)
		print_json_slow(world, pairs);
	else
		print_slow(world, pairs);
}
