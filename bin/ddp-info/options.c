/* SPDX-License-Identifier: BSD-3-Clause */
#include <getopt.h>
#include <string.h>

#include "info.h"
#include "layout/scan.h"

enum { OPT_NODES = 256, OPT_TASKS, OPT_GPUS, OPT_TOPOLOGY, OPT_MASK,
       OPT_VISIBLE, OPT_DDP_GPUS, OPT_DDP_CPUS, OPT_CPU_BIND, OPT_FORMAT,
       OPT_DRAW, OPT_GATHER, OPT_HELP, OPT_VERSION };

static const struct option table[] = {
	{ "nodes", required_argument, NULL, OPT_NODES },
	{ "tasks-per-node", required_argument, NULL, OPT_TASKS },
	{ "gpus", required_argument, NULL, OPT_GPUS },
	{ "topology", required_argument, NULL, OPT_TOPOLOGY },
	{ "mask", required_argument, NULL, OPT_MASK },
	{ "visible", required_argument, NULL, OPT_VISIBLE },
	{ "ddp-gpus", required_argument, NULL, OPT_DDP_GPUS },
	{ "ddp-cpus", required_argument, NULL, OPT_DDP_CPUS },
	{ "cpu-bind", no_argument, NULL, OPT_CPU_BIND },
	{ "format", required_argument, NULL, OPT_FORMAT },
	{ "draw", required_argument, NULL, OPT_DRAW },
	{ "gather", no_argument, NULL, OPT_GATHER },
	{ "help", no_argument, NULL, OPT_HELP },
	{ "version", no_argument, NULL, OPT_VERSION },
	{ 0 }
};

static const char *const format_words[] = { "table", "json", "env", NULL };

const char *options_help(void)
{
	return
"Usage: ddp-info [OPTIONS]                 what srun --ddp would do, and why\n"
"       srun --ddp [...] ddp-info          what each task really got\n"
"\n"
"Nodes to plan for (default: one like this machine):\n"
"  --nodes LIST             their names, as n[1-4]\n"
"  --tasks-per-node LIST    as 2(x3),1; a number alone is for each node\n"
"                           (default: one a GPU, or 1)\n"
"  --gpus N                 GPUs of a node (default: all in the topology)\n"
"  --topology FILE          a node's hardware, as hwloc's lstopo FILE.xml\n"
"                           writes it\n"
"  --mask CPUS              what Slurm gave the tasks, as 0-15,32-47; given\n"
"                           again: what it gave local rank 1, and so on\n"
"  --visible LIST           CUDA_VISIBLE_DEVICES of the tasks, likewise\n"
"  --cpu-bind               as if the user had given srun --cpu-bind\n"
"What to do there:\n"
"  --ddp-gpus all|own|share|off, --ddp-cpus near|spread|off\n"
"What to print:\n"
"  --format table|json|env  rows, or the variables (default: table)\n"
"  --draw OUT.xml           write the first node's topology with its ranks\n"
"                           noted in it, for lstopo to draw\n"
"  --gather                 in a step: one table of what is planned\n"
"  --help, --version        print this text or the version, and exit\n";
}

static int set_gpus(uint32_t *gpus, struct ddp_error *error)
{
	const char *at = optarg;
	uint64_t number;

	if (ddp_scan_number(&at, 0, DDP_GPU_MAX, &number) || *at != '\0')
		return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				     "--gpus '%s' is not a number from 0 to %d",
				     optarg, DDP_GPU_MAX);
	*gpus = (uint32_t)number;
	return 0;
}

static int add(const char **list, uint32_t *count, const char *name,
	       struct ddp_error *error)
{
	if (*count == LIST_MAX)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				     "--%s is given more than %d times", name,
				     LIST_MAX);
	list[(*count)++] = optarg;
	return 0;
}

static int set(struct options *options, int option, const char *argument,
	       struct ddp_error *error)
{
	int index;

	options->planning = options->planning || option < OPT_FORMAT;
	switch (option) {
	case OPT_NODES: options->nodes = optarg; return 0;
	case OPT_TASKS: options->tasks = optarg; return 0;
	case OPT_TOPOLOGY: options->topology = optarg; return 0;
	case OPT_DRAW: options->draw = optarg; return 0;
	case OPT_CPU_BIND: options->cpus_bound = true; return 0;
	case OPT_GATHER: options->gather = true; return 0;
	case OPT_HELP: options->help = true; return 0;
	case OPT_VERSION: options->version = true; return 0;
	case OPT_GPUS: return set_gpus(&options->gpus, error);
	case OPT_MASK:
		return add(options->masks, &options->mask_count, "mask",
			   error);
	case OPT_VISIBLE:
		return add(options->visible, &options->visible_count,
			   "visible", error);
	case OPT_DDP_GPUS:
		index = ddp_scan_word("--ddp-gpus", optarg, ddp_gpus_words,
				      error);
		if (index >= 0)
			options->gpus_policy = (enum ddp_gpus_policy)index;
		return index < 0 ? -1 : 0;
	case OPT_DDP_CPUS:
		index = ddp_scan_word("--ddp-cpus", optarg, ddp_cpus_words,
				      error);
		if (index >= 0)
			options->cpus_policy = (enum ddp_cpus_policy)index;
		return index < 0 ? -1 : 0;
	case OPT_FORMAT:
		index = ddp_scan_word("--format", optarg, format_words, error);
		if (index >= 0)
			options->format = (enum format)index;
		return index < 0 ? -1 : 0;
	case ':':
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "%s needs a "
				     "value; see ddp-info --help", argument);
	}
	return ddp_error_set(error, DDP_ERROR_ARGUMENT, "%s is not an option "
			     "of ddp-info; see ddp-info --help", argument);
}

int options_parse(struct options *options, int argc, char **argv,
		  struct ddp_error *error)
{
	struct options parsed = { .gpus = DDP_GPU_NONE };
	const char *argument = argv[optind];
	int option;

	opterr = 0;
	while ((option = getopt_long(argc, argv, "+:", table, NULL)) != -1) {
		if (set(&parsed, option, argument, error) < 0)
			return -1;
		if (parsed.help || parsed.version)
			break;
		argument = argv[optind];
	}
	if (optind < argc && !parsed.help && !parsed.version)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "'%s' is not "
				     "an option; see ddp-info --help",
				     argv[optind]);
	if (parsed.gpus != DDP_GPU_NONE && parsed.visible_count > 0)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				     "--gpus and --visible both say which "
				     "GPUs there are: leave one out");
	*options = parsed;
	return 0;
}
