/* SPDX-License-Identifier: BSD-3-Clause */
/* The host, node rank and local rank of every rank. */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>

#include <stdio.h>
#include <string.h>

#include "layout/layout.h"
#include "hooks.h"

struct word {
	char text[32];
	enum ddp_distribution distribution;
};

ParameterizedTestParameters(layout, distribution_parses)
{
	static struct word table[] = {
		{ "", DDP_DISTRIBUTION_BLOCK },
		{ "*", DDP_DISTRIBUTION_BLOCK },
		{ "*:cyclic", DDP_DISTRIBUTION_BLOCK },
		{ "block", DDP_DISTRIBUTION_BLOCK },
		{ "Block", DDP_DISTRIBUTION_BLOCK },
		{ "block:cyclic", DDP_DISTRIBUTION_BLOCK },
		{ "block:cyclic:fcyclic,pack", DDP_DISTRIBUTION_BLOCK },
		{ "block,Pack", DDP_DISTRIBUTION_BLOCK },
		{ "pack", DDP_DISTRIBUTION_BLOCK },
		{ "nopack", DDP_DISTRIBUTION_BLOCK },
		{ ",pack", DDP_DISTRIBUTION_BLOCK },
		{ "cyclic", DDP_DISTRIBUTION_CYCLIC },
		{ "cyclic:block", DDP_DISTRIBUTION_CYCLIC },
		{ "cyclic,nopack", DDP_DISTRIBUTION_CYCLIC },
		{ "plane", DDP_DISTRIBUTION_PLANE },
		{ "plane=4", DDP_DISTRIBUTION_PLANE },
		{ "arbitrary", DDP_DISTRIBUTION_ARBITRARY },
		{ "hostfile", DDP_DISTRIBUTION_ARBITRARY },
	};

	return cr_make_param_array(struct word, table,
				   sizeof(table) / sizeof(table[0]));
}

ParameterizedTest(struct word *row, layout, distribution_parses)
{
	enum ddp_distribution distribution;

	cr_assert_eq(ddp_distribution_parse(row->text, &distribution, NULL),
		     0, "%s", row->text);
	cr_expect_eq(distribution, row->distribution, "%s", row->text);
}

Test(layout, distribution_refuses)
{
	static const char *const texts[] = {
		"unknown", "blocks", "bloc", "fcyclic", "plane4", " block",
	};
	enum ddp_distribution distribution = DDP_DISTRIBUTION_PLANE;
	struct ddp_error error;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		cr_expect_eq(ddp_distribution_parse(texts[i], &distribution,
						    &error), -1, "%s",
			     texts[i]);
	cr_expect_str_eq(error.text, "distribution ' block', byte 1: expected "
			 "block, cyclic, plane or arbitrary");
	cr_expect_eq(distribution, DDP_DISTRIBUTION_PLANE);
	cr_expect_eq(ddp_distribution_parse(NULL, &distribution, NULL), 0);
	cr_expect_eq(distribution, DDP_DISTRIBUTION_BLOCK);
}

/* The host of each rank, from the drawings in Slurm's documentation. */
struct picture {
	char hosts[32];
	uint32_t tasks[4];
	enum ddp_distribution distribution;
	uint32_t plane_size;
	uint32_t rank_hosts[12];
	uint32_t world_size, node_count, ranks_per_node;
};

ParameterizedTestParameters(layout, places)
{
	static struct picture table[] = {
		{ "n1", { 1 }, DDP_DISTRIBUTION_BLOCK, 0, { 0 }, 1, 1, 1 },
		{ "n[1-2]", { 2, 2 }, DDP_DISTRIBUTION_BLOCK, 0,
		  { 0, 0, 1, 1 }, 4, 2, 2 },
		{ "n[1-3]", { 3, 1, 2 }, DDP_DISTRIBUTION_BLOCK, 0,
		  { 0, 0, 0, 1, 2, 2 }, 6, 3, 0 },
		{ "n[1-2]", { 2, 2 }, DDP_DISTRIBUTION_CYCLIC, 0,
		  { 0, 1, 0, 1 }, 4, 2, 2 },
		/* nodes of 4, 2, 4 and 2 CPUs: from a comment in Slurm */
		{ "n[1-4]", { 4, 2, 4, 2 }, DDP_DISTRIBUTION_CYCLIC, 0,
		  { 0, 1, 2, 3, 0, 1, 2, 3, 0, 2, 0, 2 }, 12, 4, 0 },
		/* plane 2 on nodes of 4, 1 and 1: from there too */
		{ "n[1-3]", { 4, 1, 1 }, DDP_DISTRIBUTION_PLANE, 2,
		  { 0, 0, 1, 2, 0, 0 }, 6, 3, 0 },
		{ "n[1-2]", { 5, 3 }, DDP_DISTRIBUTION_PLANE, 2,
		  { 0, 0, 1, 1, 0, 0, 1, 0 }, 8, 2, 0 },
		{ "n[1-2]", { 2, 2 }, DDP_DISTRIBUTION_PLANE, 4294967295u,
		  { 0, 0, 1, 1 }, 4, 2, 2 },
		/* hosts without a rank do not count as nodes */
		{ "n[1-4]", { 0, 2, 0, 1 }, DDP_DISTRIBUTION_BLOCK, 0,
		  { 1, 1, 3 }, 3, 2, 0 },
		{ "n[1-4]", { 0, 2, 0, 1 }, DDP_DISTRIBUTION_CYCLIC, 0,
		  { 1, 3, 1 }, 3, 2, 0 },
		{ "n[1-4]", { 0, 2, 0, 2 }, DDP_DISTRIBUTION_BLOCK, 0,
		  { 1, 1, 3, 3 }, 4, 2, 2 },
		/* a name twice: a heterogeneous step of two components */
		{ "n1,n1", { 1, 2 }, DDP_DISTRIBUTION_BLOCK, 0,
		  { 0, 1, 1 }, 3, 2, 0 },
	};

	return cr_make_param_array(struct picture, table,
				   sizeof(table) / sizeof(table[0]));
}

/*
 * Compare a layout with rank_hosts. All else is counted in the slowest way: the
 * local rank and size from the host's ranks, and the node rank from the hosts
 * that came before the host's first rank.
 */
static void check(const struct ddp_layout *layout, const uint32_t *rank_hosts,
		  uint32_t world_size, const struct ddp_hostlist *hosts)
{
	uint32_t rank, other, before, size, nodes, host, first;
	struct ddp_rank got;

	cr_assert_eq(ddp_layout_world_size(layout), world_size);
	for (rank = 0; rank < world_size; rank++) {
		host = rank_hosts[rank];
		before = size = nodes = 0;
		first = UINT32_MAX;
		for (other = 0; other < world_size; other++) {
			if (rank_hosts[other] != host)
				continue;
			if (first == UINT32_MAX)
				first = other;
			before += other < rank;
			size++;
		}
		for (other = 0; other < first; other++) {
			uint32_t same = 0;

			while (rank_hosts[same] != rank_hosts[other])
				same++;
			nodes += same == other;
		}
		cr_assert_eq(ddp_layout_get(layout, rank, &got, NULL), 0);
		cr_expect_eq(got.rank, rank);
		cr_expect_eq(got.host_index, host, "rank %u on %u, not %u",
			     rank, got.host_index, host);
		cr_expect_eq(got.local_rank, before);
		cr_expect_eq(got.local_world_size, size);
		cr_expect_eq(got.node_rank, nodes);
		cr_expect_str_eq(got.host, ddp_hostlist_get(hosts, host));
	}
	cr_expect_str_eq(ddp_layout_master(layout),
			 ddp_hostlist_get(hosts, rank_hosts[0]));
}

ParameterizedTest(struct picture *row, layout, places)
{
	struct ddp_hostlist *hosts = ddp_hostlist_create(row->hosts, NULL);
	struct ddp_layout_params params = {
		.hosts = hosts, .tasks = row->tasks,
		.distribution = row->distribution,
		.plane_size = row->plane_size,
	};
	struct ddp_layout *layout = ddp_layout_create(&params, NULL);

	cr_assert_not_null(layout);
	check(layout, row->rank_hosts, row->world_size, hosts);
	cr_expect_eq(ddp_layout_node_count(layout), row->node_count);
	cr_expect_eq(ddp_layout_ranks_per_node(layout), row->ranks_per_node);
	ddp_layout_destroy(layout);

	/* A mapping gives the same layout, and the distribution is not read. */
	params.rank_hosts = row->rank_hosts;
	params.distribution = DDP_DISTRIBUTION_ARBITRARY;
	layout = ddp_layout_create(&params, NULL);
	cr_assert_not_null(layout);
	check(layout, row->rank_hosts, row->world_size, hosts);
	cr_expect_eq(ddp_layout_node_count(layout), row->node_count);
	cr_expect_eq(ddp_layout_ranks_per_node(layout), row->ranks_per_node);
	ddp_layout_destroy(layout);
	ddp_hostlist_destroy(hosts);
}

Test(layout, arbitrary_numbers_nodes_by_lowest_rank)
{
	struct ddp_hostlist *hosts = ddp_hostlist_create("n[1-3]", NULL);
	const uint32_t tasks[] = { 1, 2, 1 };
	const uint32_t rank_hosts[] = { 2, 1, 0, 1 };
	struct ddp_layout_params params = {
		.hosts = hosts, .tasks = tasks,
		.distribution = DDP_DISTRIBUTION_ARBITRARY,
		.rank_hosts = rank_hosts,
	};
	struct ddp_layout *layout = ddp_layout_create(&params, NULL);
	struct ddp_rank got;

	cr_assert_not_null(layout);
	ddp_hostlist_destroy(hosts);	/* the layout has its own names */
	cr_expect_str_eq(ddp_layout_master(layout), "n3");
	cr_assert_eq(ddp_layout_get(layout, 0, &got, NULL), 0);
	cr_expect_eq(got.node_rank, 0);
	cr_assert_eq(ddp_layout_get(layout, 3, &got, NULL), 0);
	cr_expect_str_eq(got.host, "n2");
	cr_expect_eq(got.node_rank, 1);
	cr_expect_eq(got.local_rank, 1);
	cr_expect_eq(got.local_world_size, 2);
	cr_assert_eq(ddp_layout_get(layout, 2, &got, NULL), 0);
	cr_expect_eq(got.node_rank, 2);
	ddp_layout_destroy(layout);
}

/* Deal rank by rank, asking each host in turn: slow, but obviously right. */
static void simulate(const uint32_t *tasks, uint32_t host_count,
		     uint32_t chunk, uint32_t *rank_hosts, uint32_t world_size)
{
	uint32_t placed[8] = { 0 }, rank = 0, host = 0, dealt = 0;

	while (rank < world_size) {
		if (dealt == chunk || placed[host] == tasks[host]) {
			host = (host + 1) % host_count;
			dealt = 0;
			continue;
		}
		placed[host]++;
		dealt++;
		rank_hosts[rank++] = host;
	}
}

Test(layout, agrees_with_a_simulation)
{
	static const char *const lists[] = {
		"n1", "n[1-2]", "n[1-3]", "n[1-4]",
	};
	uint32_t rank_hosts[16], tasks[4], world_size, chunk, code, i;
	struct ddp_layout_params params = { .tasks = tasks };
	struct ddp_layout *layout;
	struct ddp_hostlist *hosts;
	size_t count;

	/* Every combination of 0 to 3 tasks on 1 to 4 hosts. */
	for (count = 1; count <= 4; count++) {
		hosts = ddp_hostlist_create(lists[count - 1], NULL);
		params.hosts = hosts;
		for (code = 1; code < 1u << (2 * count); code++) {
			world_size = 0;
			for (i = 0; i < count; i++) {
				tasks[i] = code >> 2 * i & 3;
				world_size += tasks[i];
			}
			for (chunk = 0; chunk <= 4; chunk++) {
				params.plane_size = chunk;
				params.distribution = chunk == 0 ?
					DDP_DISTRIBUTION_BLOCK :
					chunk == 1 ? DDP_DISTRIBUTION_CYCLIC :
					DDP_DISTRIBUTION_PLANE;
				simulate(tasks, (uint32_t)count,
					 chunk ? chunk : 99, rank_hosts,
					 world_size);
				layout = ddp_layout_create(&params, NULL);
				cr_assert_not_null(layout);
				check(layout, rank_hosts, world_size, hosts);
				ddp_layout_destroy(layout);
			}
		}
		ddp_hostlist_destroy(hosts);
	}
}

static void expect_refusal(const struct ddp_layout_params *params,
			   const char *expected)
{
	struct ddp_error error = { 0 };

	cr_expect_null(ddp_layout_create(params, &error));
	cr_expect_eq(error.code, DDP_ERROR_ARGUMENT);
	cr_expect_not_null(strstr(error.text, expected), "%s", error.text);
	cr_expect_null(ddp_layout_create(params, NULL));
}

Test(layout, refuses)
{
	struct ddp_hostlist *hosts = ddp_hostlist_create("n[1-2]", NULL);
	uint32_t tasks[] = { 2, 1 }, rank_hosts[] = { 0, 1, 0 };
	struct ddp_layout_params params = { .hosts = hosts, .tasks = tasks };

	params.distribution = DDP_DISTRIBUTION_ARBITRARY;
	expect_refusal(&params, "the host of each rank must be given");
	params.distribution = DDP_DISTRIBUTION_PLANE;
	expect_refusal(&params, "plane size of at least 1");
	params.rank_hosts = rank_hosts;
	rank_hosts[2] = 1;
	expect_refusal(&params, "more ranks on n2 than its 1 tasks");
	rank_hosts[2] = 2;
	expect_refusal(&params, "rank 2 is mapped to host 2");
	params.rank_hosts = NULL;
	params.distribution = DDP_DISTRIBUTION_BLOCK;
	tasks[0] = DDP_RANK_MAX;
	expect_refusal(&params, "not 16777217");
	tasks[0] = tasks[1] = UINT32_MAX;
	expect_refusal(&params, "not 8589934590");
	tasks[0] = tasks[1] = 0;
	expect_refusal(&params, "not 0");
	ddp_hostlist_destroy(hosts);
	ddp_layout_destroy(NULL);
}

Test(layout, get_refuses_ranks_beyond_the_world)
{
	struct ddp_hostlist *hosts = ddp_hostlist_create("n1", NULL);
	uint32_t tasks[] = { 2 };
	struct ddp_layout_params params = { .hosts = hosts, .tasks = tasks };
	struct ddp_layout *layout = ddp_layout_create(&params, NULL);
	struct ddp_error error;
	struct ddp_rank got;

	cr_expect_eq(ddp_layout_get(layout, 2, &got, &error), -1);
	cr_expect_str_eq(error.text, "rank 2 is not in a world of 2 ranks");
	cr_expect_eq(ddp_layout_get(layout, UINT32_MAX, &got, NULL), -1);
	ddp_layout_destroy(layout);
	ddp_hostlist_destroy(hosts);
}

/* This takes hours if every round visits all hosts, also the full ones. */
Test(layout, deals_long_rounds_quickly, .timeout = 30)
{
	static uint32_t tasks[1 << 20];
	struct ddp_hostlist *hosts = ddp_hostlist_create("n[1-1048576]", NULL);
	struct ddp_layout_params params = {
		.hosts = hosts, .tasks = tasks,
		.distribution = DDP_DISTRIBUTION_CYCLIC,
	};
	struct ddp_layout *layout;
	struct ddp_rank got;
	uint32_t i;

	for (i = 0; i < 1u << 20; i++)
		tasks[i] = 1;
	tasks[1000] = DDP_RANK_MAX - (1u << 20) + 1;
	layout = ddp_layout_create(&params, NULL);
	cr_assert_not_null(layout);
	cr_assert_eq(ddp_layout_get(layout, DDP_RANK_MAX - 1, &got, NULL), 0);
	cr_expect_eq(got.host_index, 1000);
	cr_expect_eq(got.local_rank, tasks[1000] - 1);
	ddp_layout_destroy(layout);
	ddp_hostlist_destroy(hosts);
}

Test(layout, survives_a_lack_of_memory)
{
	struct ddp_hostlist *hosts = ddp_hostlist_create("n1", NULL);
	uint32_t tasks[] = { DDP_RANK_MAX };
	struct ddp_layout_params params = { .hosts = hosts, .tasks = tasks };
	struct ddp_error error = { 0 };

	hook_limit_memory(8 << 20);
	cr_expect_null(ddp_layout_create(&params, &error));
	cr_expect_eq(error.code, DDP_ERROR_SYSTEM);
	ddp_hostlist_destroy(hosts);
}
