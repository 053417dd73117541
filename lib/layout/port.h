/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The TCP port on which rank 0 listens for the others.
 */
#ifndef DDP_LAYOUT_PORT_H
#define DDP_LAYOUT_PORT_H

#include <stdint.h>

#include "layout/error.h"

/*
 * The range in which ports are derived, unless the cluster sets another. It
 * ends below Linux's ephemeral ports (from 32768), Kubernetes' node ports (from
 * 30000) and the fixed ports of torchrun and of hand-written scripts (29400,
 * 29500), and begins above Slurm's own (6817 to 6819), the usual MpiParams
 * (12000 and up) and NFS (20048, 20049).
 */
enum {
	DDP_PORT_FIRST = 21000,
	DDP_PORT_LAST = 28999,
	DDP_PORT_RANGE_MIN = 64		/* ports in a range, at least */
};

/*
 * Read "first-last", both from 1024 to 65535 and at least DDP_PORT_RANGE_MIN
 * ports. Returns 0, or -1 with *first and *last unchanged.
 */
int ddp_port_range_parse(const char *text, uint16_t *first, uint16_t *last,
			 struct ddp_error *error);

/*
 * A port from first to last for a step of a job; first <= last. Two steps of
 * one job differ unless their ids differ by a multiple of the range. Steps
 * 0..s of jobs whose ids are at most 15 apart differ as long as s + 1 is at
 * most a thirtieth of the range (Fibonacci hashing: 266 steps by default).
 */
uint16_t ddp_port_derive(uint32_t job_id, uint32_t step_id, uint16_t first,
			 uint16_t last);

/*
 * The first port in the text of SLURM_STEP_RESV_PORTS, such as "12000-12003"
 * or "12000,12005-12007". Returns 0, or -1 with *port unchanged.
 */
int ddp_port_reserved(const char *text, uint16_t *port,
		      struct ddp_error *error);

#endif
