/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Measures the core alone, and prints lines of times: the largest step, and
 * placement on one large node. "core LIST" prints the hosts of a node list
 * instead, as scontrol show hostnames does.
 */
#define _GNU_SOURCE
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "../unit/machines.h"
#include "layout/hostlist.h"
#include "layout/layout.h"
#include "layout/tasks.h"
#include "layout/vars.h"
#include "place/visible_gpus.h"
#include "place/placement.h"

/* Two ranges, because scontrol refuses one of more than 65536 hosts. */
#define HOSTS_TEXT "n[1-50000],n[50001-100000]"
#define HOSTS 100000
#define LOCAL 8			/* ranks, and GPUs, of a node */
#define ROUNDS 101
#define STEP_ROUNDS 21

enum stage {
	STAGE_HOSTS, STAGE_TASKS, STAGE_LAYOUT, STAGE_RANKS, STAGE_VARS,
	STAGE_ALL, STAGES
};

static const char *const stage_names[] = {
	"  ddp_hostlist_create", "  ddp_tasks_parse", "  ddp_layout_create",
	"  ddp_layout_get of every rank", "  ddp_vars_value, one rank's table",
	"the whole of it",
};

struct samples {
	double ms[ROUNDS];
	uint32_t count;
};

/* A node and its ranks, which see all GPUs. */
struct node {
	struct ddp_machine *machine;
	struct ddp_view views[LOCAL], all;
	uint32_t indexes[LOCAL][DDP_GPU_MAX];
	struct ddp_placement_rank ranks[LOCAL];
};

static void need(bool right, const char *what)
{
	if (right)
		return;
	fprintf(stderr, "core: %s went wrong\n", what);
	exit(1);
}

static double now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* Add the time since *from, and set *from to now. */
static void add_sample(struct samples *samples, double *from)
{
	double now = now_ms();

	samples->ms[samples->count++] = now - *from;
	*from = now;
}

static int by_size(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void print_head(const char *name)
{
	printf("%-46s %8s %8s %8s  calls\n", name, "min, ms", "median", "max");
}

static void print_samples(struct samples *samples, const char *name)
{
	double *ms = samples->ms;
	uint32_t count = samples->count;

	qsort(ms, count, sizeof(*ms), by_size);
	printf("  %-44s %8.3f %8.3f %8.3f %6u\n", name, ms[0], ms[count / 2],
	       ms[count - 1], count);
}

/*
 * Check where the last rank is, and format its variables: of those that the
 * table says are always set, each must have a value.
 */
static void check_vars(const struct ddp_layout *layout, uint32_t rank)
{
	struct ddp_vars vars = {
		.world_size = ddp_layout_world_size(layout),
		.node_count = ddp_layout_node_count(layout),
		.cpus = 16, .master_addr = ddp_layout_master(layout),
		.master_port = 23456, .second_port = 23457,
		.interface = "eth0", .record = "job=12.0",
	};
	char buffer[DDP_VARS_BUFFER_SIZE];
	const struct ddp_var *row;
	size_t i;

	need(ddp_layout_get(layout, rank, &vars.rank, NULL) == 0 &&
	     vars.rank.local_rank == LOCAL - 1 &&
	     strcmp(vars.rank.host, "n100000") == 0, "the last rank's place");
	for (i = 0; (row = ddp_vars_get(i)) != NULL; i++)
		need(ddp_vars_value(i, &vars, buffer) || row->when, row->name);
}

static void measure_step(struct samples *stages, uint32_t *tasks)
{
	double begin = now_ms(), now = begin;
	struct ddp_hostlist *hosts = ddp_hostlist_create(HOSTS_TEXT, NULL);
	struct ddp_layout_params params = { .hosts = hosts, .tasks = tasks };
	struct ddp_layout *layout;
	struct ddp_rank rank;
	uint32_t i;

	need(hosts && ddp_hostlist_count(hosts) == HOSTS, "the node list");
	add_sample(&stages[STAGE_HOSTS], &now);
	need(ddp_tasks_parse("8(x100000)", HOSTS, tasks, NULL) == 0, "tasks");
	add_sample(&stages[STAGE_TASKS], &now);
	layout = ddp_layout_create(&params, NULL);
	need(layout && ddp_layout_world_size(layout) == HOSTS * LOCAL,
	     "the layout");
	add_sample(&stages[STAGE_LAYOUT], &now);
	for (i = 0; i < HOSTS * LOCAL; i++)
		need(ddp_layout_get(layout, i, &rank, NULL) == 0, "a rank");
	add_sample(&stages[STAGE_RANKS], &now);
	check_vars(layout, HOSTS * LOCAL - 1);
	add_sample(&stages[STAGE_VARS], &now);
	add_sample(&stages[STAGE_ALL], &begin);
	ddp_layout_destroy(layout);
	ddp_hostlist_destroy(hosts);
}

static void print_step(void)
{
	static struct samples stages[STAGES];
	uint32_t *tasks = calloc(HOSTS, sizeof(*tasks)), i;
	struct rusage usage;

	need(tasks != NULL, "memory");
	measure_step(stages, tasks);
	getrusage(RUSAGE_SELF, &usage);
	for (i = 1; i < STEP_ROUNDS; i++)
		measure_step(stages, tasks);
	print_head("core, a step of 100000 nodes x 8 ranks");
	for (i = 0; i < STAGES; i++)
		print_samples(&stages[i], stage_names[i]);
	printf("  %-44s %8.1f MB\n", "peak memory of the process",
	       (double)usage.ru_maxrss / 1024);
	free(tasks);
}

static void resolve_node(struct node *node)
{
	const struct ddp_gpus_env env = { .step_gpus = "0,1,2,3,4,5,6,7",
					  .cuda = "0,1,2,3,4,5,6,7" };
	uint32_t i;

	for (i = 0; i < LOCAL; i++)
		need(ddp_gpus_resolve(&env, node->machine, &node->views[i],
				      NULL) == 0, "ddp_gpus_resolve");
	need(ddp_views_join(node->views, LOCAL, &node->all, node->indexes,
			    NULL) == 0 && node->all.count == LOCAL,
	     "ddp_views_join");
}

static void measure_placement(struct node *node, struct samples *samples)
{
	struct ddp_placement_params params = {
		.machine = node->machine, .gpus = &node->all,
		.rank_count = LOCAL, .ranks = node->ranks,
	};
	double now = now_ms();
	struct ddp_placements *place = ddp_placement_create(&params, NULL);

	add_sample(samples, &now);
	need(place && ddp_placement_get(place, LOCAL - 1)->gpu_count == 1,
	     "ddp_placement_create");
	ddp_placement_destroy(place);
}

/* Each rank has a mask of all CPUs, or of a NUMA node far from its GPU. */
static void print_placement(struct node *node, bool far, const char *name)
{
	struct samples samples = { .count = 0 };
	uint32_t i, k;

	for (i = 0; i < LOCAL; i++) {
		struct ddp_placement_rank *rank = &node->ranks[i];

		rank->gpu_count = LOCAL;
		rank->gpus = node->indexes[i];
		ddp_machine_cpus(node->machine, &rank->mask);
		if (far)
			rank->mask = node->machine->gpus[LOCAL - 1 - i].cpus;
	}
	for (k = 0; k < ROUNDS; k++)
		measure_placement(node, &samples);
	print_samples(&samples, name);
}

/* 2 packages of 4 NUMA nodes of 16 cores of 2 threads; a GPU at each node. */
static void print_node(void)
{
	static struct node node;
	struct samples samples = { .count = 0 };
	double now;
	uint32_t i;

	node.machine = machine_make(2, LOCAL / 2, 16, 2, LOCAL);
	for (i = 0; i < LOCAL; i++) {
		machine_attach(node.machine, i, i);
		node.machine->gpus[i].reachable = true;
	}
	for (i = 0; i < ROUNDS; i++) {
		now = now_ms();
		resolve_node(&node);
		add_sample(&samples, &now);
	}
	print_head("core, a node of 8 ranks, 8 GPUs, 256 CPUs");
	print_samples(&samples, "ddp_gpus_resolve of 8 tasks, ddp_views_join");
	print_placement(&node, false,
			"ddp_placement_create, ranks on all CPUs");
	print_placement(&node, true,
			"ddp_placement_create, each on a NUMA node");
	ddp_machine_destroy(node.machine);
}

int main(int argc, char **argv)
{
	struct ddp_hostlist *hosts;
	size_t i;

	if (argc < 2) {
		print_step();
		print_node();
		return 0;
	}
	hosts = ddp_hostlist_create(argv[1], NULL);
	need(hosts != NULL, "the node list");
	for (i = 0; i < ddp_hostlist_count(hosts); i++)
		puts(ddp_hostlist_get(hosts, i));
	ddp_hostlist_destroy(hosts);
	return 0;
}
