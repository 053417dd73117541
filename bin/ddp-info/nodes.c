/* SPDX-License-Identifier: BSD-3-Clause */
/* Places ranks on the nodes that the options describe, and prints the rows. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "info.h"
#include "layout/hostlist.h"
#include "layout/layout.h"
#include "layout/network.h"
#include "layout/tasks.h"
#include "place/visible_gpus.h"
#include "place/report.h"
#include "tool/tool.h"
#include "topo/topo.h"
#include "util/file.h"

/* ---- the nodes, read from the options */

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
	const struct options *options;
	struct ddp_topo *topo;
	struct ddp_machine *machine;
	struct ddp_hostlist *hosts;
	uint32_t *tasks;		/* of each host */
	struct ddp_text network;	/* what is said of it */
	struct ddp_layout *layout;
	struct ddp_cpuset *masks;	/* by local rank; one: for all */
	struct ddp_view *views;		/* likewise */
	uint32_t (*indexes)[DDP_GPU_MAX];	/* of the views' GPUs in all */
	uint32_t mask_count, view_count;
	struct ddp_view all;
	struct node *list;		/* one for each number of tasks */
	uint32_t count;
};

static int read_topology(struct nodes *nodes, struct ddp_error *error)
{
	const char *file = nodes->options->topology;

	nodes->topo = ddp_topo_create(file, error);
	if (!nodes->topo)
		return -1;
	nodes->machine = ddp_topo_machine(nodes->topo, error);
	if (!nodes->machine)
		return -1;
	if (!file) {
		ddp_topo_drivers(nodes->machine, "");
		ddp_topo_reach(nodes->machine, "");
	}
	return 0;
}

static int read_masks(struct nodes *nodes, struct ddp_error *error)
{
	const struct tool_list *given = &nodes->options->masks;
	uint32_t i;

	nodes->mask_count = given->count > 0 ? given->count : 1;
	nodes->masks = calloc(nodes->mask_count, sizeof(*nodes->masks));
	if (!nodes->masks)
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "out of memory");
	ddp_machine_cpus(nodes->machine, &nodes->masks[0]);
	for (i = 0; i < given->count; i++)
		if (ddp_cpuset_parse(given->texts[i], &nodes->masks[i], error))
			return -1;
	return 0;
}

/* "0,1,...": the first GPUs of a node. */
static void write_numbers(char *out, size_t size, uint32_t count)
{
	size_t used = 0;
	uint32_t i;

	out[0] = '\0';
	for (i = 0; i < count; i++)
		used += (size_t)snprintf(out + used, size - used, "%s%u",
					 i > 0 ? "," : "", i);
}

/* The GPUs that the variable counts: NVIDIA's, or else AMD's. */
static uint32_t count_gpus(const struct ddp_machine *machine)
{
	uint32_t counts[2] = { 0, 0 }, i;

	for (i = 0; i < machine->gpu_count; i++)
		counts[machine->gpus[i].vendor]++;
	return counts[DDP_VENDOR_NVIDIA] > 0 ? counts[DDP_VENDOR_NVIDIA] :
		counts[DDP_VENDOR_AMD];
}

static int read_views(struct nodes *nodes, struct ddp_error *error)
{
	const struct tool_list *given = &nodes->options->visible;
	uint64_t gpus = nodes->options->gpus;
	char numbers[DDP_GPU_MAX * 4];
	struct ddp_gpus_env env = { 0 };
	uint32_t i;

	nodes->view_count = given->count > 0 ? given->count : 1;
	nodes->views = calloc(nodes->view_count, sizeof(*nodes->views));
	nodes->indexes = calloc(nodes->view_count, sizeof(*nodes->indexes));
	if (!nodes->views || !nodes->indexes)
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "out of memory");
	write_numbers(numbers, sizeof(numbers),
		      gpus != DDP_GPU_NONE ? (uint32_t)gpus :
		      count_gpus(nodes->machine));
	for (i = 0; i < nodes->view_count; i++) {
		env.cuda = env.rocr = given->count > 0 ? given->texts[i] :
			numbers;
		if (ddp_gpus_resolve(&env, nodes->machine, &nodes->views[i],
				     error))
			return -1;
	}
	return ddp_views_join(nodes->views, nodes->view_count, &nodes->all,
			      nodes->indexes, error);
}

static int read_tasks(struct nodes *nodes, struct ddp_error *error)
{
	const char *text = nodes->options->tasks;
	size_t count = ddp_hostlist_count(nodes->hosts);
	char every[64];

	nodes->tasks = calloc(count, sizeof(*nodes->tasks));
	if (!nodes->tasks)
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "out of memory");
	if (!text)
		snprintf(every, sizeof(every), "%u(x%zu)",
			 nodes->all.count > 0 ? nodes->all.count : 1, count);
	else if (text[strspn(text, "0123456789")] == '\0' &&
		 strlen(text) < 20)
		snprintf(every, sizeof(every), "%s(x%zu)", text, count);
	else
		return ddp_tasks_parse(text, count, nodes->tasks, error);
	return ddp_tasks_parse(every, count, nodes->tasks, error);
}

/* Puts hosts, and their tasks, in this order. */
static int reorder(struct nodes *nodes, const uint32_t *order,
		   struct ddp_error *error)
{
	uint32_t count = (uint32_t)ddp_hostlist_count(nodes->hosts), i;
	uint32_t *tasks = calloc(count, sizeof(*tasks));
	struct ddp_hostlist *hosts = NULL;
	struct ddp_text names = { 0 };
	char *list;

	for (i = 0; i < count; i++)
		ddp_text_add(&names, "%s%s", i ? "," : "",
			     ddp_hostlist_get(nodes->hosts, order[i]));
	list = ddp_text_finish(&names);
	if (list && tasks)
		hosts = ddp_hostlist_create(list, error);
	else
		ddp_error_set(error, DDP_ERROR_SYSTEM, "out of memory");
	free(list);
	for (i = 0; hosts && i < count; i++)
		tasks[i] = nodes->tasks[order[i]];
	if (!hosts) {
		free(tasks);
		return -1;
	}
	free(nodes->tasks);
	ddp_hostlist_destroy(nodes->hosts);
	nodes->tasks = tasks;
	nodes->hosts = hosts;
	return 0;
}

/* A node that is misspelt, or lacks in the file, would stand last for no reason. */
static void name_unknown(struct nodes *nodes, const struct ddp_network *network)
{
	const char *first = NULL, *name;
	size_t i, count = 0;

	for (i = 0; i < ddp_hostlist_count(nodes->hosts); i++) {
		name = ddp_hostlist_get(nodes->hosts, i);
		if (ddp_network_has(network, name))
			continue;
		first = first ? first : name;
		count++;
	}
	if (count > 0)
		ddp_text_add(&nodes->network, "NETWORK: nodes that the file "
			     "does not have, and that stand last: %zu, the "
			     "first of them %s\n", count, first);
}

static int follow_network(struct nodes *nodes,
			  const struct ddp_network *network,
			  struct ddp_error *error)
{
	size_t count = ddp_hostlist_count(nodes->hosts);
	uint32_t *order = calloc(count, sizeof(*order)), cut;
	int64_t used = ddp_network_used(network, nodes->hosts, &cut);
	int rc = -1;

	if (!order || used < 0)
		ddp_error_set(error, DDP_ERROR_SYSTEM, "out of memory");
	else
		rc = ddp_network_order(network, nodes->hosts, order, error);
	if (rc == 0) {
		ddp_text_add(&nodes->network, "NETWORK: a ring through the "
			     "nodes leaves a switch %llu times in this order, "
			     "%llu times in the one given\n", (unsigned long long)
			     ddp_network_crossings(network, nodes->hosts,
						   order),
			     (unsigned long long)
			     ddp_network_crossings(network, nodes->hosts,
						   NULL));
		ddp_text_add(&nodes->network, "NETWORK: switches or blocks "
			     "of these nodes: %lld, of others, too: %u\n",
			     (long long)used, cut);
		name_unknown(nodes, network);
		rc = reorder(nodes, order, error);
	}
	free(order);
	return rc;
}

enum { NETWORK_MAX = 64 << 20 };	/* bytes of a topology.conf */

static int read_network(struct nodes *nodes, struct ddp_error *error)
{
	const char *path = nodes->options->network;
	struct ddp_network *network;
	char *text;
	int rc = -1;

	if (!path)
		return 0;
	text = ddp_file_read_regular("--topology-conf", path, NETWORK_MAX,
				     NULL, error);
	if (!text)
		return -1;
	network = ddp_network_create(text, error);
	if (network)
		rc = follow_network(nodes, network, error);
	ddp_network_destroy(network);
	free(text);
	return rc;
}

static int read_layout(struct nodes *nodes, struct ddp_error *error)
{
	struct ddp_layout_params params = {
		.distribution = DDP_DISTRIBUTION_BLOCK };
	char self[DDP_HOSTNAME_MAX + 1] = "";
	const char *list = nodes->options->nodes;

	if (!list) {
		gethostname(self, sizeof(self) - 1);
		list = self;
	}
	nodes->hosts = ddp_hostlist_create(list, error);
	if (!nodes->hosts || read_tasks(nodes, error) ||
	    read_network(nodes, error))
		return -1;
	params.hosts = nodes->hosts;
	params.tasks = nodes->tasks;
	nodes->layout = ddp_layout_create(&params, error);
	return nodes->layout ? 0 : -1;
}

/* ---- ranks on them */

static int fill_ranks(const struct nodes *nodes, struct node *node,
		      struct ddp_error *error)
{
	uint32_t i, view;

	if ((nodes->mask_count > 1 && nodes->mask_count < node->tasks) ||
	    (nodes->view_count > 1 && nodes->view_count < node->tasks))
		return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				     "--mask and --visible are given neither "
				     "once nor for each of the %u tasks of a "
				     "node: give them once, or set "
				     "--tasks-per-node", node->tasks);
	for (i = 0; i < node->tasks; i++) {
		view = nodes->view_count > 1 ? i : 0;
		node->ranks[i].mask =
			nodes->masks[nodes->mask_count > 1 ? i : 0];
		node->ranks[i].gpu_count = nodes->views[view].count;
		node->ranks[i].gpus = nodes->indexes[view];
	}
	return 0;
}

static int place_node(const struct nodes *nodes, struct node *node,
		      struct ddp_error *error)
{
	const struct options *options = nodes->options;
	struct ddp_placement_params params = {
		.machine = nodes->machine, .gpus = &nodes->all,
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
	if (fill_ranks(nodes, node, error))
		return -1;
	params.ranks = node->ranks;
	node->placements = ddp_placement_create(&params, error);
	if (!node->placements)
		return -1;
	for (i = 0; i < node->tasks; i++) {
		rank.local_rank = i;
		if (ddp_row_make(&node->rows[i], &rank, nodes->machine,
				 &nodes->all,
				 &nodes->views[nodes->view_count > 1 ? i : 0],
				 ddp_placement_get(node->placements, i), NULL,
				 error))
			return -1;
	}
	return 0;
}

/*
 * Get a rank and its node, whose ranks are placed the first time. NULL: error
 * is set.
 */
static struct node *find_node(struct nodes *nodes, uint32_t number,
			      struct ddp_rank *rank, struct ddp_error *error)
{
	struct node *list;
	uint32_t tasks, i;

	if (ddp_layout_get(nodes->layout, number, rank, error))
		return NULL;
	tasks = rank->local_world_size;
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
	return place_node(nodes, &list[i], error) == 0 ? &list[i] : NULL;
}

/* Fill in the rows of the ranks from first on. */
static int fill_rows(struct nodes *nodes, uint32_t first, uint32_t count,
		     struct ddp_row *rows, struct ddp_error *error)
{
	struct node *node;
	struct ddp_rank rank;
	uint32_t i;

	for (i = 0; i < count; i++) {
		node = find_node(nodes, first + i, &rank, error);
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

	if (nodes->options->format == FORMAT_JSON)
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
	uint32_t total = ddp_layout_world_size(nodes->layout), first, count;
	enum { BLOCK = 1024 };		/* rows that are in memory at once */
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
		.world_size = ddp_layout_world_size(nodes->layout),
		.node_count = ddp_layout_node_count(nodes->layout),
		.master_addr = ddp_layout_master(nodes->layout),
	};
	char positions[DDP_POSITIONS_SIZE];
	const struct ddp_placement *placement;
	struct node *node;
	uint32_t i, local;

	vars.positions = positions;
	for (i = 0; i < vars.world_size; i++) {
		node = find_node(nodes, i, &vars.rank, error);
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
	if (rc == 0 && nodes->network.length > 0) {
		rc = tool_print_text(ddp_text_finish(&nodes->network), error);
		nodes->network = (struct ddp_text){ 0 };
	}
	ddp_table_clear(&table);
	return rc;
}

static int print_ranks(struct nodes *nodes, struct ddp_error *error)
{
	switch (nodes->options->format) {
	case FORMAT_ENV:
		return print_env(nodes, error);
	case FORMAT_JSON:
		if (walk_rows(nodes, NULL, false, error))
			return -1;
		return tool_print_text(ddp_report_json_end(
				ddp_layout_master(nodes->layout), 0), error);
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

	node = find_node(nodes, 0, &first, error);
	if (!node)
		return -1;
	ranks = calloc(node->tasks, sizeof(*ranks));
	if (!ranks)
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "out of memory");
	for (i = 0; i < node->tasks; i++)
		ranks[i] = i;
	xml = ddp_topo_draw(nodes->topo, nodes->machine, &nodes->all,
			    node->placements, ranks, error);
	free(ranks);
	if (!xml)
		return -1;
	rc = tool_replace_file("--draw", nodes->options->draw, xml,
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
	free(nodes->masks);
	free(nodes->views);
	free(nodes->indexes);
	free(nodes->tasks);
	free(nodes->network.data);
	ddp_layout_destroy(nodes->layout);
	ddp_hostlist_destroy(nodes->hosts);
	ddp_machine_destroy(nodes->machine);
	ddp_topo_destroy(nodes->topo);
}

int nodes_print(const struct options *options, struct ddp_error *error)
{
	struct nodes nodes = { .options = options };
	int rc = -1;

	if (read_topology(&nodes, error) == 0 &&
	    read_masks(&nodes, error) == 0 && read_views(&nodes, error) == 0 &&
	    read_layout(&nodes, error) == 0)
		rc = print_ranks(&nodes, error);
	if (rc == 0 && options->draw)
		rc = draw_first_node(&nodes, error);
	clear_nodes(&nodes);
	return rc;
}
