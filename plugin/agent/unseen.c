/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Launchers that srun did not see, such as one that a script has in a variable.
 * Where srun starts one task a GPU, each task then starts all ranks of its node,
 * and several worlds form on the same GPUs. The agent of rank 0's node looks at
 * what the tasks run, and one line names the option that helps. It is no more
 * than advice, as the program may know what it does.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/state.h"
#include "layout/launcher.h"
#include "plugin.h"

/* It looks after 1, 5, 21 and 85 s, as scripts may prepare something first. */
enum { FIRST_MS = 1000, TIMES = 4, GROWTH = 4, WORDS_MAX = 256 };

void ddp_unseen_begin(struct ddp_agent *agent, const struct ddp_task *task)
{
	const char *filled = ddp_task_getenv(task, DDP_TELL_HIDDEN);

	if (task->rank != 0 || task->launcher || agent->count == 1 ||
	    !filled || !strstr(filled, "SLURM_NTASKS_PER_NODE"))
		return;
	agent->unseen = (struct ddp_unseen){
		.left = TIMES, .wait_ms = FIRST_MS,
		.next_ms = ddp_clock_ms() + FIRST_MS,
	};
}

int64_t ddp_unseen_deadline(const struct ddp_agent *agent)
{
	return agent->unseen.left > 0 && agent->left > 0 ?
		agent->unseen.next_ms : DDP_CLOCK_NEVER;
}

/* Returns true if a process is a launcher that makes a world of several nodes. */
static bool is_launcher(pid_t pid, struct ddp_launcher *launcher)
{
	char *words[WORDS_MAX + 1], *text = ddp_file_read_of(pid, "cmdline");
	size_t count = 0;
	char *at;

	for (at = text; at && *at && count < WORDS_MAX; at += strlen(at) + 1)
		words[count++] = at;
	words[count] = NULL;
	*launcher = (struct ddp_launcher){ .kind = DDP_LAUNCHER_NONE };
	if (count > 0)
		ddp_launcher_find(words, NULL, launcher);
	free(text);
	return launcher->nodes_max > 1;
}

static void tell(struct ddp_agent *agent, const struct ddp_launcher *launcher)
{
	struct ddp_wire warning = { .kind = DDP_WIRE_WARNING };

	snprintf(warning.message, sizeof(warning.message), "%.64s runs %.32s for "
		 "%u nodes in each of its tasks, which are one a GPU: several "
		 "worlds share the GPUs; use --ddp=torchrun, or name the number "
		 "of tasks", agent->host, launcher->name, launcher->nodes_max);
	if (agent->talk.state == DDP_TALK_OFF)
		dprintf(DDP_AGENT_SPEAK, "slurm-ddp: %s\n", warning.message);
	else
		ddp_talk_send(agent, &warning);
	agent->unseen.left = 0;
}

void ddp_unseen_serve(struct ddp_agent *agent)
{
	struct ddp_unseen *unseen = &agent->unseen;
	struct ddp_processes list = { 0 };
	struct ddp_launcher launcher;
	size_t i;

	if (ddp_clock_ms() < ddp_unseen_deadline(agent))
		return;
	if (agent->talk.state == DDP_TALK_DIALING) {
		unseen->next_ms += FIRST_MS;
		return;
	}
	unseen->left--;
	unseen->wait_ms *= GROWTH;
	unseen->next_ms += unseen->wait_ms;
	ddp_step_find(agent, &list);
	for (i = 0; i < list.count; i++)
		if (list.data[i].pid != getpid() &&
		    is_launcher(list.data[i].pid, &launcher)) {
			tell(agent, &launcher);
			break;
		}
	free(list.data);
}
