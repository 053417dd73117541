/* SPDX-License-Identifier: BSD-3-Clause */
/* Places ranks on the nodes that the options describe, and prints the rows. */
#include <stdlib.h>
#include <string.h>

#include "described.h"
#include "place/table.h"
#include "tool/tool.h"

/*
 * A node with this many tasks. All such nodes are alike: the rows lack only
 * what tells one from another, rank and node.
 */
struct node {
	uint32_t tasks;
	struct ddp_placements *placements;
	struct ddp_row *rows;		/* [tasks] */
	struct ddp_placement_rank *ranks;	/* [tasks] */
};

struct nodes {
	struct described in;
	struct node *list;		/* one for each number of tasks */
	uint32_t count;
};

static int fill_ranks(const struct described *in, struct node *node,
		      struct ddp_error *error)
{
	uint32_t i, view;

	if ((in->mask_count > 1 && in->mask_count < node->tasks) ||
	    (in->view_count > 1 && in->view_count < node->tasks))
		return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				     "--mask and --visible are given neither "
				     "once nor for each of the %u tasks of a "
				     "node: give them once, or set "
				     "--tasks-per-node", node->tasks);
	for (i = 0; i < node->tasks; i++) {
		view = in->view_count > 1 ? i : 0;
		node->ranks[i].mask =
			in->masks[in->mask_count > 1 ? i : 0];
		node->ranks[i].gpu_count = in->views[view].count;
		node->ranks[i].gpus = in->indexes[view];
	}
	return 0;
}

static int place_node(const struct described *in, struct node *node,
		      struct ddp_error *error)
{
	const struct options *options = in->options;
	struct ddp_placement_params params = {
		.machine = in->machine, .gpus = &in->all,
		.rank_count = node->tasks,
		.gpus_policy = options->gpus_policy,
		.cpus_policy = options->cpus_policy,
		.cpus_bound = options->cpus_bound,
	};
	struct ddp_rank rank = { .host = "" };
	uint32_t i;

	node->ranks = calloc(node->tasks, sizeof(*node->ranks));
	node->rows = calloc(node->tasks, sizeof(*node->rows));
	if (!node->ranks || !node->rows)
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "out of memory");
	if (fill_ranks(in, node, error))
		return -1;
	params.ranks = node->ranks;
	node->placements = ddp_placement_create(&params, error);
	if (!node->placements)
		return -1;
	for (i = 0; i < node->tasks; i++) {
		rank.local_rank = i;
		if (ddp_row_make(&node->rows[i], &rank, in->machine,
				 &in->all,
				 &in->views[in->view_count > 1 ? i : 0],
				 ddp_placement_get(node->placements, i), NULL,
				 error))
			return -1;
	}
	return 0;
}

/* The node with this many tasks, whose ranks are placed the first time. */
static struct node *find_node(struct nodes *nodes, uint32_t tasks,
			      struct ddp_error *error)
{
	struct node *list;
	uint32_t i;

	for (i = 0; i < nodes->count; i++)
		if (nodes->list[i].tasks == tasks)
			return &nodes->list[i];
	list = realloc(nodes->list, (i + 1) * sizeof(*list));
	if (!list) {
		ddp_error_set(error, DDP_ERROR_SYSTEM, "out of memory");
		return NULL;
	}
	nodes->list = list;
	list[i] = (struct node){ .tasks = tasks };
	nodes->count++;
	return place_node(&nodes->in, &list[i], error) == 0 ? &list[i] : NULL;
}

/* The number of rows that are in memory at once. */
enum { BLOCK = 1024 };

/* Fill in the rows of the ranks from first on. */
static int fill_rows(struct nodes *nodes, uint32_t first, uint32_t count,
		     struct ddp_row *rows, struct ddp_error *error)
{
	struct node *node;
	struct ddp_rank rank;
	uint32_t i;

	for (i = 0; i < count; i++) {
		if (ddp_layout_get(nodes->in.layout, first + i, &rank, error))
			return -1;
		node = find_node(nodes, rank.local_world_size, error);
		if (!node)
			return -1;
		rows[i] = node->rows[rank.local_rank];
		rows[i].rank = rank.rank;
		rows[i].node_rank = rank.node_rank;
		rows[i].node = rank.host;
	}
	return 0;
}

/* Print rows, or make the table fit them. */
static int print_rows(const struct nodes *nodes, const struct ddp_row *rows,
		      uint32_t count, struct ddp_table *table, bool fit,
		      struct ddp_error *error)
{
	bool first = rows[0].rank == 0;

	if (nodes->in.options->format == FORMAT_JSON)
		return tool_print_text(ddp_report_json(rows, count, first),
				       error);
	if (!fit)
		return tool_print_text(ddp_table_lines(table, rows, count,
							first), error);
	ddp_table_fit(table, rows, count);
	return 0;
}

static int walk_rows(struct nodes *nodes, struct ddp_table *table, bool fit,
		     struct ddp_error *error)
{
	uint32_t total = ddp_layout_world_size(nodes->in.layout), first, count;
	static struct ddp_row rows[BLOCK];

	for (first = 0; first < total; first += count) {
		count = total - first < BLOCK ? total - first : BLOCK;
		if (fill_rows(nodes, first, count, rows, error) ||
		    print_rows(nodes, rows, count, table, fit, error))
			return -1;
	}
	return 0;
}

static int print_env(struct nodes *nodes, struct ddp_error *error)
{
	struct ddp_vars vars = {
		.world_size = ddp_layout_world_size(nodes->in.layout),
		.node_count = ddp_layout_node_count(nodes->in.layout),
		.master_addr = ddp_layout_master(nodes->in.layout),
	};
	char positions[DDP_POSITIONS_SIZE];
	const struct ddp_placement *placement;
	struct node *node;
	uint32_t i, local;

	vars.positions = positions;
	for (i = 0; i < vars.world_size; i++) {
		if (ddp_layout_get(nodes->in.layout, i, &vars.rank, error))
			return -1;
		node = find_node(nodes, vars.rank.local_world_size, error);
		if (!node)
			return -1;
		local = vars.rank.local_rank;
		placement = ddp_placement_get(node->placements, local);
		vars.cpus = ddp_cpuset_count(&placement->cpus);
		ddp_placement_positions(placement, positions);
		vars.visible = node->rows[local].visible;
		vars.gpus = ddp_vars_count_gpus(strchr(vars.visible, '='));
		if (tool_print_text(ddp_report_env(&vars), error))
			return -1;
	}
	return 0;
}

static int print_table(struct nodes *nodes, struct ddp_error *error)
{
	struct ddp_table table = { .colour = tool_has_colour(stdout) };
	int rc = -1;

	if (walk_rows(nodes, &table, true, error) == 0 &&
	    walk_rows(nodes, &table, false, error) == 0)
		rc = tool_print_text(ddp_table_end(&table), error);
	ddp_table_clear(&table);
	return rc;
}

static int print_ranks(struct nodes *nodes, struct ddp_error *error)
{
	switch (nodes->in.options->format) {
	case FORMAT_ENV:
		return print_env(nodes, error);
	case FORMAT_JSON:
		if (walk_rows(nodes, NULL, false, error))
			return -1;
		return tool_print_text(ddp_report_json_end(
				ddp_layout_master(nodes->in.layout), 0), error);
	case FORMAT_TABLE:
		break;
	}
	return print_table(nodes, error);
}

static int draw_first_node(struct nodes *nodes, struct ddp_error *error)
{
	struct ddp_rank first;
	struct node *node;
	uint32_t *ranks, i;
	char *xml;
	int rc;

	if (ddp_layout_get(nodes->in.layout, 0, &first, error))
		return -1;
	node = find_node(nodes, first.local_world_size, error);
	if (!node)
		return -1;
	ranks = calloc(node->tasks, sizeof(*ranks));
	if (!ranks)
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "out of memory");
	for (i = 0; i < node->tasks; i++)
		ranks[i] = i;
	xml = ddp_topo_draw(nodes->in.topo, nodes->in.machine, &nodes->in.all,
			    node->placements, ranks, error);
	free(ranks);
	if (!xml)
		return -1;
	rc = tool_replace_file("--draw", nodes->in.options->draw, xml,
			       strlen(xml), error);
	free(xml);
	return rc;
}

static void clear_nodes(struct nodes *nodes)
{
	uint32_t i, k;

	for (i = 0; i < nodes->count; i++) {
		struct node *node = &nodes->list[i];

		for (k = 0; node->rows && k < node->tasks; k++)
			ddp_row_clear(&node->rows[k]);
		free(node->rows);
		free(node->ranks);
		ddp_placement_destroy(node->placements);
	}
	free(nodes->list);
	described_clear(&nodes->in);
}

int nodes_print(const struct options *options, struct ddp_error *error)
{
	struct nodes nodes = { .list = NULL };
	int rc = described_read(&nodes.in, options, error);

	if (rc == 0)
		rc = print_ranks(&nodes, error);
	if (rc == 0 && options->draw)
		rc = draw_first_node(&nodes, error);
	clear_nodes(&nodes);
	return rc;
}
