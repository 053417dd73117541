/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Prints what one task of a node says for all of them: the rows of an
 * explanation, and a warning. task_init.c prints errors.
 */
#define _GNU_SOURCE
#include "stepd/tell.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "options/plugin.h"
#include "place/table.h"
#include "util/interface.h"
#include "util/text.h"

/* Print in one write, so that lines of other nodes do not come in between. */
static void say(char *text)
{
	if (text && write(STDERR_FILENO, text, strlen(text)) < 0)
		text[0] = '\0';	/* nobody reads: not a reason to end */
	free(text);
}

void ddp_tell_rows(const struct ddp_task *task, const struct ddp_row *rows,
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
	say(ddp_text_finish(&text));
}

void ddp_tell_warning(const struct ddp_task *task)
{
	struct ddp_text text = { 0 };

	ddp_text_add_quoted(&text, "slurm-ddp: %s", task->warning);
	ddp_text_add(&text, "\n");
	say(ddp_text_finish(&text));
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

static const char *const devices[] = {
	[DDP_TELL_OWN] = "--ddp-gpus=own: LOCAL_RANK is not a device number, and "
		"programs that need to see both GPUs have no P2P between them; "
		"use device 0, or --ddp-gpus=all",
	[DDP_TELL_SHARE] = "--ddp-gpus=share: there are more tasks than GPUs, so "
		"LOCAL_RANK is not a device number and NCCL cannot be used; use "
		"device 0, or ask for --gres=gpu:N",
	[DDP_TELL_CUT] = "Slurm has given each task GPUs of its own "
		"(--gpus-per-task, --gpu-bind), so LOCAL_RANK is not a device "
		"number and P2P between GPUs is lost" UNLESS_SHARED "; use "
		"device 0, or ask for --gres=gpu:N instead",
	[DDP_TELL_INSTANCE] = "a process sees one MIG instance, here that of its "
		"rank, so LOCAL_RANK is not a device number, and NCCL does not "
		"run between instances of one GPU; use device 0, and Gloo or "
		"MPI",
	[DDP_TELL_INSTANCES] = "a process sees one MIG instance, so ranks that "
		"a launcher starts all have the first; start one task an "
		"instance instead: srun --ddp python3 PROGRAM",
};

void ddp_tell_device(const struct ddp_task *task, enum ddp_tell_device why)
{
	const struct ddp_rank *rank = &task->vars.rank;
	struct ddp_text text = { 0 };

	if (first_speaks(task))
		return;
	ddp_text_add(&text, "slurm-ddp: ");
	if (rank->node_rank > 0)
		ddp_text_add_quoted(&text, "on %s: ", rank->host);
	ddp_text_add(&text, "%s\n", devices[why]);
	say(ddp_text_finish(&text));
}
