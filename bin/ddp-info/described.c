/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the nodes that the options describe. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "described.h"
#include "layout/tasks.h"
#include "place/gpus.h"

static int read_topology(struct described *in, struct ddp_error *error)
{
	const char *file = in->options->topology;

	in->topo = ddp_topo_create(file, error);
	if (!in->topo)
		return -1;
	in->machine = ddp_topo_machine(in->topo, error);
	if (!in->machine)
		return -1;
	if (!file) {
		ddp_topo_drivers(in->machine, "");
		ddp_topo_reach(in->machine, "");
	}
	return 0;
}

static int read_masks(struct described *in, struct ddp_error *error)
{
	const struct options *options = in->options;
	uint32_t i;

	in->mask_count = options->masks.count > 0 ?
		options->masks.count : 1;
	in->masks = calloc(in->mask_count, sizeof(*in->masks));
	if (!in->masks)
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "out of memory");
	ddp_machine_cpus(in->machine, &in->masks[0]);
	for (i = 0; i < options->masks.count; i++)
		if (ddp_cpuset_parse(options->masks.texts[i], &in->masks[i],
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

static int read_views(struct described *in, struct ddp_error *error)
{
	const struct options *options = in->options;
	char numbers[DDP_GPU_MAX * 4];
	struct ddp_gpus_env env = { 0 };
	uint32_t i;

	in->view_count = options->visible.count > 0 ?
		options->visible.count : 1;
	in->views = calloc(in->view_count, sizeof(*in->views));
	in->indexes = calloc(in->view_count, sizeof(*in->indexes));
	if (!in->views || !in->indexes)
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "out of memory");
	write_numbers(numbers, sizeof(numbers),
		      options->gpus != DDP_GPU_NONE ?
		      (uint32_t)options->gpus :
		      count_gpus(in->machine));
	for (i = 0; i < in->view_count; i++) {
		env.cuda = options->visible.count > 0 ?
			options->visible.texts[i] : numbers;
		env.rocr = env.cuda;
		if (ddp_gpus_resolve(&env, in->machine, &in->views[i],
				     error))
			return -1;
	}
	return ddp_views_join(in->views, in->view_count, &in->all,
			      in->indexes, error);
}

static int read_tasks(struct described *in, struct ddp_error *error)
{
	const char *text = in->options->tasks;
	size_t count = ddp_hostlist_count(in->hosts);
	char every[64];

	in->tasks = calloc(count, sizeof(*in->tasks));
	if (!in->tasks)
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "out of memory");
	if (!text)
		snprintf(every, sizeof(every), "%u(x%zu)",
			 in->all.count > 0 ? in->all.count : 1, count);
	else if (text[strspn(text, "0123456789")] == '\0' &&
		 strlen(text) < 20)
		snprintf(every, sizeof(every), "%s(x%zu)", text, count);
	else
		return ddp_tasks_parse(text, count, in->tasks, error);
	return ddp_tasks_parse(every, count, in->tasks, error);
}

static int read_layout(struct described *in, struct ddp_error *error)
{
	struct ddp_layout_params params = {
		.distribution = DDP_DISTRIBUTION_BLOCK };
	char self[DDP_HOSTNAME_MAX + 1] = "";
	const char *nodes = in->options->nodes;

	if (!nodes) {
		gethostname(self, sizeof(self) - 1);
		nodes = self;
	}
	in->hosts = ddp_hostlist_create(nodes, error);
	if (!in->hosts || read_tasks(in, error))
		return -1;
	params.hosts = in->hosts;
	params.tasks = in->tasks;
	in->layout = ddp_layout_create(&params, error);
	return in->layout ? 0 : -1;
}

int described_read(struct described *in, const struct options *options,
		   struct ddp_error *error)
{
	*in = (struct described){ .options = options };
	if (read_topology(in, error) || read_masks(in, error) ||
	    read_views(in, error) || read_layout(in, error))
		return -1;
	return 0;
}

void described_clear(struct described *in)
{
	free(in->masks);
	free(in->views);
	free(in->indexes);
	free(in->tasks);
	ddp_layout_destroy(in->layout);
	ddp_hostlist_destroy(in->hosts);
	ddp_machine_destroy(in->machine);
	ddp_topo_destroy(in->topo);
}
