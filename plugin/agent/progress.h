/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * --ddp-watchdog: progress.c looks every second whether the tasks make
 * progress, and tells the supervisor; explain.c says what each of them does
 * when the supervisor asks. Nothing happens here without that option.
 */
#ifndef DDP_AGENT_PROGRESS_H
#define DDP_AGENT_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "watch/kernel.h"

struct ddp_agent;
struct ddp_wire;

/* What a task has done by now. */
struct ddp_rank_progress {
	uint64_t beats, printed, cpu, stored;
	struct ddp_kernel_share share;	/* 0: not looked at */
	uint32_t idle_ms;	/* since the last progress */
	bool works;		/* it uses a CPU; whether for progress or not */
	bool polls;		/* it waits by using a CPU */
};

struct ddp_progress {
	struct ddp_rank_progress *ranks;	/* by task; NULL: not begun */
	int64_t sampled_ms, next_ms;

	/* explain.c */
	struct ddp_wire *details;	/* by task, shared with helper; NULL */
	pid_t helper;			/* 0: none */
	int64_t until_ms;		/* it has time */
};

/* When something is due, and what is due. */
int64_t ddp_progress_deadline(const struct ddp_agent *agent);
void ddp_progress_serve(struct ddp_agent *agent);

/* The supervisor asks for details. */
void ddp_explain_begin(struct ddp_agent *agent);

/* For progress.c: send them if they are complete, or it is time. */
void ddp_explain_serve(struct ddp_agent *agent);

#endif
