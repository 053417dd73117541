/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * --ddp-signal: when the ranks get it. The job's end is asked of slurmctld
 * through squeue, for whose answer nothing here ever waits.
 */
#ifndef DDP_SUPERVISOR_TIMER_H
#define DDP_SUPERVISOR_TIMER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "options/notice.h"
#include "util/text.h"

struct ddp_timer {
	struct ddp_notice notice;
	struct ddp_notice_plan plan;
	char job[32];			/* as squeue knows it */
	int out;			/* its answer; -1: not asked */
	char answer[4096];		/* its first part, which has the end */
	size_t length;
	bool complained;
	bool runs;			/* it has begun, and is not over */
};

/* The step runs: begin to ask, if there is a notice to give. */
void ddp_timer_begin(struct ddp_timer *timer, const struct ddp_notice *notice,
		     uint32_t job_id);
void ddp_timer_end(struct ddp_timer *timer);

/* What poll(2) should wait for: input of this, -1 for none; and a timeout. */
int ddp_timer_fd(const struct ddp_timer *timer);
int ddp_timer_timeout_ms(const struct ddp_timer *timer);

/*
 * Ask and read what is due. Returns the signal if the ranks should get it now,
 * once; 0: not now. What the user should know is added to said.
 */
int ddp_timer_run(struct ddp_timer *timer, struct ddp_text *said);

#endif
