/* SPDX-License-Identifier: BSD-3-Clause */
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
#include "layout/text.h"
#include "layout/views.h"
#include "tool/tool.h"
#include "topo/topo.h"

/* The placement of a node with this many tasks, and its rows but for ranks. */
struct node_plan {
	uint32_t tasks;
	struct ddp_placements *place;
	struct ddp_row *rows;		/* [tasks] */
	struct ddp_placement_rank *ranks;	/* [tasks] */
};

struct plan {
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
	struct node_plan *nodes;	/* one for each number of tasks */
	uint32_t node_count;
};

static int topology_read(struct plan *plan, struct ddp_error *error)
{
	const char *file = plan->options->topology;

	plan->topo = ddp_topo_create(file, error);
	if (plan->topo == NULL)
		return -1;
	plan->machine = ddp_topo_machine(plan->topo, error);
	if (plan->machine == NULL)
		return -1;
	if (file == NULL) {
		ddp_topo_drivers(plan->machine, "");
		ddp_topo_reach(plan->machine, "");
	}
	return 0;
}

static int masks_read(struct plan *plan, struct ddp_error *error)
{
	const struct options *options = plan->options;
	uint32_t i;

	plan->mask_count = options->masks.count > 0 ? options->masks.count : 1;
	plan->masks = calloc(plan->mask_count, sizeof(*plan->masks));
	if (plan->masks == NULL)
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "out of memory");
	ddp_machine_cpus(plan->machine, &plan->masks[0]);
	for (i = 0; i < options->masks.count; i++)
		if (ddp_cpuset_parse(options->masks.texts[i], &plan->masks[i],
				     error))
			return -1;
	return 0;
}

/* "0,1,...": the first GPUs of a node. */
static void numbers_write(char *out, size_t size, uint32_t count)
{
	size_t used = 0;
	uint32_t i;

	out[0] = '\0';
	for (i = 0; i < count; i++)
		used += (size_t)snprintf(out + used, size - used, "%s%u",
					 i > 0 ? "," : "", i);
}

/* GPUs of the vendor that the default variable speaks of. */
static uint32_t gpus_count(const struct ddp_machine *machine)
{
	uint32_t counts[2] = { 0, 0 }, i;

	for (i = 0; i < machine->gpu_count; i++)
		counts[machine->gpus[i].vendor]++;
	return counts[DDP_VENDOR_NVIDIA] > 0 ? counts[DDP_VENDOR_NVIDIA] :
		counts[DDP_VENDOR_AMD];
}

static int views_read(struct plan *plan, struct ddp_error *error)
{
	const struct options *options = plan->options;
	char numbers[DDP_GPU_MAX * 4];
	struct ddp_gpus_env env = { 0 };
	uint32_t i;

	plan->view_count = options->visible.count > 0 ?
		options->visible.count : 1;
	plan->views = calloc(plan->view_count, sizeof(*plan->views));
	plan->indexes = calloc(plan->view_count, sizeof(*plan->indexes));
	if (plan->views == NULL || plan->indexes == NULL)
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "out of memory");
	numbers_write(numbers, sizeof(numbers),
		      options->gpus != DDP_GPU_NONE ?
		      (uint32_t)options->gpus :
		      gpus_count(plan->machine));
	for (i = 0; i < plan->view_count; i++) {
		env.cuda = options->visible.count > 0 ?
			options->visible.texts[i] : numbers;
		env.rocr = env.cuda;
		if (ddp_gpus_resolve(&env, plan->machine, &plan->views[i],
				     error))
			return -1;
	}
	return ddp_views_join(plan->views, plan->view_count, &plan->all,
			      plan->indexes, error);
}

static int tasks_read(struct plan *plan, struct ddp_error *error)
{
	const char *text = plan->options->tasks;
	size_t count = ddp_hostlist_count(plan->hosts);
	char every[64];

	plan->tasks = calloc(count, sizeof(*plan->tasks));
	if (plan->tasks == NULL)
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "out of memory");
	if (text == NULL)
		snprintf(every, sizeof(every), "%u(x%zu)",
			 plan->all.count > 0 ? plan->all.count : 1, count);
	else if (text[strspn(text, "0123456789")] == '\0' &&
		 strlen(text) < 20)
		snprintf(every, sizeof(every), "%s(x%zu)", text, count);
	else
		return ddp_tasks_parse(text, count, plan->tasks, error);
	return ddp_tasks_parse(every, count, plan->tasks, error);
}

static int layout_read(struct plan *plan, struct ddp_error *error)
{
	struct ddp_layout_params params = {
		.distribution = DDP_DISTRIBUTION_BLOCK };
	char self[DDP_HOSTNAME_MAX + 1] = "";
	const char *nodes = plan->options->nodes;

	if (nodes == NULL) {
		gethostname(self, sizeof(self) - 1);
		nodes = self;
	}
	plan->hosts = ddp_hostlist_create(nodes, error);
	if (plan->hosts == NULL || tasks_read(plan, error))
		return -1;
	params.hosts = plan->hosts;
	params.tasks = plan->tasks;
	plan->layout = ddp_layout_create(&params, error);
	return plan->layout != NULL ? 0 : -1;
}

static int ranks_fill(const struct plan *plan, struct node_plan *node,
		      struct ddp_error *error)
{
	uint32_t i, view;

	if ((plan->mask_count > 1 && plan->mask_count < node->tasks) ||
	    (plan->view_count > 1 && plan->view_count < node->tasks))
		return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				     "--mask and --visible are to be given "
				     "once, or for each of the %u tasks of a "
				     "node: say how many with "
				     "--tasks-per-node", node->tasks);
	for (i = 0; i < node->tasks; i++) {
		view = plan->view_count > 1 ? i : 0;
		node->ranks[i].mask =
			plan->masks[plan->mask_count > 1 ? i : 0];
		node->ranks[i].gpu_count = plan->views[view].count;
		node->ranks[i].gpus = plan->indexes[view];
	}
	return 0;
}

static int node_place(const struct plan *plan, struct node_plan *node,
		      struct ddp_error *error)
{
	const struct options *options = plan->options;
	struct ddp_placement_params params = {
		.machine = plan->machine, .gpus = &plan->all,
		.rank_count = node->tasks,
		.gpus_policy = options->gpus_policy,
		.cpus_policy = options->cpus_policy,
		.cpus_bound = options->cpus_bound,
	};
	struct ddp_rank rank = { .host = "" };
	uint32_t i;

	node->ranks = calloc(node->tasks, sizeof(*node->ranks));
	node->rows = calloc(node->tasks, sizeof(*node->rows));
	if (node->ranks == NULL || node->rows == NULL)
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "out of memory");
	if (ranks_fill(plan, node, error))
		return -1;
	params.ranks = node->ranks;
	node->place = ddp_placement_create(&params, error);
	if (node->place == NULL)
		return -1;
	for (i = 0; i < node->tasks; i++) {
		rank.local_rank = i;
		if (ddp_row_make(&node->rows[i], &rank, plan->machine,
				 &plan->all,
				 &plan->views[plan->view_count > 1 ? i : 0],
				 ddp_placement_get(node->place, i), NULL,
				 error))
			return -1;
	}
	return 0;
}

/* The plan of nodes with this many tasks, made when first asked for. */
static struct node_plan *node_find(struct plan *plan, uint32_t tasks,
				   struct ddp_error *error)
{
	struct node_plan *nodes;
	uint32_t i;

	for (i = 0; i < plan->node_count; i++)
		if (plan->nodes[i].tasks == tasks)
			return &plan->nodes[i];
	nodes = realloc(plan->nodes, (i + 1) * sizeof(*nodes));
	if (nodes == NULL) {
		ddp_error_set(error, DDP_ERROR_SYSTEM, "out of memory");
		return NULL;
	}
	plan->nodes = nodes;
	nodes[i] = (struct node_plan){ .tasks = tasks };
	plan->node_count++;
	return node_place(plan, &nodes[i], error) == 0 ? &nodes[i] : NULL;
}

static int env_print(const struct plan *plan, const struct node_plan *node,
		     const struct ddp_rank *rank, struct ddp_error *error)
{
	const struct ddp_placement *placement =
		ddp_placement_get(node->place, rank->local_rank);
	struct ddp_vars vars = {
		.rank = *rank,
		.world_size = ddp_layout_world_size(plan->layout),
		.node_count = ddp_layout_node_count(plan->layout),
		.cpus = ddp_cpuset_count(&placement->cpus),
		.master_addr = ddp_layout_master(plan->layout),
	};

	return text_print(ddp_report_env(&vars,
				node->rows[rank->local_rank].visible), error);
}

/* Print the variables of all ranks, or collect the rows. */
static int ranks_walk(struct plan *plan, struct ddp_row *rows,
		      struct ddp_error *error)
{
	uint32_t count = ddp_layout_world_size(plan->layout), i;
	struct node_plan *node;
	struct ddp_rank rank;

	for (i = 0; i < count; i++) {
		if (ddp_layout_get(plan->layout, i, &rank, error))
			return -1;
		node = node_find(plan, rank.local_world_size, error);
		if (node == NULL)
			return -1;
		if (rows == NULL) {
			if (env_print(plan, node, &rank, error))
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

static int ranks_print(struct plan *plan, struct ddp_error *error)
{
	uint32_t count = ddp_layout_world_size(plan->layout);
	struct ddp_row *rows;
	int rc;

	if (plan->options->format == FORMAT_ENV)
		return ranks_walk(plan, NULL, error);
	rows = calloc(count, sizeof(*rows));
	if (rows == NULL)
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "out of memory");
	rc = ranks_walk(plan, rows, error);
	if (rc == 0)
		rc = text_print(plan->options->format == FORMAT_TABLE ?
				ddp_report_table(rows, count, true) :
				ddp_report_json(rows, count,
					ddp_layout_master(plan->layout), 0),
				error);
	free(rows);
	return rc;
}

static int first_node_draw(struct plan *plan, struct ddp_error *error)
{
	struct ddp_rank first;
	struct node_plan *node;
	uint32_t *ranks, i;
	char *xml;
	int rc;

	if (ddp_layout_get(plan->layout, 0, &first, error))
		return -1;
	node = node_find(plan, first.local_world_size, error);
	if (node == NULL)
		return -1;
	ranks = calloc(node->tasks, sizeof(*ranks));
	if (ranks == NULL)
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "out of memory");
	for (i = 0; i < node->tasks; i++)
		ranks[i] = i;
	xml = ddp_topo_draw(plan->topo, plan->machine, &plan->all, node->place,
			    ranks, error);
	free(ranks);
	if (xml == NULL)
		return -1;
	rc = tool_replace_file("--draw", plan->options->draw, xml, strlen(xml),
			       error);
	free(xml);
	return rc;
}

static void plan_clear(struct plan *plan)
{
	uint32_t i, k;

	for (i = 0; i < plan->node_count; i++) {
		struct node_plan *node = &plan->nodes[i];

		for (k = 0; node->rows != NULL && k < node->tasks; k++)
			ddp_row_clear(&node->rows[k]);
		free(node->rows);
		free(node->ranks);
		ddp_placement_destroy(node->place);
	}
	free(plan->nodes);
	free(plan->masks);
	free(plan->views);
	free(plan->indexes);
	free(plan->tasks);
	ddp_layout_destroy(plan->layout);
	ddp_hostlist_destroy(plan->hosts);
	ddp_machine_destroy(plan->machine);
	ddp_topo_destroy(plan->topo);
}

int plan_print(const struct options *options, struct ddp_error *error)
{
	struct plan plan = { .options = options };
	int rc = -1;

	if (topology_read(&plan, error) == 0 && masks_read(&plan, error) == 0 &&
	    views_read(&plan, error) == 0 && layout_read(&plan, error) == 0)
		rc = ranks_print(&plan, error);
	if (rc == 0 && options->draw != NULL)
		rc = first_node_draw(&plan, error);
	plan_clear(&plan);
	return rc;
}
