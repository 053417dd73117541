/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * --ddp-watchdog: progress.c looks every second whether the tasks make
 * progress, and tells the supervisor; ras.c asks NCCL when they seem not to;
 * stacks.c says what each of them does when the supervisor asks. Nothing
 * happens here without that option.
 */
#ifndef DDP_AGENT_PROGRESS_H
#define DDP_AGENT_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "proc/kernel.h"
#include "proc/ras.h"

struct ddp_agent;
struct ddp_processes;
struct ddp_agent_step;
struct ddp_wire;

/* What a task has done by now. */
struct ddp_rank_progress {
	uint64_t beats, printed, cpu, stored;
	struct ddp_kernel_threads threads;	/* none: not looked at */
	uint32_t idle_ms;	/* since the last progress */
	bool works;		/* it uses a CPU; whether for progress or not */
	bool polls;		/* it waits by using a CPU */
};

/* ras.c; zeros but for the port are the beginning. */
struct ddp_ras_talk {
	uint16_t port;		/* 0: RAS is not asked */
	bool six;		/* by IPv6 */
	int fd;			/* 0: no question is under way */
	bool asked;
	int64_t next_ms;	/* not before */
	int64_t until_ms;	/* it has time */
	char *answer;
	size_t length, size;
	struct ddp_ras last;	/* what it said when it last answered */
	bool valid;		/* it has answered the last question */
};

struct ddp_progress {
	struct ddp_rank_progress *ranks;	/* by task; NULL: not begun */
	int64_t sampled_ms, next_ms;

	/* stacks.c */
	struct ddp_wire *details;	/* by task, shared with helper; NULL */
	pid_t helper;			/* 0: none */
	int64_t until_ms;		/* it has time */

	struct ddp_ras_talk ras;
};

/* When something is due, and what is due. */
int64_t ddp_progress_deadline(const struct ddp_agent *agent);
void ddp_progress_serve(struct ddp_agent *agent);

/* The supervisor asks for details. */
void ddp_explain_begin(struct ddp_agent *agent);

/* For progress.c: send them if they are complete, or it is time. */
void ddp_explain_serve(struct ddp_agent *agent);

/* Where RAS of this task's NCCL listens; 0: not known. */
uint16_t ddp_ras_find_port(const struct ddp_agent_step *step);

/*
 * No task has made progress for so long: ask RAS if it is time. Answers are
 * read by ddp_ras_serve, and can set the tasks' idle_ms to 0.
 */
void ddp_ras_begin(struct ddp_agent *agent, uint32_t idle_ms);
void ddp_ras_serve(struct ddp_agent *agent);

/* How far a task is behind, as ddp_ras_rank has it; 0: as far as is known. */
uint32_t ddp_ras_find_behind(const struct ddp_agent *agent, uint32_t task,
			     const struct ddp_processes *all);

#endif
