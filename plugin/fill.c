/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * In srun: better defaults for what the user left open. In sbatch and salloc:
 * whether the request has CPUs enough.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "layout/gres.h"
#include "layout/request.h"
#include "plugin.h"

static uint32_t component;	/* the one that is being filled in */
static char *mpi_before;	/* SLURM_MPI_TYPE; NULL: not set */

void ddp_fill_init(void)
{
	const char *mpi = getenv("SLURM_MPI_TYPE");

	mpi_before = mpi ? strdup(mpi) : NULL;
}

void ddp_fill_restore(void)
{
	if (mpi_before)
		setenv("SLURM_MPI_TYPE", mpi_before, 1);
	else
		unsetenv("SLURM_MPI_TYPE");
}

/*
 * srun tells its tasks the MPI type even if nobody chose it: the "none" that
 * is in the environment of a step, such as salloc's shell, is no choice.
 */
static bool mpi_chosen(void)
{
	const char *mpi = ddp_cli_get("mpi");

	return mpi && !(strcmp(mpi, "none") == 0 && mpi_before &&
			strcmp(mpi_before, "none") == 0 &&
			getenv("SLURM_STEP_ID"));
}

bool ddp_fill_has_pmix(void)
{
	const char *mpi = ddp_cli_get_default("mpi");

	return mpi && strncmp(mpi, "pmix", 4) == 0;
}

/* What was asked for now, rather than what the job's environment repeats. */
static const char *typed(const char *option, const char *variable)
{
	const char *value = ddp_cli_get(option), *inherited = getenv(variable);

	return value && inherited && strcmp(value, inherited) == 0 ? NULL :
		value;
}

/* Whether a --gres says something of GPUs; that there be none, too. */
static bool gres_names_gpus(const char *gres)
{
	uint32_t gpus;

	return gres && (strcasecmp(gres, "none") == 0 ||
			ddp_gres_count_gpus(gres, &gpus, NULL) < 0 || gpus);
}

static void request_read(struct ddp_request *request)
{
	const char *nodes = ddp_cli_get("nodes");
	const char *distribution = ddp_cli_get_default("distribution");

	memset(request, 0, sizeof(*request));
	if (!nodes && ddp_cli_get("nodelist"))
		nodes = ddp_cli_get_default("nodes");
	request->nodes = nodes;
	request->nodes_typed = typed("nodes", "SLURM_JOB_NUM_NODES") != NULL;
	request->ntasks = ddp_cli_get("ntasks");
	request->ntasks_per_node = ddp_cli_get("ntasks-per-node");
	request->ntasks_per_gpu = ddp_cli_get("ntasks-per-gpu");
	request->cpus_per_task = ddp_cli_get("cpus-per-task");
	request->cpus_per_gpu = ddp_cli_get("cpus-per-gpu");
	request->mincpus = ddp_cli_get("mincpus");
	request->in_job = ddp_cli_get("jobid") != NULL;
	request->gres = typed("gres", "SLURM_GRES");
	request->gpus = typed("gpus", "SLURM_GPUS");
	request->gpus_per_node = typed("gpus-per-node", "SLURM_GPUS_PER_NODE");
	if (!gres_names_gpus(request->gres) && !request->gpus &&
	    !request->gpus_per_node) {
		request->gres = ddp_cli_get("gres");
		request->gpus_per_node = ddp_cli_get("gpus-per-node");
		/* Slurm gives a job's --gpus to its nodes unevenly: ask it. */
		if (!request->in_job)
			request->gpus = ddp_cli_get("gpus");
		else if (ddp_cli_get("gpus") && !request->gpus_per_node)
			request->gres = NULL;
	}
	request->gpus_per_task = ddp_cli_get("gpus-per-task");
	request->gpus_per_socket = ddp_cli_get("gpus-per-socket");
	request->arbitrary = distribution &&
			     strncmp(distribution, "arbitrary", 9) == 0;
	request->pty = ddp_cli_get("pty") != NULL;
	request->cpus_open = ddp_cli_get("exclusive") ||
			     ddp_cli_get("overcommit");
}

static bool gpus_said(const struct ddp_request *request)
{
	return request->gres || request->gpus || request->gpus_per_node ||
	       request->gpus_per_task || request->gpus_per_socket;
}

/*
 * Which component srun takes this one for: the one that --het-group names.
 * srun writes it down itself, and so says that it was not given.
 */
static long het_group(void)
{
	const char *group = ddp_cli_get_default("het-group");

	return group ? atol(group) : (long)component;
}

/* GPUs on each node of the job, or of this component of it. */
static uint32_t job_ask(const char *job_id)
{
	struct ddp_error error;
	char member[64];
	uint32_t gpus;

	/* Of a heterogeneous job scontrol would show every component. */
	if (getenv("SLURM_HET_SIZE")) {
		snprintf(member, sizeof(member), "%s+%ld", job_id,
			 het_group());
		job_id = member;
	}
	if (ddp_ask_gpus(job_id, &gpus, &error) < 0)
		ddp_srun_refuse("%s", error.text);
	return gpus;
}

/* salloc --gres leaves no trace in its shell's environment. */
static void request_ask(struct ddp_request *request, const char *job_id,
			char *gres, size_t size)
{
	snprintf(gres, size, "gpu:%u", job_ask(job_id));
	request->gres = gres;
}

/* Add a value for this component of the step alone. */
static void add_text(const char *name, const char *value)
{
	char variable[64];

	snprintf(variable, sizeof(variable), "%s_HET_GROUP_%ld", name,
		 het_group());
	ddp_rerun_add(variable, value);
}

static void add_number(const char *name, uint32_t value)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", value);
	add_text(name, text);
}

/*
 * srun before 23.11 drops the job's --cpus-per-task. The job may have asked
 * for it on behalf of fewer tasks than one a GPU; they then share it.
 */
static bool add_cpus(const struct ddp_request *request, uint32_t tasks)
{
	const char *job_cpus = getenv("SLURM_CPUS_PER_TASK");
	const char *job_nodes = getenv("SLURM_JOB_NUM_NODES");
	uint32_t cpus;

	/* srun takes the first away for "a : b" in an ordinary job. */
	if (!job_nodes)
		job_nodes = getenv("SLURM_NNODES");
	if (request->cpus_per_task || request->cpus_per_gpu || !job_cpus)
		return false;
	cpus = ddp_request_cpus_per_task(job_cpus,
					 getenv("SLURM_JOB_CPUS_PER_NODE"),
					 job_nodes ? (uint32_t)atol(job_nodes)
					 : 0, tasks);
	if (cpus)
		add_number("SRUN_CPUS_PER_TASK", cpus);
	return cpus != 0;
}

static uint32_t tasks_per_node(const struct ddp_request *request,
			       const struct ddp_fill *fill)
{
	uint32_t nodes = request->nodes ? (uint32_t)atol(request->nodes) : 1;
	uint32_t ntasks;

	if (fill->ntasks_per_node)
		return fill->ntasks_per_node;
	if (request->ntasks_per_node)
		return (uint32_t)atol(request->ntasks_per_node);
	ntasks = request->ntasks ? (uint32_t)atol(request->ntasks) : nodes;
	return nodes ? (ntasks + nodes - 1) / nodes : ntasks;
}

/*
 * By default a PMIx fence without data does not make nodes wait for each
 * other; Open MPI wants that of it at the end of MPI_Init, and crashes now
 * and then without.
 */
static bool add_mpi(void)
{
	bool missing = !ddp_plugin.mpi_keep && !mpi_chosen() &&
		       !ddp_fill_has_pmix() && ddp_cli_has_mpi("pmix");
	bool fence = (missing || ddp_fill_has_pmix()) &&
		     !getenv("SLURM_PMIX_FENCE");

	if (missing)
		ddp_rerun_add("SLURM_MPI_TYPE", "pmix");
	if (fence)
		ddp_rerun_add("SLURM_PMIX_FENCE", "ring");
	return missing || fence;
}

bool ddp_fill_component(uint32_t number)
{
	struct ddp_request request;
	struct ddp_error error;
	struct ddp_fill fill;
	bool any = false;
	const char *job_id = ddp_cli_get("jobid");
	char gres[32], gpus[1024];

	component = number;
	request_read(&request);
	if (job_id && !gpus_said(&request) && !request.ntasks &&
	    !request.ntasks_per_node && !request.ntasks_per_gpu &&
	    !request.arbitrary && !request.pty)
		request_ask(&request, job_id, gres, sizeof(gres));
	if (ddp_request_fill(&request, &fill, &error) < 0 ||
	    (ddp_request_gpus_per_node(&request, gpus, sizeof(gpus),
				       &error) < 0 &&
	     fill.ntasks_per_node && !request.ntasks))
		ddp_srun_refuse("%s", error.text);

	/* More tasks than GPUs are wanted, and no more nodes for them. */
	if (request.ntasks && !request.nodes &&
	    (ddp_plugin.gpus == DDP_GPUS_SHARE ||
	     ddp_plugin.gpus == DDP_GPUS_OFF))
		fill.ntasks_per_node = 0;
	if (fill.nodes) {
		add_number("SLURM_JOB_NUM_NODES", fill.nodes);
		/* One node has not all the GPUs of the job's --gpus. */
		if (request.in_job && ddp_cli_get("gpus") &&
		    !typed("gpus", "SLURM_GPUS"))
			add_number("SLURM_GPUS", job_ask(job_id));
	}
	if (fill.ntasks)
		add_number("SLURM_NTASKS", fill.ntasks);
	if (fill.ntasks_per_node) {
		add_number("SLURM_NTASKS_PER_NODE", fill.ntasks_per_node);
		/* srun passes its option on to the tasks in this one. */
		ddp_rerun_hide("SLURM_NTASKS_PER_NODE");
	}
	if (fill.ntasks_per_node && *gpus) {
		add_text("SLURM_GPUS_PER_NODE", gpus);
		ddp_rerun_hide("SLURM_GPUS_PER_NODE");
	}
	any |= fill.nodes || fill.ntasks || fill.ntasks_per_node;
	any |= add_cpus(&request, tasks_per_node(&request, &fill));
	any |= add_mpi();
	if (!ddp_cli_get("kill-on-bad-exit")) {
		ddp_rerun_add("SLURM_KILL_BAD_EXIT", "1");
		any = true;
	}
	return any;
}

void ddp_fill_check(void)
{
	struct ddp_request request;
	struct ddp_error error;
	enum ddp_cpus cpus;

	request_read(&request);
	if (ddp_request_check_cpus(&request, &cpus, &error) < 0)
		ddp_srun_refuse("%s", error.text);
	if (cpus == DDP_CPUS_ONE_A_RANK)
		slurm_info("slurm-ddp: one CPU a rank, and data loaders want "
			   "more: consider --cpus-per-task or --cpus-per-gpu");
}
