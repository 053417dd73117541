/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How the tasks of a node choose together: each says what Slurm gave it, and
 * the first of them discovers the hardware, once for all, and chooses.
 */
#define _GNU_SOURCE
#include "node.h"

#include <stdlib.h>
#include <string.h>

#include "layout/text.h"
#include "plugin.h"
#include "siblings.h"
#include "topo/topo.h"

/* What they share. Of the machine, all that GPUs' names are resolved by. */
struct shared {
	uint32_t gpu_count, part_count;
	struct ddp_gpu gpus[DDP_GPU_MAX];
	struct ddp_gpu_part parts[DDP_GPU_MAX * DDP_GPU_MAX];
	struct ddp_slot slots[];
};

static struct ddp_siblings *siblings;
static struct ddp_error prepare_error = {
	.code = DDP_ERROR_SYSTEM,
	.text = "Slurm did not tell slurmstepd of this node's tasks",
};

void ddp_node_prepare(uint32_t tasks)
{
	if (tasks > DDP_PLACEMENT_MAX)
		ddp_error_set(&prepare_error, DDP_ERROR_ARGUMENT,
			      "%u tasks on this node, of at most %d", tasks,
			      DDP_PLACEMENT_MAX);
	else
		siblings = ddp_siblings_create(tasks, sizeof(struct shared) +
					       tasks * sizeof(struct ddp_slot),
					       &prepare_error);
}

bool ddp_node_fail(bool alone)
{
	return siblings ? ddp_siblings_fail(siblings) : alone;
}

/* topology=, with the node's name for each %n; the caller's. */
static char *topology_name(const struct ddp_task *task)
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

static struct ddp_machine *machine_discover(const struct ddp_task *task,
					    struct ddp_error *error)
{
	char *file = ddp_plugin.topology ? topology_name(task) : NULL;
	struct ddp_machine *machine = NULL;
	struct ddp_topo *topo = NULL;

	if (ddp_plugin.topology && !file)
		ddp_error_set(error, DDP_ERROR_SYSTEM, "out of memory");
	else
		topo = ddp_topo_create(file, error);
	if (topo)
		machine = ddp_topo_machine(topo, error);
	if (machine && !file)
		ddp_topo_drivers(machine, "");
	ddp_topo_destroy(topo);
	free(file);
	return machine;
}

static void machine_share(const struct ddp_machine *machine,
			  struct shared *shared)
{
	shared->gpu_count = machine->gpu_count;
	shared->part_count = machine->part_count;
	memcpy(shared->gpus, machine->gpus,
	       machine->gpu_count * sizeof(*machine->gpus));
	memcpy(shared->parts, machine->parts,
	       machine->part_count * sizeof(*machine->parts));
}

/* The GPUs that this task sees; others' device files may be closed to it. */
static int view_resolve(const struct ddp_task *task, struct shared *shared,
			struct ddp_view *view, struct ddp_error *error)
{
	struct ddp_machine *machine =
		ddp_machine_create(0, shared->gpu_count, shared->part_count);
	struct ddp_gpus_env env = {
		.step_gpus = ddp_task_getenv(task, "SLURM_STEP_GPUS"),
		.cuda = ddp_task_getenv(task, "CUDA_VISIBLE_DEVICES"),
		.rocr = ddp_task_getenv(task, "ROCR_VISIBLE_DEVICES"),
	};
	int rc;

	if (!machine)
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "out of memory");
	memcpy(machine->gpus, shared->gpus,
	       shared->gpu_count * sizeof(*shared->gpus));
	memcpy(machine->parts, shared->parts,
	       shared->part_count * sizeof(*shared->parts));
	if (!ddp_plugin.topology)
		ddp_topo_reach(machine, "");
	rc = ddp_gpus_resolve(&env, machine, view, error);
	ddp_machine_destroy(machine);
	return rc;
}

static int slot_fill(const struct ddp_task *task, struct shared *shared,
		     struct ddp_error *error)
{
	struct ddp_slot *slot = &shared->slots[task->local_rank];

	slot->rank = task->rank;
	if (ddp_task_mask(&slot->mask, error) < 0)
		return -1;
	return ddp_plugin.gpus == DDP_GPUS_OFF ? 0 :
		view_resolve(task, shared, &slot->view, error);
}

/* Of local rank 0: discover, wait for what all say, and choose. */
static int lead(struct ddp_task *task, struct shared *shared,
		struct ddp_error *error)
{
	struct ddp_machine *machine = machine_discover(task, error);
	int rc = -1;

	if (machine) {
		machine_share(machine, shared);
		ddp_siblings_open(siblings, DDP_GATE_MACHINE);
		rc = slot_fill(task, shared, error);
	}
	if (rc == 0 && !ddp_siblings_say(siblings))
		rc = ddp_siblings_wait(siblings, DDP_GATE_SAID,
				       "waiting for all", error);
	if (rc == 0)
		rc = ddp_choose(task, machine, shared->slots,
				ddp_siblings_count(siblings), error);
	if (rc == 0 && ddp_siblings_failed(siblings))
		rc = 1;
	if (rc == 0)
		ddp_siblings_open(siblings, DDP_GATE_PLACED);
	ddp_machine_destroy(machine);
	return rc;
}

static int follow(struct ddp_task *task, struct shared *shared,
		  struct ddp_error *error)
{
	int rc = ddp_siblings_wait(siblings, DDP_GATE_MACHINE,
				   "hwloc's discovery of the node", error);

	if (rc == 0)
		rc = slot_fill(task, shared, error);
	if (rc != 0)
		return rc;
	if (ddp_siblings_say(siblings))
		ddp_siblings_open(siblings, DDP_GATE_SAID);
	return ddp_siblings_wait(siblings, DDP_GATE_PLACED,
				 "choosing for all", error);
}

int ddp_task_join(struct ddp_task *task, struct ddp_error *error)
{
	struct shared *shared;
	struct ddp_slot *slot;
	int rc;

	if (!siblings) {
		task->alike = true;
		*error = prepare_error;
		return -1;
	}
	shared = ddp_siblings_memory(siblings);
	ddp_siblings_arrive(siblings);
	rc = task->local_rank == 0 ? lead(task, shared, error) :
		follow(task, shared, error);
	if (rc != 0)
		return rc;
	slot = &shared->slots[task->local_rank];
	task->placement = slot->placement;
	task->record = slot->record;
	task->visible = slot->visible;
	return 0;
}
