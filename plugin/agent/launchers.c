/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Launchers that srun did not see, such as one that a script has in a variable.
 * Where a node has several tasks, each then starts all ranks of its node, and
 * several worlds form on the same GPUs. The agent of rank 0's node looks at what
 * the tasks run: if two of them run a launcher for fewer nodes than the step has
 * tasks, one line names the option that helps. It is no more than advice, as the
 * user may know better.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/state.h"
#include "options/plugin.h"
#include "request/launcher.h"
#include "util/file.h"

/* It looks after 1, 5, 21 and 85 s, as scripts may prepare something first. */
enum { FIRST_MS = 1000, TIMES = 4, GROWTH = 4, WORDS_MAX = 256 };

void ddp_unseen_begin(struct ddp_agent *agent,
		      const struct ddp_agent_step *step)
{
	if (step->rank != 0 || step->launcher || agent->count == 1 ||
	    ddp_plugin.srun)
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

/* Returns true if a process is a launcher for several nodes, fewer than tasks. */
static bool is_launcher(pid_t pid, uint32_t tasks,
			struct ddp_launcher *launcher)
{
	char *words[WORDS_MAX + 1], *text = ddp_file_read_of(pid, "cmdline");
	size_t count = 0;
	char *at;

	for (at = text; at && *at && count < WORDS_MAX; at += strlen(at) + 1)
		words[count++] = at;
	words[count] = NULL;
	ddp_launcher_find(words, NULL, launcher);
	free(text);
	return launcher->nodes_max > 1 && launcher->nodes_max < tasks;
}

static void tell(struct ddp_agent *agent, const struct ddp_launcher *launcher)
{
	struct ddp_wire warning = { .kind = DDP_WIRE_WARNING };

	snprintf(warning.message, sizeof(warning.message), "tasks on %.64s each "
		 "run %.32s for %u nodes, and the step has %u tasks: several "
		 "worlds form on the same GPUs; use --ddp=torchrun, or "
		 "--ddp=srun if that is meant", agent->host, launcher->name,
		 launcher->nodes_max, agent->world_size);
	/* This is /dev/null where a supervisor prints it. */
	dprintf(DDP_AGENT_SPEAK, "slurm-ddp: %s\n", warning.message);
	ddp_talk_send(agent, &warning);
	agent->unseen.left = 0;
}

static void look(struct ddp_agent *agent)
{
	struct ddp_processes list = { 0 };
	struct ddp_launcher launcher;
	uint32_t first = DDP_WIRE_NO_RANK;
	size_t i;

	ddp_step_find(agent, &list);
	for (i = 0; i < list.count; i++) {
		uint32_t rank = list.data[i].rank;

		if (rank == first || rank == DDP_WIRE_NO_RANK ||
		    !is_launcher(list.data[i].pid, agent->world_size,
				 &launcher))
			continue;
		if (first != DDP_WIRE_NO_RANK) {
			tell(agent, &launcher);
			break;
		}
		first = rank;
	}
	free(list.data);
}

void ddp_unseen_serve(struct ddp_agent *agent)
{
	struct ddp_unseen *unseen = &agent->unseen;

	if (ddp_clock_ms() < ddp_unseen_deadline(agent))
		return;
	if (agent->talk.state == DDP_TALK_DIALING) {
		unseen->next_ms += FIRST_MS;
		return;
	}
	unseen->left--;
	unseen->wait_ms *= GROWTH;
	unseen->next_ms += unseen->wait_ms;
	look(agent);
}
