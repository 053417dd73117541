/* SPDX-License-Identifier: BSD-3-Clause */
/* Places ranks on the nodes that the options describe, and prints the rows. */
#define _GNU_SOURCE
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "info.h"
#include "layout/gpus.h"
#include "layout/hostlist.h"
#include "layout/layout.h"
#include "layout/tasks.h"
#include "layout/views.h"
#include "tool/tool.h"
#include "topo/topo.h"

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

/* What the options describe. */
struct setup {
	const struct options *options;
	struct ddp_topo *topo;
	struct ddp_machine *machine;
	struct ddp_hostlist *hosts;
	uint32_t *tasks;		/* of each host */
	struct ddp_layout *layout;
	struct ddp_cpuset *masks;	/* by local rank; one: for all */
	struct ddp_view *views;		/* likewise */
	uint32_t (*indexes)[DDP_GPU_MAX];	/* of the views' GPUs in all */
	uint32_t mask_count, view_count;
	struct ddp_view all;
	struct node *nodes;		/* one for each number of tasks */
	uint32_t node_count;
};

static int read_topology(struct setup *setup, struct ddp_error *error)
{
	const char *file = setup->options->topology;

	setup->topo = ddp_topo_create(file, error);
	if (!setup->topo)
		return -1;
	setup->machine = ddp_topo_machine(setup->topo, error);
	if (!setup->machine)
		return -1;
	if (!file) {
		ddp_topo_drivers(setup->machine, "");
		ddp_topo_reach(setup->machine, "");
	}
	return 0;
}

static int read_masks(struct setup *setup, struct ddp_error *error)
{
	const struct options *options = setup->options;
	uint32_t i;

	setup->mask_count = options->masks.count > 0 ?
		options->masks.count : 1;
	setup->masks = calloc(setup->mask_count, sizeof(*setup->masks));
	if (!setup->masks)
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "out of memory");
	ddp_machine_cpus(setup->machine, &setup->masks[0]);
	for (i = 0; i < options->masks.count; i++)
		if (ddp_cpuset_parse(options->masks.texts[i], &setup->masks[i],
				     error))
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

static int read_views(struct setup *setup, struct ddp_error *error)
{
	const struct options *options = setup->options;
	char numbers[DDP_GPU_MAX * 4];
	struct ddp_gpus_env env = { 0 };
	uint32_t i;

	setup->view_count = options->visible.count > 0 ?
		options->visible.count : 1;
	setup->views = calloc(setup->view_count, sizeof(*setup->views));
	setup->indexes = calloc(setup->view_count, sizeof(*setup->indexes));
	if (!setup->views || !setup->indexes)
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "out of memory");
	write_numbers(numbers, sizeof(numbers),
		      options->gpus != DDP_GPU_NONE ?
		      (uint32_t)options->gpus :
		      count_gpus(setup->machine));
	for (i = 0; i < setup->view_count; i++) {
		env.cuda = options->visible.count > 0 ?
			options->visible.texts[i] : numbers;
		env.rocr = env.cuda;
		if (ddp_gpus_resolve(&env, setup->machine, &setup->views[i],
				     error))
			return -1;
	}
	return ddp_views_join(setup->views, setup->view_count, &setup->all,
			      setup->indexes, error);
}

static int read_tasks(struct setup *setup, struct ddp_error *error)
{
	const char *text = setup->options->tasks;
	size_t count = ddp_hostlist_count(setup->hosts);
	char every[64];

	setup->tasks = calloc(count, sizeof(*setup->tasks));
	if (!setup->tasks)
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "out of memory");
	if (!text)
		snprintf(every, sizeof(every), "%u(x%zu)",
			 setup->all.count > 0 ? setup->all.count : 1, count);
	else if (text[strspn(text, "0123456789")] == '\0' &&
		 strlen(text) < 20)
		snprintf(every, sizeof(every), "%s(x%zu)", text, count);
	else
		return ddp_tasks_parse(text, count, setup->tasks, error);
	return ddp_tasks_parse(every, count, setup->tasks, error);
}

static int read_layout(struct setup *setup, struct ddp_error *error)
{
	struct ddp_layout_params params = {
		.distribution = DDP_DISTRIBUTION_BLOCK };
	char self[DDP_HOSTNAME_MAX + 1] = "";
	const char *nodes = setup->options->nodes;

	if (!nodes) {
		gethostname(self, sizeof(self) - 1);
		nodes = self;
	}
	setup->hosts = ddp_hostlist_create(nodes, error);
	if (!setup->hosts || read_tasks(setup, error))
		return -1;
	params.hosts = setup->hosts;
	params.tasks = setup->tasks;
	setup->layout = ddp_layout_create(&params, error);
	return setup->layout ? 0 : -1;
}

static int fill_ranks(const struct setup *setup, struct node *node,
		      struct ddp_error *error)
{
	uint32_t i, view;

	if ((setup->mask_count > 1 && setup->mask_count < node->tasks) ||
	    (setup->view_count > 1 && setup->view_count < node->tasks))
		return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				     "--mask and --visible are given neither "
				     "once nor for each of the %u tasks of a "
				     "node: give them once, or set "
				     "--tasks-per-node", node->tasks);
	for (i = 0; i < node->tasks; i++) {
		view = setup->view_count > 1 ? i : 0;
		node->ranks[i].mask =
			setup->masks[setup->mask_count > 1 ? i : 0];
		node->ranks[i].gpu_count = setup->views[view].count;
		node->ranks[i].gpus = setup->indexes[view];
	}
	return 0;
}

static int place_node(const struct setup *setup, struct node *node,
		      struct ddp_error *error)
{
	const struct options *options = setup->options;
	struct ddp_placement_params params = {
		.machine = setup->machine, .gpus = &setup->all,
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
	if (fill_ranks(setup, node, error))
		return -1;
	params.ranks = node->ranks;
	node->placements = ddp_placement_create(&params, error);
	if (!node->placements)
		return -1;
	for (i = 0; i < node->tasks; i++) {
		rank.local_rank = i;
		if (ddp_row_make(&node->rows[i], &rank, setup->machine,
				 &setup->all,
				 &setup->views[setup->view_count > 1 ? i : 0],
				 ddp_placement_get(node->placements, i), NULL,
				 error))
			return -1;
	}
	return 0;
}

/* The node with this many tasks, whose ranks are placed the first time. */
static struct node *find_node(struct setup *setup, uint32_t tasks,
			      struct ddp_error *error)
{
	struct node *nodes;
	uint32_t i;

	for (i = 0; i < setup->node_count; i++)
		if (setup->nodes[i].tasks == tasks)
			return &setup->nodes[i];
	nodes = realloc(setup->nodes, (i + 1) * sizeof(*nodes));
	if (!nodes) {
		ddp_error_set(error, DDP_ERROR_SYSTEM, "out of memory");
		return NULL;
	}
	setup->nodes = nodes;
	nodes[i] = (struct node){ .tasks = tasks };
	setup->node_count++;
	return place_node(setup, &nodes[i], error) == 0 ? &nodes[i] : NULL;
}

static int print_env(const struct setup *setup, const struct node *node,
		     const struct ddp_rank *rank, struct ddp_error *error)
{
	const struct ddp_placement *placement =
		ddp_placement_get(node->placements, rank->local_rank);
	struct ddp_vars vars = {
		.rank = *rank,
		.world_size = ddp_layout_world_size(setup->layout),
		.node_count = ddp_layout_node_count(setup->layout),
		.cpus = ddp_cpuset_count(&placement->cpus),
		.master_addr = ddp_layout_master(setup->layout),
	};

	return tool_print_text(ddp_report_env(&vars,
				node->rows[rank->local_rank].visible), error);
}

/* Print the variables of all ranks, or collect the rows. */
static int walk_ranks(struct setup *setup, struct ddp_row *rows,
		      struct ddp_error *error)
{
	uint32_t count = ddp_layout_world_size(setup->layout), i;
	struct node *node;
	struct ddp_rank rank;

	for (i = 0; i < count; i++) {
		if (ddp_layout_get(setup->layout, i, &rank, error))
			return -1;
		node = find_node(setup, rank.local_world_size, error);
		if (!node)
			return -1;
		if (!rows) {
			if (print_env(setup, node, &rank, error))
				return -1;
			continue;
		}
		rows[i] = node->rows[rank.local_rank];
		rows[i].rank = rank.rank;
		rows[i].node_rank = rank.node_rank;
		rows[i].node = rank.host;
	}
	return 0;
}

static int print_ranks(struct setup *setup, struct ddp_error *error)
{
	uint32_t count = ddp_layout_world_size(setup->layout);
	struct ddp_row *rows;
	int rc;

	if (setup->options->format == FORMAT_ENV)
		return walk_ranks(setup, NULL, error);
	rows = calloc(count, sizeof(*rows));
	if (!rows)
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "out of memory");
	rc = walk_ranks(setup, rows, error);
	if (rc == 0)
		rc = tool_print_text(setup->options->format == FORMAT_TABLE ?
				ddp_report_table(rows, count, true) :
				ddp_report_json(rows, count,
					ddp_layout_master(setup->layout), 0),
				error);
	free(rows);
	return rc;
}

static int draw_first_node(struct setup *setup, struct ddp_error *error)
{
	struct ddp_rank first;
	struct node *node;
	uint32_t *ranks, i;
	char *xml;
	int rc;

	if (ddp_layout_get(setup->layout, 0, &first, error))
		return -1;
	node = find_node(setup, first.local_world_size, error);
	if (!node)
		return -1;
	ranks = calloc(node->tasks, sizeof(*ranks));
	if (!ranks)
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "out of memory");
	for (i = 0; i < node->tasks; i++)
		ranks[i] = i;
	xml = ddp_topo_draw(setup->topo, setup->machine, &setup->all,
			    node->placements, ranks, error);
	free(ranks);
	if (!xml)
		return -1;
	rc = tool_replace_file("--draw", setup->options->draw, xml, strlen(xml),
			       error);
	free(xml);
	return rc;
}

static void clear_setup(struct setup *setup)
{
	uint32_t i, k;

	for (i = 0; i < setup->node_count; i++) {
		struct node *node = &setup->nodes[i];

		for (k = 0; node->rows && k < node->tasks; k++)
			ddp_row_clear(&node->rows[k]);
		free(node->rows);
		free(node->ranks);
		ddp_placement_destroy(node->placements);
	}
	free(setup->nodes);
	free(setup->masks);
	free(setup->views);
	free(setup->indexes);
	free(setup->tasks);
	ddp_layout_destroy(setup->layout);
	ddp_hostlist_destroy(setup->hosts);
	ddp_machine_destroy(setup->machine);
	ddp_topo_destroy(setup->topo);
}

int nodes_print(const struct options *options, struct ddp_error *error)
{
	struct setup setup = { .options = options };
	int rc = -1;

	if (read_topology(&setup, error) == 0 &&
	    read_masks(&setup, error) == 0 && read_views(&setup, error) == 0 &&
	    read_layout(&setup, error) == 0)
		rc = print_ranks(&setup, error);
	if (rc == 0 && options->draw)
		rc = draw_first_node(&setup, error);
	clear_setup(&setup);
	return rc;
}
