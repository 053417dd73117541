/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * --ddp-signal: tells the supervisor when to send the signal. It asks
 * slurmctld for the job's end through scontrol, and never waits for the answer.
 */
#ifndef DDP_SUPERVISOR_TIMER_H
#define DDP_SUPERVISOR_TIMER_H

#include <stdint.h>

/* The job is known: begin to ask. Does nothing without --ddp-signal. */
void ddp_timer_begin(uint32_t job_id);

/* What poll(2) should wait for: input of this, -1 for none; and a timeout. */
int ddp_timer_fd(void);
int ddp_timer_timeout_ms(void);

/*
 * Read and ask what is to be read and asked. Returns the signal that the ranks
 * should get now, once; 0: none yet.
 */
int ddp_timer_run(void);

#endif
