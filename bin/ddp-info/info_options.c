/* SPDX-License-Identifier: BSD-3-Clause */
/* The options of ddp-info, a row each. */
#include <stddef.h>

#include "info.h"

#define AT(field) offsetof(struct options, field)

/* The options in front of this one describe nodes. */
enum { ROW_FORMAT = 10 };

static const struct tool_option rows[] = {
	{ "nodes", TOOL_TEXT, AT(nodes), .value = "LIST",
	  .heading = "Nodes to place ranks on (default: one like this machine)",
	  .help = "their names, as n[1-4]" },
	{ "tasks-per-node", TOOL_TEXT, AT(tasks), .value = "LIST",
	  .help = "as 2(x3),1; a number alone is for each node\n"
		  "(default: one a GPU, or 1)" },
	{ "gpus", TOOL_WHOLE, AT(gpus), .max = DDP_GPU_MAX, .value = "N",
	  .help = "GPUs of a node (default: all in the topology)" },
	{ "topology", TOOL_TEXT, AT(topology), .value = "FILE",
	  .help = "a node's hardware, as hwloc's lstopo FILE.xml\n"
		  "writes it" },
	{ "topology-conf", TOOL_TEXT, AT(network), .value = "FILE",
	  .help = "Slurm's topology.conf: ranks follow its switches\n"
		  "or blocks, as by srun --ddp-order=network" },
	{ "mask", TOOL_LIST, AT(masks), .value = "CPUS",
	  .help = "what Slurm gave the tasks, as 0-15,32-47; given\n"
		  "again: what it gave local rank 1, and so on" },
	{ "visible", TOOL_LIST, AT(visible), .value = "LIST",
	  .help = "CUDA_VISIBLE_DEVICES of the tasks, likewise" },
	{ "cpu-bind", TOOL_FLAG, AT(cpus_bound),
	  .help = "as if the user had given srun --cpu-bind" },
	{ "ddp-gpus", TOOL_CHOICE, AT(gpus_policy), .words = ddp_gpus_words,
	  .heading = "What to do there",
	  .help = "as srun's option" },
	{ "ddp-cpus", TOOL_CHOICE, AT(cpus_policy), .words = ddp_cpus_words,
	  .help = "as srun's option" },
	[ROW_FORMAT] = { "format", TOOL_CHOICE, AT(format),
	  .words = TOOL_WORDS("table", "json", "env"),
	  .heading = "What to print",
	  .help = "rows, or the variables (default: table)" },
	{ "draw", TOOL_TEXT, AT(draw), .value = "OUT.xml",
	  .help = "write the first node's topology with its ranks\n"
		  "noted in it, for lstopo to draw" },
	{ "gather", TOOL_FLAG, AT(gather),
	  .help = "in a step: one table of what is planned" },
	{ "doctor", TOOL_FLAG, AT(doctor),
	  .help = "examine the installation here and, in salloc -N2\n"
		  "ddp-info --doctor, on the nodes of the job" },
	{ "variables", TOOL_ASK, AT(variables),
	  .help = "print all variables that tasks get, and exit" },
	{ "help", TOOL_HELP, AT(help), .help = "print this text and exit" },
	{ "version", TOOL_ASK, AT(version),
	  .help = "print the version and exit" },
};

const struct tool_options info_options = {
	.program = "ddp-info",
	.usage =
"Usage: ddp-info [OPTIONS]              what srun --ddp would do, and why\n"
"       srun --ddp [...] ddp-info       what each task really got\n",
	.rows = rows,
	.count = sizeof(rows) / sizeof(rows[0]),
	.stray = "see ddp-info --help"
};

int options_parse(struct options *options, int argc, char **argv,
		  struct ddp_error *error)
{
	uint64_t given = 0;

	*options = (struct options){ .gpus = DDP_GPU_NONE };
	if (tool_options_parse(&info_options, argc, argv, options, &given,
			       error) < 0)
		return -1;
	options->describes = given & ((1 << ROW_FORMAT) - 1);
	if (options->doctor && (options->describes || options->gather))
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--doctor "
				     "examines what is there: leave --gather "
				     "and what describes nodes out");
	if (options->gpus == DDP_GPU_NONE || options->visible.count == 0)
		return 0;
	return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--gpus and --visible "
			     "both say which GPUs there are: leave one out");
}
