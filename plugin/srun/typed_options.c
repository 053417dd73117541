/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads what the user asks for by the options of srun, sbatch and salloc. */
#define _GNU_SOURCE
#include "srun/srun.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "request/gres.h"
#include "slurm/scontrol.h"
#include "srun/cli.h"
#include "srun/rerun.h"

/* Slurm's own steps have the numbers from here on. */
#define SLURMS_STEPS 0xfffffff0UL

/*
 * Returns the value of an option that was given now; NULL if the job's environment
 * only repeats it.
 */
static const char *get_typed(const char *option, const char *variable)
{
	const char *value = ddp_cli_get(option), *inherited = getenv(variable);

	return value && inherited && strcmp(value, inherited) == 0 ? NULL :
		value;
}

const char *ddp_asked_step_gpus(void)
{
	return get_typed("gpus", "SLURM_GPUS");
}

/* Returns true if a --gres speaks of GPUs; "none" does, too. */
static bool names_gpus(const char *gres)
{
	uint32_t gpus;

	return gres && (strcasecmp(gres, "none") == 0 ||
			ddp_gres_count_gpus(gres, &gpus, NULL) < 0 || gpus);
}

/*
 * The GPUs that a user types for a step replace all that the job says of GPUs.
 */
static void read_gpus(struct ddp_request *request)
{
	request->gres = get_typed("gres", "SLURM_GRES");
	request->gpus = ddp_asked_step_gpus();
	request->gpus_per_node = get_typed("gpus-per-node",
					   "SLURM_GPUS_PER_NODE");
	if (!names_gpus(request->gres) && !request->gpus &&
	    !request->gpus_per_node) {
		request->gres = ddp_cli_get("gres");
		request->gpus_per_node = ddp_cli_get("gpus-per-node");
		/* Slurm may spread a job's --gpus unevenly: ask it. */
		if (!request->in_job)
			request->gpus = ddp_cli_get("gpus");
		else if (ddp_cli_get("gpus") && !request->gpus_per_node)
			request->gres = NULL;
	}
	request->gpus_per_task = ddp_cli_get("gpus-per-task");
	request->gpus_per_socket = ddp_cli_get("gpus-per-socket");
}

/*
 * The nodes of a job that srun was told by --jobid alone. Slurm is asked once;
 * NULL: it does not tell.
 */
static const char *find_job_nodes(void)
{
	static char nodes[16];
	static bool asked;
	const char *job_id = ddp_cli_get("jobid");
	char *told;

	if (asked || !job_id)
		return *nodes ? nodes : NULL;
	asked = true;
	told = ddp_squeue_show(job_id, "-o", "%A %D");
	if (told)
		snprintf(nodes, sizeof(nodes), "%s", told + strspn(told, " "));
	nodes[strspn(nodes, "0123456789")] = '\0';
	free(told);
	return *nodes ? nodes : NULL;
}

/* Slurm's own steps, as salloc's shell, hold nothing that others wait for. */
bool ddp_asked_in_step(void)
{
	const char *step = getenv("SLURM_STEP_ID");

	return step && strtoul(step, NULL, 10) < SLURMS_STEPS;
}

/*
 * Returns --ntasks-per-node of the command line, for the rest of this process;
 * NULL: it is not there. srun puts it into its environment, and forgets it where
 * the number of tasks that it inherits is another.
 */
static const char *find_typed_per_node(void)
{
	static const char *const names[] = {
		"--ntasks-per-node", "--tasks-per-node",
	};
	char **argv = ddp_arguments_read(), value[16] = "";
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		ddp_arguments_find(argv, ddp_srun.words, names[i], value,
				   sizeof(value));
	ddp_arguments_free(argv);
	return value[0] ? strdup(value) : NULL;
}

/* A number that is in the environment alone is not for this step by itself. */
static void weigh_inherited(struct ddp_request *request)
{
	const char *typed = find_typed_per_node();
	const char *before = ddp_srun.per_node_before;

	request->in_step = ddp_asked_in_step();
	request->per_node_typed = typed && !(before &&
					     strcmp(typed, before) == 0);
	if (request->per_node_typed)
		request->ntasks_per_node = typed;
	request->ntasks_inherited = request->ntasks && !ddp_cli_typed('n') &&
		!get_typed("ntasks", "SLURM_NTASKS");
	request->outranked = ddp_request_outranks(request);
	if (request->outranked)
		request->ntasks = NULL;
}

void ddp_asked_read(struct ddp_request *request)
{
	const char *nodes = ddp_cli_get("nodes");
	const char *distribution = ddp_cli_get_default("distribution");

	memset(request, 0, sizeof(*request));
	if (!nodes && ddp_cli_get("nodelist"))
		nodes = ddp_cli_get_default("nodes");
	request->nodes = nodes;
	request->nodes_typed = ddp_cli_typed('N') ||
			       get_typed("nodes", "SLURM_JOB_NUM_NODES");
	request->ntasks = ddp_cli_get("ntasks");
	/* The list of nodes that our order gives srun has set it. */
	if (ddp_srun.ordered && !ddp_cli_typed('n'))
		request->ntasks = getenv("SLURM_NTASKS");
	request->ntasks_per_node = ddp_cli_get("ntasks-per-node");
	request->ntasks_per_gpu = ddp_cli_get("ntasks-per-gpu");
	request->cpus_per_task = ddp_cli_get("cpus-per-task");
	request->cpus_per_gpu = ddp_cli_get("cpus-per-gpu");
	request->mincpus = ddp_cli_get("mincpus");
	request->in_job = ddp_cli_get("jobid") != NULL;
	if (!request->nodes && request->in_job)
		request->nodes = find_job_nodes();
	read_gpus(request);
	request->arbitrary = distribution && !ddp_srun.ordered &&
			     strncmp(distribution, "arbitrary", 9) == 0;
	request->pty = ddp_cli_get("pty") != NULL;
	request->cpus_open = ddp_cli_get("exclusive") ||
			     ddp_cli_get("overcommit");
	weigh_inherited(request);
}

void ddp_asked_read_launcher(struct ddp_request *request, const char *launcher)
{
	ddp_asked_read(request);
	request->launcher = launcher;
	if (!launcher || !request->in_job || !ddp_request_several(request))
		return;
	request->ntasks = get_typed("ntasks", "SLURM_NTASKS");
	if (!request->per_node_typed)
		request->ntasks_per_node = NULL;
}
