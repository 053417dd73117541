/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One task of a node chooses for all of them which GPU and CPUs each gets, and
 * says what there is to say of that.
 */
#define _GNU_SOURCE
#include "stepd/task.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options/plugin.h"
#include "place/visible_gpus.h"
#include "place/report.h"
#include "util/net.h"
#include "util/text.h"

/* ---- what is said */

/* --ddp=explain: prints the rows of the ranks, on rank 0's node with a head. */
static void tell_rows(const struct ddp_task *task, const struct ddp_row *rows,
		      uint32_t count)
{
	char *table = ddp_table_format(rows, count, false);
	char flaw[DDP_INTERFACE_FLAW_SIZE];
	struct ddp_text text = { 0 };

	if (task->vars.rank.node_rank == 0) {
		ddp_text_add_quoted(&text, "slurm-ddp: master %.128s port %u: "
				    "%s", task->vars.master_addr,
				    task->vars.master_port, task->port_why);
		ddp_text_add(&text, "\n");
	}
	ddp_interface_find_flaw(ddp_task_users(task, "GLOO_SOCKET_IFNAME"),
				ddp_task_users(task, "NCCL_SOCKET_IFNAME"),
				flaw);
	if (*flaw) {
		ddp_text_add_quoted(&text, "slurm-ddp: on %s: "
				    DDP_INTERFACE_FLAW, task->vars.rank.host,
				    flaw);
		ddp_text_add(&text, "\n");
	}
	ddp_text_add(&text, "%s", table ? table : "");
	free(table);
	ddp_task_say(ddp_text_finish(&text));
}

#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(23, 11, 0)
#define UNLESS_SHARED " (unless with --gres-flags=allow-task-sharing)"
#else
#define UNLESS_SHARED ""
#endif

/* Returns true if the first node prints a warning for all that are like it. */
static bool first_speaks(const struct ddp_task *task)
{
	struct ddp_rank first;

	return task->vars.rank.node_rank > 0 && !task->heterogeneous &&
	       ddp_layout_get(task->layout, 0, &first, NULL) == 0 &&
	       first.local_world_size == task->local_count;
}

/* The reasons why LOCAL_RANK is not a device number. */
enum device {
	DEVICE_OWN,		/* --ddp-gpus=own */
	DEVICE_SHARE,		/* --ddp-gpus=share, and more tasks than GPUs */
	DEVICE_CUT,		/* Slurm has given tasks different GPUs */
	DEVICE_INSTANCE,	/* each rank has its MIG instance */
	DEVICE_INSTANCES,	/* a launcher has several */
	DEVICE_HIP		/* the user has chosen among AMD's GPUs */
};

static const char *const devices[] = {
	[DEVICE_OWN] = "--ddp-gpus=own: LOCAL_RANK is not a device number, and "
		"programs that need to see both GPUs have no P2P between them; "
		"use device 0, or --ddp-gpus=all",
	[DEVICE_SHARE] = "--ddp-gpus=share: there are more tasks than GPUs, so "
		"LOCAL_RANK is not a device number and NCCL cannot be used; use "
		"device 0, or ask for --gres=gpu:N",
	[DEVICE_CUT] = "Slurm has given each task GPUs of its own "
		"(--gpus-per-task, --gpu-bind), so LOCAL_RANK is not a device "
		"number and P2P between GPUs is lost" UNLESS_SHARED "; use "
		"device 0, or ask for --gres=gpu:N instead",
	[DEVICE_INSTANCE] = "a process sees one MIG instance, here that of its "
		"rank, so LOCAL_RANK is not a device number, and NCCL does not "
		"run between instances of one GPU; use device 0, and Gloo or "
		"MPI",
	[DEVICE_INSTANCES] = "a process sees one MIG instance, so ranks that "
		"a launcher starts all have the first; start one task an "
		"instance instead: srun --ddp python3 PROGRAM",
	[DEVICE_HIP] = "HIP_VISIBLE_DEVICES counts what "
		"ROCR_VISIBLE_DEVICES leaves, so LOCAL_RANK may be another GPU "
		"than the rank's; unset HIP_VISIBLE_DEVICES",
};

static void tell_device(const struct ddp_task *task, enum device why)
{
	const struct ddp_rank *rank = &task->vars.rank;
	struct ddp_text text = { 0 };

	if (first_speaks(task))
		return;
	ddp_text_add(&text, "slurm-ddp: ");
	if (rank->node_rank > 0)
		ddp_text_add_quoted(&text, "on %s: ", rank->host);
	ddp_text_add(&text, "%s\n", devices[why]);
	ddp_task_say(ddp_text_finish(&text));
}

/* ---- the choice */

/* The inputs of the choice, and its results. */
struct choice {
	const struct ddp_task *task;
	const struct ddp_machine *machine;
	struct ddp_slot *slots;
	uint32_t count;			/* of tasks */
	struct ddp_view all, *views;
	uint32_t (*indexes)[DDP_GPU_MAX];
	struct ddp_placement_rank *ranks;
	struct ddp_placements *placements;
	struct ddp_row *rows;
	bool apart;			/* see ddp_views_join_node */
};

/*
 * Add to the error that the GPUs come from the user's own variable, and how to
 * fix that.
 */
static void blame_variable(const struct choice *choice, struct ddp_error *error)
{
	const char *variable = ddp_gpus_variable(&choice->all);
	size_t length = strlen(error->text);

	if (choice->all.count &&
	    !ddp_task_getenv(choice->task, "SLURM_STEP_GPUS") &&
	    ddp_task_users(choice->task, variable))
		snprintf(error->text + length, sizeof(error->text) - length,
			 " (%s is not from Slurm here; unset it, or use "
			 "--ddp-gpus=off)", variable);
}

static int make_placements(struct choice *choice, struct ddp_error *error)
{
	const char *bind = ddp_task_getenv(choice->task, DDP_TELL_CPU_BIND);
	struct ddp_placement_params params = {
		.machine = choice->machine,
		.gpus = &choice->all,
		.rank_count = choice->count,
		.gpus_policy = ddp_plugin.gpus,
		.cpus_policy = ddp_plugin.cpus,
		.cpus_bound = bind && strcmp(bind, "1") == 0,
	};
	uint32_t i;

	for (i = 0; i < choice->count; i++)
		choice->views[i] = choice->slots[i].view;
	if (ddp_views_join_node(choice->machine, ddp_task_gpus(choice->task),
				choice->views, choice->count, &choice->all,
				choice->indexes, &choice->apart, error) < 0)
		return -1;
	for (i = 0; i < choice->count; i++) {
		choice->ranks[i].mask = choice->slots[i].mask;
		choice->ranks[i].gpu_count = choice->views[i].count;
		choice->ranks[i].gpus = choice->indexes[i];
	}
	params.ranks = choice->ranks;
	choice->placements = ddp_placement_create(&params, error);
	if (!choice->placements)
		blame_variable(choice, error);
	return choice->placements ? 0 : -1;
}

/* The interface that the tasks will be told to use. */
static const char *get_interface(const struct ddp_task *task)
{
	const char *users = ddp_task_users(task, "GLOO_SOCKET_IFNAME");

	if (users)
		return users;
	return task->vars.interface ? task->vars.interface : "";
}

/* Copy what a task needs of its row to where the task finds it. */
static int fill_slot(struct ddp_slot *slot, const struct ddp_row *row,
		     struct ddp_error *error)
{
	char *record = ddp_row_format(row);
	bool fits;

	if (!record)
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "out of memory");
	fits = strlen(record) < sizeof(slot->record) &&
	       strlen(row->visible) < sizeof(slot->visible);
	if (fits) {
		strcpy(slot->record, record);
		strcpy(slot->visible, row->visible);
	}
	free(record);
	return fits ? 0 :
		ddp_error_set(error, DDP_ERROR_SYSTEM, "the placement of rank "
			      "%u does not fit into %d bytes", row->rank,
			      DDP_RECORD_SIZE);
}

/* The rank's GPUs, for messages of its end. */
static void name_gpus(struct ddp_slot *slot, const struct ddp_row *row)
{
	size_t gpus = 0, buses = 0;
	uint32_t k;

	for (k = 0; k < row->gpu_count; k++) {
		if (row->gpus[k].number != DDP_GPU_NONE &&
		    gpus + 16 < sizeof(slot->gpus))
			gpus += (size_t)snprintf(slot->gpus + gpus, 16, "%s%u",
						 gpus ? "," : "",
						 row->gpus[k].number);
		if (buses + 32 < sizeof(slot->buses))
			buses += (size_t)snprintf(slot->buses + buses, 32,
						  "%.30s ",
						  row->gpus[k].bus_id);
	}
}

static int make_row(struct choice *choice, uint32_t i,
		    struct ddp_error *error)
{
	const struct ddp_task *task = choice->task;
	struct ddp_slot *slot = &choice->slots[i];
	struct ddp_row *row = &choice->rows[i];
	struct ddp_rank rank;
	uint32_t k;

	slot->placement = *ddp_placement_get(choice->placements, i);
	if (ddp_layout_get(task->layout, slot->rank, &rank, error) < 0 ||
	    ddp_row_make(row, &rank, choice->machine, &choice->all,
			 &choice->views[i], &slot->placement,
			 get_interface(task), error) < 0)
		return -1;
	for (k = 0; choice->apart && k < row->gpu_count; k++)
		row->gpus[k].number = DDP_GPU_NONE;
	name_gpus(slot, row);
	return fill_slot(slot, row, error);
}

static int make_rows(struct choice *choice, struct ddp_error *error)
{
	uint32_t i;

	for (i = 0; i < choice->count; i++)
		if (make_row(choice, i, error) < 0)
			return -1;
	return 0;
}

/* Warn where a program that takes LOCAL_RANK for its device would be wrong. */
static void warn(const struct choice *choice)
{
	enum device why = ddp_plugin.gpus == DDP_GPUS_SHARE ?
		DEVICE_SHARE : DEVICE_OWN;
	bool instances = false, starts = choice->task->launcher;
	uint32_t i;

	if (choice->all.rocr &&
	    ddp_task_users(choice->task, "HIP_VISIBLE_DEVICES"))
		tell_device(choice->task, DEVICE_HIP);
	for (i = 0; i < choice->all.count; i++)
		instances |= ddp_gpus_is_instance(&choice->all.gpus[i]);
	starts &= instances && choice->all.count > 1;
	if (!choice->all.count || (!starts &&
	    ddp_placement_get(choice->placements, 0)->local_rank_is_device))
		return;
	for (i = 0; i < choice->count; i++)
		if (choice->views[i].count < choice->all.count)
			why = DEVICE_CUT;
	if (instances && why == DEVICE_OWN)
		why = starts ? DEVICE_INSTANCES : DEVICE_INSTANCE;
	tell_device(choice->task, why);
}

static int make_choice(struct choice *choice, struct ddp_error *error)
{
	if (!choice->views || !choice->indexes || !choice->ranks ||
	    !choice->rows)
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "out of memory");
	if (make_placements(choice, error) < 0 || make_rows(choice, error) < 0)
		return -1;
	warn(choice);
	if (ddp_plugin.explain)
		tell_rows(choice->task, choice->rows, choice->count);
	return 0;
}

int ddp_choose(const struct ddp_task *task, const struct ddp_machine *machine,
	       struct ddp_slot *slots, uint32_t count, struct ddp_error *error)
{
	struct choice choice = {
		.task = task,
		.machine = machine,
		.slots = slots,
		.count = count,
		.views = calloc(count, sizeof(*choice.views)),
		.indexes = calloc(count, sizeof(*choice.indexes)),
		.ranks = calloc(count, sizeof(*choice.ranks)),
		.rows = calloc(count, sizeof(*choice.rows)),
	};
	int rc = make_choice(&choice, error);
	uint32_t i;

	for (i = 0; choice.rows && i < count; i++)
		ddp_row_clear(&choice.rows[i]);
	ddp_placement_destroy(choice.placements);
	free(choice.rows);
	free(choice.ranks);
	free(choice.indexes);
	free(choice.views);
	return rc;
}
