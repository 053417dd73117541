/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How the tasks of a node choose together: each says what Slurm gave it. The
 * task with local rank 0 discovers the hardware, once for all, and chooses.
 */
#define _GNU_SOURCE
#include "stepd/task.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent.h"
#include "options/options.h"
#include "options/plugin.h"
#include "stepd/stepd.h"
#include "topo/topo.h"
#include "util/text.h"

/*
 * Tells the agent why this task ends, if there is an agent. It knows the tasks
 * by their pids.
 */
static void tell_agent(const char *why)
{
	struct ddp_node *node = (void *)ddp_stepd.siblings->memory;
	pid_t pid = getpid();
	uint32_t i;

	for (i = 0; i < ddp_stepd.siblings->count; i++)
		if (node->slots[i].pid == pid)
			snprintf(node->slots[i].refusal,
				 sizeof(node->slots[i].refusal), "%s", why);
}

bool ddp_node_fail(const char *why, bool alone)
{
	if (ddp_stepd.siblings)
		tell_agent(why);
	return ddp_stepd.siblings ?
		!atomic_exchange(&ddp_stepd.siblings->failed, true) : alone;
}

void ddp_node_leave(void)
{
	const struct ddp_node *node;
	uint32_t i;

	if (!ddp_stepd.siblings)
		return;
	node = (const void *)ddp_stepd.siblings->memory;
	for (i = 0; i < ddp_stepd.siblings->count; i++)
		if (node->slots[i].refusal[0]) {
			tell_agent(node->slots[i].refusal);
			return;
		}
}

/* The file of topology=, with the node's name for each %n; the caller's. */
static char *name_topology(const struct ddp_task *task)
{
	const char *at = ddp_plugin.topology;
	struct ddp_text name = { 0 };

	for (; *at; at++) {
		if (at[0] == '%' && at[1] == 'n') {
			ddp_text_add(&name, "%s", task->vars.rank.host);
			at++;
		} else {
			ddp_text_add(&name, "%c", *at);
		}
	}
	return ddp_text_finish(&name);
}

static struct ddp_machine *discover_machine(const struct ddp_task *task,
					    struct ddp_error *error)
{
	char *file = ddp_plugin.topology ? name_topology(task) : NULL;
	struct ddp_machine *machine = NULL;
	struct ddp_topo *topo = NULL;

	if (ddp_plugin.topology && !file)
		ddp_error_set(error, DDP_ERROR_SYSTEM, "out of memory");
	else
		topo = file ? ddp_topo_create(file, error) :
			ddp_topo_find(error);
	if (topo)
		machine = ddp_topo_machine(topo, error);
	if (machine && !file)
		ddp_topo_drivers(machine, "");
	ddp_topo_destroy(topo);
	free(file);
	return machine;
}

static void share_machine(const struct ddp_machine *machine,
			  struct ddp_node *node)
{
	node->gpu_count = machine->gpu_count;
	node->part_count = machine->part_count;
	memcpy(node->gpus, machine->gpus,
	       machine->gpu_count * sizeof(*machine->gpus));
	memcpy(node->parts, machine->parts,
	       machine->part_count * sizeof(*machine->parts));
}

/*
 * Resolve the GPUs that this task sees. The task itself must do it, because it
 * may not be able to open the device files of others.
 */
static int resolve_view(const struct ddp_task *task, struct ddp_node *node,
			struct ddp_view *view, struct ddp_error *error)
{
	struct ddp_machine *machine =
		ddp_machine_create(0, node->gpu_count, node->part_count);
	struct ddp_gpus_env env = {
		.step_gpus = ddp_task_getenv(task, "SLURM_STEP_GPUS"),
		.cuda = ddp_task_getenv(task, "CUDA_VISIBLE_DEVICES"),
		.rocr = ddp_task_getenv(task, "ROCR_VISIBLE_DEVICES"),
		.on_node = ddp_task_gpus(task),
		.ze = ddp_task_getenv(task, "ZE_AFFINITY_MASK"),
	};
	int rc;

	if (!machine)
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "out of memory");
	memcpy(machine->gpus, node->gpus,
	       node->gpu_count * sizeof(*node->gpus));
	memcpy(machine->parts, node->parts,
	       node->part_count * sizeof(*node->parts));
	if (!ddp_plugin.topology)
		ddp_topo_reach(machine, "");
	rc = ddp_gpus_resolve(&env, machine, view, error);
	ddp_machine_destroy(machine);
	return rc;
}

static int fill_slot(const struct ddp_task *task, struct ddp_node *node,
		     struct ddp_error *error)
{
	struct ddp_slot *slot = &node->slots[task->local_rank];

	slot->rank = task->rank;
	slot->pid = getpid();
	memcpy(slot->warning, task->warning, sizeof(slot->warning));
	if (ddp_task_mask(&slot->mask, error) < 0)
		return -1;
	return ddp_plugin.gpus == DDP_GPUS_OFF ? 0 :
		resolve_view(task, node, &slot->view, error);
}

static int start_agent(const struct ddp_task *task, struct ddp_error *error)
{
	const struct ddp_agent_step step = {
		.job_id = task->job_id, .step_id = task->step_id,
		.world_size = task->world_size, .rank = task->rank,
		.launcher = task->launcher, .notes = ddp_stepd.notes[0],
		.awaited = ddp_task_users(task, DDP_TELL_CHILDREN) != NULL,
		.ras_port = task->vars.ras_port, .host = task->vars.rank.host,
		.path = ddp_task_users(task, "PATH"),
		.ras_address = ddp_task_users(task, "NCCL_RAS_ADDR"),
		.supervisor = ddp_task_users(task, DDP_TELL_SUPERVISOR),
		.srun_host = ddp_task_users(task, "SLURM_SRUN_COMM_HOST")
	};

	return ddp_agent_start(&step, ddp_stepd.siblings, error);
}

/* Say why the tasks are not watched, or refuse them for an option. */
static int go_unwatched(const struct ddp_task *task, struct ddp_error *error)
{
	const char *needs = ddp_plugin.logs ? "--ddp-logs" :
		ddp_plugin.show ? "--ddp-show" :
		task->supervised ? ddp_options_need() : NULL;
	const struct ddp_error why = *error;

	if (needs)
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "%s: %s", needs,
				     why.text);
	dprintf(STDERR_FILENO, "slurm-ddp: on %s: %s\n", task->vars.rank.host,
		why.text);
	return 0;
}

/* Local rank 0: discover, wait for what all tasks say, and choose. */
static int lead(struct ddp_task *task, struct ddp_node *node, bool place,
		struct ddp_error *error)
{
	struct ddp_siblings *siblings = ddp_stepd.siblings;
	struct ddp_machine *machine =
		place ? discover_machine(task, error) : NULL;
	int rc = place && !machine ? -1 : 0;

	if (machine)
		share_machine(machine, node);
	if (rc == 0) {
		ddp_siblings_open(siblings, DDP_GATE_MACHINE);
		rc = fill_slot(task, node, error);
	}
	if (rc == 0 && !ddp_siblings_say(siblings))
		rc = ddp_siblings_wait(siblings, DDP_GATE_SAID,
				       "waiting for all", error);
	if (rc == 0 && place)
		rc = ddp_choose(task, machine, node->slots, siblings->count,
				error);
	if (rc == 0 && atomic_load(&siblings->failed))
		rc = 1;
	if (rc == 0 && !ddp_plugin.dry_run &&
	    start_agent(task, error) < 0)
		rc = go_unwatched(task, error);
	if (rc == 0)
		ddp_siblings_open(siblings, DDP_GATE_PLACED);
	ddp_machine_destroy(machine);
	return rc;
}

static int follow(struct ddp_task *task, struct ddp_node *node,
		  struct ddp_error *error)
{
	struct ddp_siblings *siblings = ddp_stepd.siblings;
	int rc = ddp_siblings_wait(siblings, DDP_GATE_MACHINE,
				   "hwloc's discovery of the node", error);

	if (rc == 0)
		rc = fill_slot(task, node, error);
	if (rc != 0)
		return rc;
	if (ddp_siblings_say(siblings))
		ddp_siblings_open(siblings, DDP_GATE_SAID);
	return ddp_siblings_wait(siblings, DDP_GATE_PLACED,
				 "choosing for all", error);
}

/* The task's part of what was chosen. */
static void take_slot(struct ddp_task *task, const struct ddp_slot *slot)
{
	task->placement = slot->placement;
	ddp_placement_positions(&task->placement, task->positions);
	task->vars.positions = task->positions;
	task->vars.placement = slot->record;
	task->vars.visible = slot->visible;
}

/* A supervisor to which it can report, or output that it has copied. */
static bool needs_agent(const struct ddp_task *task)
{
	return ddp_task_users(task, DDP_TELL_SUPERVISOR) || ddp_plugin.logs ||
	       ddp_plugin.show;
}

/* Tasks meet for the agent alone where nothing is to be chosen. */
int ddp_node_join(struct ddp_task *task, struct ddp_error *error)
{
	bool place = ddp_options_place();
	struct ddp_slot *slot;
	struct ddp_node *node;
	int rc;

	if (!place && (!ddp_stepd.siblings || !needs_agent(task)))
		return 0;
	if (!ddp_stepd.siblings) {
		task->alike = true;
		*error = ddp_stepd.error;
		return -1;
	}
	node = (void *)ddp_stepd.siblings->memory;
	atomic_fetch_add(&ddp_stepd.siblings->arrived, 1);
	rc = task->local_rank == 0 ? lead(task, node, place, error) :
		follow(task, node, error);
	if (rc != 0)
		return rc;
	slot = &node->slots[task->local_rank];
	if (place)
		take_slot(task, slot);
	if (atomic_load(&ddp_stepd.siblings->agent) <= 0)
		return 0;
	if (slot->error_file[0])
		task->vars.error_file = slot->error_file;
	if (slot->heartbeat_file[0])
		task->vars.heartbeat_file = slot->heartbeat_file;
	return 0;
}
