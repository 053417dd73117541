/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ddp-info: what srun --ddp does with a node's GPUs and CPUs, and why. Without
 * Slurm it places ranks on nodes that its options describe; in a step it shows
 * what was planned beside what each rank got.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "info.h"
#include "layout/vars.h"
#include "tool/tool.h"

/*
 * ---- the table of the variables that each task gets
 *
 * The meaning is on a line of its own, or the table would be wider than a
 * terminal.
 */

enum { COLUMNS = 4, PADDED = 2, SET_SIZE = 64 };

/* The cells of a row; the line of column names is before row 0. */
static bool get_row(size_t row, const char *cells[COLUMNS], char set[SET_SIZE])
{
	static const char *const names[COLUMNS] = {
		"VARIABLE", "ORIGIN", "SET", "MEANING",
	};
	const struct ddp_var *var;

	if (row == 0) {
		memcpy(cells, names, sizeof(names));
		return true;
	}
	var = ddp_vars_get(row - 1);
	if (!var)
		return false;
	snprintf(set, SET_SIZE, "%s%s%s", var->when ? var->when :
		 var->rule == DDP_VAR_USERS ? "" : "always",
		 var->when && var->rule == DDP_VAR_USERS ? ", " : "",
		 var->rule == DDP_VAR_USERS ? "unless exported" : "");
	cells[0] = var->name;
	cells[1] = var->origin;
	cells[2] = set;
	cells[3] = var->meaning;
	return true;
}

static void print_variables(void)
{
	const char *cells[COLUMNS];
	size_t widths[PADDED] = { 0 }, row, i;
	char set[SET_SIZE];

	for (row = 0; get_row(row, cells, set); row++)
		for (i = 0; i < PADDED; i++)
			if (strlen(cells[i]) > widths[i])
				widths[i] = strlen(cells[i]);
	for (row = 0; get_row(row, cells, set); row++)
		printf("%-*s  %-*s  %s\n%*s  %s\n", (int)widths[0], cells[0],
		       (int)widths[1], cells[1], cells[2],
		       (int)widths[0], "", cells[3]);
}

/* ---- what this task of a step got, beside what was planned for it */

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

/*
 * The row that the plugin handed to this task, for the caller to clear. Returns
 * 1 if there is none.
 */
static int read_row(struct ddp_row *row, struct ddp_error *error)
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

static int print_comparison(bool *differs, struct ddp_error *error)
{
	struct ddp_row row;
	struct comparison out = { .colour = tool_has_colour(stdout) };
	struct ddp_cpuset cpus;
	const char *node;
	int rc = read_row(&row, error);

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

/* ---- what the options ask for */

static int gather(struct ddp_error *error)
{
	struct ddp_row row;
	int rc = read_row(&row, error);

	if (rc > 0)
		rc = ddp_error_set(error, DDP_ERROR_ARGUMENT,
				   "no placement is in DDP_PLACEMENT for this "
				   "task: use --gather in a step of srun "
				   "--ddp");
	if (rc < 0)
		return -1;
	rc = gather_print(&row, error);
	ddp_row_clear(&row);
	return rc;
}

static int work(const struct options *options, bool *differs,
		struct ddp_error *error)
{
	bool in_step = getenv("SLURM_PROCID") && !options->describes;

	if (options->variables) {
		print_variables();
		return 0;
	}
	if (options->doctor)
		return doctor_print(differs, error);
	if (options->gather)
		return gather(error);
	if (!in_step)
		return nodes_print(options, error);
	if (options->format == FORMAT_TABLE && !options->draw)
		return print_comparison(differs, error);
	return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--format and --draw "
			     "are for nodes that options describe: in a step, "
			     "name a --topology or another option of a node");
}

static char buffer[1 << 20];

int main(int argc, char **argv)
{
	struct options options;
	struct ddp_error error;
	bool differs = false;

	tool_start();
	/* srun mixes the lines of tasks that write in small pieces. */
	setvbuf(stdout, buffer, _IOFBF, sizeof(buffer));
	if (options_parse(&options, argc, argv, &error) == 0) {
		if (options.help || options.version)
			return tool_options_answer(&info_options,
						   options.help);
		if (work(&options, &differs, &error) == 0 &&
		    tool_flush(&error) == 0)
			return differs;
	}
	tool_print_error("ddp-info", &error);
	return 1;
}
