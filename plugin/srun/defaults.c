/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fills in what the user left open. There is one task for each GPU, or for each
 * node of a launcher, with the job's CPUs. PMIx is the MPI type, with what its
 * fences need, and the step ends when a rank fails.
 */
#define _GNU_SOURCE
#include "srun/srun.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options/plugin.h"
#include "slurm/scontrol.h"
#include "srun/cli.h"
#include "srun/rerun.h"

/* ---- the MPI type */

void ddp_mpi_restore(void)
{
	if (ddp_srun.mpi_before)
		setenv("SLURM_MPI_TYPE", ddp_srun.mpi_before, 1);
	else
		unsetenv("SLURM_MPI_TYPE");
}

/*
 * srun tells its tasks the MPI type even if nobody chose it: the "none" that
 * is in the environment of a step, such as salloc's shell, is no choice.
 */
static bool was_chosen(void)
{
	const char *mpi = ddp_cli_get("mpi"), *before = ddp_srun.mpi_before;

	return mpi && !(strcmp(mpi, "none") == 0 && before &&
			strcmp(before, "none") == 0 &&
			getenv("SLURM_STEP_ID"));
}

bool ddp_mpi_is_pmix(void)
{
	const char *mpi = ddp_cli_get_default("mpi");

	return mpi && strncmp(mpi, "pmix", 4) == 0;
}

/*
 * A PMIx fence without data does not make nodes wait for each other by default.
 * Open MPI needs that at the end of MPI_Init, and crashes now and then without
 * it.
 */
static bool add_mpi(void)
{
	bool missing = !ddp_plugin.mpi_keep && !was_chosen() &&
		       !ddp_mpi_is_pmix() && ddp_cli_has_mpi("pmix");
	bool fence = (missing || ddp_mpi_is_pmix()) &&
		     !getenv("SLURM_PMIX_FENCE");

	if (missing)
		ddp_rerun_add("SLURM_MPI_TYPE", "pmix");
	if (fence)
		ddp_rerun_add("SLURM_PMIX_FENCE", "ring");
	return missing || fence;
}

/* ---- tasks and CPUs */

struct fill {
	uint32_t component;
	const char *job_id;		/* of the job around; NULL: none */
	struct ddp_request request;	/* what was asked for */
	char gres[32];			/* request.gres, as the job has it */
	struct ddp_fill tasks;		/* to be filled in */
	char gpus[1024];		/* --gpus-per-node, the same; "" */
};

/*
 * Returns the number of the component that srun takes this one for: the one
 * that --het-group names. srun sets that option itself, so that it does not
 * count as given.
 */
static long get_het_group(const struct fill *fill)
{
	const char *group = ddp_cli_get_default("het-group");

	return group ? atol(group) : (long)fill->component;
}

static bool asks_gpus(const struct ddp_request *request)
{
	return request->gres || request->gpus || request->gpus_per_node ||
	       request->gpus_per_task || request->gpus_per_socket;
}

/* The job's GPUs may outrank an inherited number of tasks. */
static bool weighs(const struct ddp_request *request)
{
	return request->ntasks_inherited && request->nodes_typed &&
	       !request->outranked && ddp_plugin.gpus != DDP_GPUS_SHARE &&
	       ddp_plugin.gpus != DDP_GPUS_OFF;
}

/*
 * GPUs on each node of the job, or of this component of it; 0: Slurm does not
 * tell, and the number of tasks is known without them.
 */
static uint32_t count_job_gpus(const struct fill *fill)
{
	const char *job_id = fill->job_id;
	struct ddp_error error;
	char member[64];
	uint32_t gpus;

	/* scontrol would show all components of a heterogeneous job. */
	if (getenv("SLURM_HET_SIZE")) {
		snprintf(member, sizeof(member), "%s+%ld", job_id,
			 get_het_group(fill));
		job_id = member;
	}
	if (ddp_scontrol_count_gpus(job_id, &gpus, &error) < 0) {
		if (fill->request.ntasks_per_gpu || fill->request.ntasks)
			return 0;
		ddp_srun_refuse("%s", error.text);
	}
	return gpus;
}

/*
 * Read what was asked for. Where nothing tells the number of tasks, the GPUs of
 * the job do. These may not be in the environment, because salloc --gres leaves
 * no trace there: scontrol knows them.
 */
static void read_request(struct fill *fill)
{
	struct ddp_request *request = &fill->request;

	ddp_asked_read_launcher(request, ddp_srun.launcher);
	if (!fill->job_id || asks_gpus(request) ||
	    ((request->ntasks || request->ntasks_per_node) &&
	     !weighs(request)) || (request->ntasks_per_gpu &&
				   ddp_request_nodes(request) <= 1) ||
	    request->arbitrary || request->pty || request->launcher)
		return;
	snprintf(fill->gres, sizeof(fill->gres), "gpu:%u",
		 count_job_gpus(fill));
	request->gres = fill->gres;
	if (!request->ntasks)
		return;
	request->outranked = ddp_request_outranks(request);
	if (request->outranked)
		request->ntasks = NULL;
	else
		request->gres = NULL;
}

static void choose_tasks(struct fill *fill)
{
	struct ddp_request *request = &fill->request;
	bool shared = ddp_plugin.gpus == DDP_GPUS_SHARE ||
		      ddp_plugin.gpus == DDP_GPUS_OFF;
	struct ddp_error error;

	/* The nodes find out what --gpu-bind leaves each task to see. */
	if (!shared && !ddp_cli_isset("gpu-bind") &&
	    ddp_request_check_gpus(request, &error) < 0)
		ddp_srun_refuse("%s", error.text);
	if (ddp_request_fill(request, &fill->tasks, &error) < 0 ||
	    (ddp_request_gpus_per_node(request, fill->gpus,
				       sizeof(fill->gpus), &error) < 0 &&
	     fill->tasks.ntasks_per_node && !request->ntasks))
		ddp_srun_refuse("%s", error.text);
	/* Slurm was asked for the job's nodes, and srun takes one by itself. */
	if (request->in_job && request->nodes && !ddp_cli_get("nodes") &&
	    !ddp_cli_get("nodelist"))
		fill->tasks.nodes = ddp_request_nodes(request);
	/* The user wants more tasks than GPUs, and not more nodes for them. */
	if (request->ntasks && !request->nodes && shared)
		fill->tasks.ntasks_per_node = 0;
}

/* Add a variable for this component of the step alone. */
static void add_text(const struct fill *fill, const char *name,
		     const char *value)
{
	char variable[64];

	snprintf(variable, sizeof(variable), "%s_HET_GROUP_%ld", name,
		 get_het_group(fill));
	ddp_rerun_add(variable, value);
}

static void add_number(const struct fill *fill, const char *name,
		       uint32_t value)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", value);
	add_text(fill, name, text);
}

static void add_nodes(const struct fill *fill)
{
	add_number(fill, "SLURM_JOB_NUM_NODES", fill->tasks.nodes);
	/* The job's --gpus is more than one node of it has. */
	if (fill->request.in_job && ddp_cli_get("gpus") &&
	    !ddp_asked_step_gpus())
		add_number(fill, "SLURM_GPUS", count_job_gpus(fill));
}

static bool add_tasks(const struct fill *fill)
{
	if (fill->tasks.nodes)
		add_nodes(fill);
	if (fill->tasks.ntasks)
		add_number(fill, "SLURM_NTASKS", fill->tasks.ntasks);
	if (fill->tasks.ntasks_per_node) {
		add_number(fill, "SLURM_NTASKS_PER_NODE",
			   fill->tasks.ntasks_per_node);
		/* srun passes its option on to the tasks in this variable. */
		ddp_rerun_hide("SLURM_NTASKS_PER_NODE");
	}
	if (fill->tasks.ntasks_per_node && *fill->gpus) {
		add_text(fill, "SLURM_GPUS_PER_NODE", fill->gpus);
		ddp_rerun_hide("SLURM_GPUS_PER_NODE");
	}
	return fill->tasks.nodes || fill->tasks.ntasks ||
	       fill->tasks.ntasks_per_node;
}

static uint32_t count_tasks_per_node(const struct fill *fill)
{
	const struct ddp_request *request = &fill->request;
	uint32_t nodes = request->nodes ? (uint32_t)atol(request->nodes) : 1;
	uint32_t ntasks;

	if (fill->tasks.ntasks_per_node)
		return fill->tasks.ntasks_per_node;
	if (request->ntasks_per_node)
		return (uint32_t)atol(request->ntasks_per_node);
	ntasks = fill->tasks.ntasks ? fill->tasks.ntasks :
		 request->ntasks ? (uint32_t)atol(request->ntasks) : nodes;
	return nodes ? (ntasks + nodes - 1) / nodes : ntasks;
}

/*
 * Returns what Slurm says of this component of the job, or else of the job;
 * NULL: nothing.
 */
static const char *get_job_env(const struct fill *fill, const char *name)
{
	char variable[64];
	const char *value;

	snprintf(variable, sizeof(variable), "%s_HET_GROUP_%ld", name,
		 get_het_group(fill));
	value = getenv(variable);
	return value ? value : getenv(name);
}

/* Finds the number of CPUs in a list such as "gres/gpu:1,cpu=4"; NULL: none. */
static const char *find_tres_cpus(const char *tres)
{
	for (; tres && *tres; tres += *tres == ',') {
		if (strncmp(tres, "cpu", 3) == 0 &&
		    (tres[3] == '=' || tres[3] == ':'))
			return tres + 4;
		tres += strcspn(tres, ",");
	}
	return NULL;
}

/* srun refuses to run where this and SLURM_CPUS_PER_TASK differ. */
static void add_tres(const struct fill *fill, uint32_t cpus)
{
	const char *tres = get_job_env(fill, "SLURM_TRES_PER_TASK");
	const char *old = find_tres_cpus(tres);
	char *text;

	if (!old)
		return;
	if (asprintf(&text, "%.*s%u%s", (int)(old - tres), tres, cpus,
		     old + strcspn(old, ",")) < 0)
		ddp_srun_refuse("out of memory");
	add_text(fill, "SLURM_TRES_PER_TASK", text);
	free(text);
}

/*
 * CPUs for each task of the step, so that what the job has reaches them; 0 if
 * that is unknown, or the user's own. A launcher's task gets all CPUs of its
 * node; outside a job as many as its ranks would have had as tasks.
 */
static uint32_t count_cpus_per_task(const struct fill *fill,
				    const char *job_cpus)
{
	const char *nodes = get_job_env(fill, "SLURM_JOB_NUM_NODES");
	uint32_t gpus = 0;

	if (fill->request.launcher && !fill->job_id) {
		ddp_request_gpus(&fill->request, &gpus, NULL);
		return fill->request.cpus_per_task ? 0 : gpus;
	}
	/* srun unsets it for "a : b" in an ordinary job. */
	if (!nodes)
		nodes = getenv("SLURM_NNODES");
	return ddp_request_cpus_per_task(fill->request.launcher ? NULL :
					 job_cpus,
					 get_job_env(fill,
						"SLURM_JOB_CPUS_PER_NODE"),
					 nodes ? (uint32_t)atol(nodes) : 0,
					 count_tasks_per_node(fill));
}

/*
 * The job's --cpus-per-task. Some versions of srun ignore it, and others give
 * it to each task of the step: the same value is then not the user's word for
 * this step. If the job asked for it for fewer tasks than one for each GPU, the
 * tasks share what it has.
 */
static bool add_cpus(const struct fill *fill)
{
	const char *job_cpus = get_job_env(fill, "SLURM_CPUS_PER_TASK");
	const char *asked = fill->request.cpus_per_task;
	uint32_t cpus;

	if ((!job_cpus && !fill->request.launcher) ||
	    fill->request.cpus_per_gpu ||
	    (asked && (!job_cpus || strcmp(asked, job_cpus) != 0)))
		return false;
	cpus = count_cpus_per_task(fill, job_cpus);
	if (!cpus)
		return false;
	/* Some versions of srun read the one, others the other. */
	add_number(fill, "SRUN_CPUS_PER_TASK", cpus);
	add_number(fill, "SLURM_CPUS_PER_TASK", cpus);
	add_tres(fill, cpus);
	return true;
}

/*
 * Slurm's own word for too few CPUs, as in a salloc without --ddp, is that more
 * processors are requested than permitted. A step on fewer nodes than the job's
 * may have those with more, where they differ.
 */
static void check_cpus(const struct fill *fill)
{
	const char *cpus = get_job_env(fill, "SLURM_JOB_CPUS_PER_NODE");
	const char *job_nodes = get_job_env(fill, "SLURM_JOB_NUM_NODES");
	uint32_t nodes = job_nodes ? (uint32_t)atol(job_nodes) : 0;
	uint32_t tasks = fill->tasks.ntasks_per_node, have;

	have = ddp_request_cpus_per_task(NULL, cpus, nodes, 1);
	if (ddp_plugin.cpus_trust || fill->request.cpus_open ||
	    !fill->job_id || have == 0 || have >= tasks ||
	    (nodes != ddp_request_nodes(&fill->request) && strchr(cpus, ',')))
		return;
	ddp_srun_refuse("%u GPUs a node make %u ranks, and the job has CPUs "
			"for %u only; give salloc or sbatch --ddp, or "
			"--ntasks-per-node=%u or --cpus-per-gpu=CPUS", tasks,
			tasks, have, tasks);
}

/* A rank that fails ends the step even where slurm.conf says otherwise. */
static bool add_kill(void)
{
	if (ddp_cli_get("kill-on-bad-exit"))
		return false;
	ddp_rerun_add("SLURM_KILL_BAD_EXIT", ddp_supervise_alone() ? "0" : "1");
	return true;
}

bool ddp_fill_component(uint32_t component)
{
	struct fill fill = {
		.component = component,
		.job_id = ddp_cli_get("jobid"),
	};
	bool any;

	read_request(&fill);
	choose_tasks(&fill);
	check_cpus(&fill);
	/* First: it reads variables of the job that add_tasks replaces. */
	any = add_cpus(&fill);
	any |= add_tasks(&fill);
	any |= add_mpi();
	any |= add_kill();
	return any;
}
