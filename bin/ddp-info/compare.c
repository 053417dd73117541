/* SPDX-License-Identifier: BSD-3-Clause */
/* Compares what this task of a step got with what was planned for it. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "info.h"
#include "tool/tool.h"
#include "util/text.h"

enum {
	MEMORY_PREFERRED = 1,	/* MPOL_PREFERRED of linux/mempolicy.h */
	NUMA_MAX = 1024
};

struct comparison {
	const struct ddp_row *planned;	/* NULL: there is none */
	struct ddp_text text;
	bool differs, colour;
};

/* Returns true if the plugin set the variables for this step, not for an outer
 * one; also if nothing tells. */
static bool is_set_here(void)
{
	const char *set = getenv(DDP_VARS_RECORD);
	const char *job = getenv("SLURM_JOB_ID");
	const char *step = getenv("SLURM_STEP_ID");
	char wanted[64];

	if (!set || !job || !step)
		return true;
	snprintf(wanted, sizeof(wanted), "job=%s.%s", job, step);
	return strlen(wanted) == strcspn(set, " ") &&
	       strncmp(set, wanted, strlen(wanted)) == 0;
}

int compare_read_row(struct ddp_row *row, struct ddp_error *error)
{
	const char *record = is_set_here() ? getenv(DDP_PLACEMENT) : NULL;

	return !record ? 1 : ddp_row_parse(record, row, error);
}

/* A cell of text that others may have written; empty it is "-". */
static void add_cell(struct ddp_text *text, const char *cell, size_t width)
{
	size_t end = text->length + width;

	ddp_text_add_string(text, *cell ? cell : "-");
	if (text->length < end)
		ddp_text_pad(text, end - text->length);
}

/* A line of the comparison. planned NULL: nothing was, so anything is right. */
static void add_line(struct comparison *out, const char *what,
		     const char *planned, const char *got)
{
	bool differs = planned && strcmp(planned, got) != 0;

	out->differs = out->differs || differs;
	ddp_text_add(&out->text, "%s  %-22s ",
		     differs && out->colour ? DDP_TEXT_RED : "", what);
	add_cell(&out->text, planned ? planned : "", 20);
	ddp_text_add(&out->text, " ");
	add_cell(&out->text, got, 0);
	ddp_text_add(&out->text, "%s%s\n", differs ? "   DIFFERS" : "",
		     differs && out->colour ? DDP_TEXT_PLAIN : "");
}

static int get_cpus(struct ddp_cpuset *cpus, struct ddp_error *error)
{
	ddp_cpuset_clear(cpus);
	if (sched_getaffinity(0, sizeof(*cpus), (cpu_set_t *)cpus) == 0)
		return 0;
	return ddp_error_set(error, DDP_ERROR_SYSTEM,
			     "the kernel does not say which CPUs this task "
			     "may use");
}

static void add_cpus(struct comparison *out, const struct ddp_cpuset *cpus)
{
	char *text = malloc(DDP_CPUSET_TEXT_SIZE);

	if (!text || ddp_cpuset_format(cpus, text, DDP_CPUSET_TEXT_SIZE))
		out->text.failed = true;
	else
		add_line(out, "CPUs", out->planned ? out->planned->cpus : NULL,
			 text);
	free(text);
}

static void add_memory(struct comparison *out)
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
	add_line(out, "memory", NULL, text);
}

/*
 * Add the GPU that the program's device is. Only the plugin knows which it is.
 */
static void add_device(struct comparison *out)
{
	const struct ddp_row *row = out->planned;
	char what[32], gpu[128];

	if (!row || row->gpu_count == 0)
		return;
	snprintf(what, sizeof(what), "device %u", row->device);
	if (*row->gpus[0].bus_id != '\0')
		snprintf(gpu, sizeof(gpu), "%s", row->gpus[0].bus_id);
	else if (row->gpus[0].number != DDP_GPU_NONE)
		snprintf(gpu, sizeof(gpu), "GPU %u", row->gpus[0].number);
	else
		snprintf(gpu, sizeof(gpu), "an unknown GPU");
	add_line(out, what, gpu, gpu);
}

/* A variable beside the value that was planned; NULL: none was. */
static void add_variable(struct comparison *out, const char *name,
			 const char *planned)
{
	const char *got = getenv(name);

	if (got || planned)
		add_line(out, name, planned, got ? got : "");
}

static void add_variables(struct comparison *out)
{
	static const char *const others[] = {
		"WORLD_SIZE", "LOCAL_WORLD_SIZE", "NODE_RANK", "MASTER_ADDR",
		"MASTER_PORT", "OMP_NUM_THREADS", "GLOO_SOCKET_IFNAME",
		"NCCL_SOCKET_IFNAME", "CUDA_DEVICE_ORDER",
		"CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES",
		"SLURM_STEP_GPUS",
	};
	const struct ddp_row *row = out->planned;
	const char *visible = row ? row->visible : "";
	size_t length = strcspn(visible, "="), i;
	char number[16];

	snprintf(number, sizeof(number), "%u", row ? row->rank : 0);
	add_variable(out, "RANK", row ? number : NULL);
	snprintf(number, sizeof(number), "%u", row ? row->local_rank : 0);
	add_variable(out, "LOCAL_RANK", row ? number : NULL);
	for (i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		add_variable(out, others[i],
			     strlen(others[i]) == length &&
			     strncmp(others[i], visible, length) == 0 ?
			     visible + length + 1 : NULL);
}

int compare_print(bool *differs, struct ddp_error *error)
{
	struct ddp_row row;
	struct comparison out = { .colour = tool_has_colour(stdout) };
	struct ddp_cpuset cpus;
	const char *node;
	int rc = compare_read_row(&row, error);

	if (rc < 0 || get_cpus(&cpus, error))
		return -1;
	if (rc == 0)
		out.planned = &row;
	node = getenv("SLURMD_NODENAME");
	ddp_text_add_quoted(&out.text, "task %s on %s",
			    getenv("SLURM_PROCID"), node ? node : "?");
	ddp_text_add(&out.text, "%s\n", out.planned ? "" :
		     ": no placement is in DDP_PLACEMENT");
	ddp_text_add(&out.text, "%s  %-22s %-20s %s%s\n",
		     out.colour ? DDP_TEXT_BOLD : "", "", "planned", "got",
		     out.colour ? DDP_TEXT_PLAIN : "");
	add_cpus(&out, &cpus);
	add_memory(&out);
	add_device(&out);
	add_variables(&out);
	*differs = out.differs;
	rc = tool_print_text(ddp_text_finish(&out.text), error);
	if (out.planned)
		ddp_row_clear(&row);
	return rc;
}
