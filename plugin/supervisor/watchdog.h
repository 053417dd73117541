/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DDP_SUPERVISOR_WATCHDOG_H
#define DDP_SUPERVISOR_WATCHDOG_H

#include <stdbool.h>
#include <stdint.h>

struct ddp_attempt;

/* --ddp-watchdog in one attempt; zeros are the beginning. */
struct ddp_watchdog {
	int64_t ticked_ns;
	int64_t pardons_ns;	/* until then the step is not to blame */
	uint32_t idle_ms;	/* the step's, at the last tick */
	uint32_t pardoned_ms;	/* of that: not the step's fault */
	int64_t asked_ns;	/* for details; 0: not */
	bool told;		/* who has not begun */
};

/*
 * What is due. When the step hangs, its failure is in the step, and the
 * verdict is DDP_VERDICT_HANG.
 */
void ddp_watchdog_tick(struct ddp_attempt *attempt, int64_t now_ns);

#endif
