/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "info.h"
#include "layout/text.h"

#define MEMORY_PREFERRED 1	/* MPOL_PREFERRED of linux/mempolicy.h */
#define NUMA_MAX 1024

struct step {
	const struct ddp_row *plan;	/* NULL: there is none */
	struct ddp_text text;
	bool differs;
};

/* Whether what the plugin has left is of this very step, not an outer one. */
static bool set_here(void)
{
	const char *set = getenv(DDP_VARS_RECORD);
	const char *job = getenv("SLURM_JOB_ID");
	const char *step = getenv("SLURM_STEP_ID");
	char wanted[64];

	if (set == NULL || job == NULL || step == NULL)
		return true;
	snprintf(wanted, sizeof(wanted), "job=%s.%s", job, step);
	return strlen(wanted) == strcspn(set, " ") &&
	       strncmp(set, wanted, strlen(wanted)) == 0;
}

int step_plan(struct ddp_row *row, struct ddp_error *error)
{
	const char *record = set_here() ? getenv(DDP_PLACEMENT) : NULL;

	return record == NULL ? 1 : ddp_row_parse(record, row, error);
}

/* A cell of text that others may have written; empty it is "-". */
static void add_cell(struct ddp_text *text, const char *cell, size_t width)
{
	size_t end = text->length + width;

	ddp_text_add_string(text, *cell ? cell : "-");
	if (text->length < end)
		ddp_text_pad(text, end - text->length);
}

/* A line of the comparison. planned NULL: nothing was, all is right. */
static void line_add(struct step *step, const char *what, const char *planned,
		     const char *got)
{
	bool differs = planned != NULL && strcmp(planned, got) != 0;

	step->differs = step->differs || differs;
	ddp_text_add(&step->text, "  %-22s ", what);
	add_cell(&step->text, planned != NULL ? planned : "", 20);
	ddp_text_add(&step->text, " ");
	add_cell(&step->text, got, 0);
	ddp_text_add(&step->text, "%s\n", differs ? "   DIFFERS" : "");
}

static int cpus_get(struct ddp_cpuset *cpus, struct ddp_error *error)
{
	ddp_cpuset_clear(cpus);
	if (sched_getaffinity(0, sizeof(*cpus), (cpu_set_t *)cpus) == 0)
		return 0;
	return ddp_error_set(error, DDP_ERROR_SYSTEM,
			     "the kernel does not tell this task's CPUs");
}

static void cpus_add(struct step *step, const struct ddp_cpuset *cpus)
{
	char *text = malloc(DDP_CPUSET_TEXT_SIZE);

	if (text == NULL ||
	    ddp_cpuset_format(cpus, text, DDP_CPUSET_TEXT_SIZE))
		step->text.failed = true;
	else
		line_add(step, "CPUs", step->plan ? step->plan->cpus : NULL,
			 text);
	free(text);
}

static void memory_add(struct step *step)
{
	unsigned long nodes[NUMA_MAX / (8 * sizeof(unsigned long))] = { 0 };
	char text[32] = "near the thread";
	int mode = 0, node;

	if (syscall(SYS_get_mempolicy, &mode, nodes, NUMA_MAX, NULL, 0) == 0 &&
	    mode == MEMORY_PREFERRED)
		for (node = 0; node < NUMA_MAX; node++)
			if (nodes[node / (8 * sizeof(*nodes))] >>
			    node % (8 * sizeof(*nodes)) & 1)
				snprintf(text, sizeof(text),
					 "prefers NUMA %d", node);
	line_add(step, "memory", NULL, text);
}

/* What the program's device is, which only the plan can tell. */
static void device_add(struct step *step)
{
	const struct ddp_row *plan = step->plan;
	char what[32], gpu[128];

	if (plan == NULL || plan->gpu_count == 0)
		return;
	snprintf(what, sizeof(what), "device %u", plan->device);
	if (*plan->gpus[0].bus_id != '\0')
		snprintf(gpu, sizeof(gpu), "%s", plan->gpus[0].bus_id);
	else if (plan->gpus[0].number != DDP_GPU_NONE)
		snprintf(gpu, sizeof(gpu), "GPU %u", plan->gpus[0].number);
	else
		snprintf(gpu, sizeof(gpu), "a GPU unknown");
	line_add(step, what, gpu, gpu);
}

/* A variable whose value is planned, or not (NULL), beside what it is. */
static void variable_add(struct step *step, const char *name,
			 const char *planned)
{
	const char *got = getenv(name);

	if (got != NULL || planned != NULL)
		line_add(step, name, planned, got != NULL ? got : "");
}

static void variables_add(struct step *step)
{
	static const char *const others[] = {
		"WORLD_SIZE", "LOCAL_WORLD_SIZE", "NODE_RANK", "MASTER_ADDR",
		"MASTER_PORT", "OMP_NUM_THREADS", "GLOO_SOCKET_IFNAME",
		"NCCL_SOCKET_IFNAME", "CUDA_DEVICE_ORDER",
		"CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES",
		"SLURM_STEP_GPUS",
	};
	const struct ddp_row *plan = step->plan;
	const char *visible = plan != NULL ? plan->visible : "";
	size_t length = strcspn(visible, "="), i;
	char number[16];

	snprintf(number, sizeof(number), "%u", plan ? plan->rank : 0);
	variable_add(step, "RANK", plan ? number : NULL);
	snprintf(number, sizeof(number), "%u", plan ? plan->local_rank : 0);
	variable_add(step, "LOCAL_RANK", plan ? number : NULL);
	for (i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		variable_add(step, others[i],
			     strlen(others[i]) == length &&
			     strncmp(others[i], visible, length) == 0 ?
			     visible + length + 1 : NULL);
}

int step_print(bool *differs, struct ddp_error *error)
{
	struct ddp_row row;
	struct step step = { .plan = NULL };
	struct ddp_cpuset cpus;
	const char *node;
	int rc = step_plan(&row, error);

	if (rc < 0 || cpus_get(&cpus, error))
		return -1;
	if (rc == 0)
		step.plan = &row;
	node = getenv("SLURMD_NODENAME");
	ddp_text_add_quoted(&step.text, "task %s on %s",
			    getenv("SLURM_PROCID"), node ? node : "?");
	ddp_text_add(&step.text, "%s\n", step.plan ? "" :
		     ": no placement is in DDP_PLACEMENT");
	ddp_text_add(&step.text, "  %-22s %-20s %s\n", "", "planned", "got");
	cpus_add(&step, &cpus);
	memory_add(&step);
	device_add(&step);
	variables_add(&step);
	*differs = step.differs;
	rc = text_print(ddp_text_finish(&step.text), error);
	if (step.plan)
		ddp_row_clear(&row);
	return rc;
}
