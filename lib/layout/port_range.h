/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The TCP ports of a step: that on which rank 0 listens for the others, and
 * more beside it; and TF_CONFIG, which names one for each rank.
 */
#ifndef DDP_LAYOUT_PORT_RANGE_H
#define DDP_LAYOUT_PORT_RANGE_H

#include <stdint.h>

#include "layout/layout.h"
#include "util/error.h"

/*
 * The range in which ports are derived, unless the cluster sets another. It
 * ends below Linux's ephemeral ports (from 32768), Kubernetes' node ports (from
 * 30000) and the fixed ports of torchrun and of hand-written scripts (29400,
 * 29500). It begins above Slurm's own (6817 to 6819), the usual MpiParams
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
 * A step has several ports, numbered from 0: 0 is MASTER_PORT, and 1 a second
 * one for what listens beside it.
 *
 * This is the port of a number from first to last for a step of a job; first <=
 * last. The ports of a step are spread evenly over the range, and differ as
 * long as their numbers are less than half the range. Ports 0 and 1 of two
 * steps of one job differ unless the steps' ids differ by a multiple of half
 * the range. Those of steps 0..s of jobs whose ids are at most 15 apart differ
 * as long as s + 1 is at most a 36th of the range (Fibonacci hashing: 222 steps
 * by default), and port 0 alone as long as it is at most a thirtieth (266).
 */
uint16_t ddp_port_derive(uint32_t job_id, uint32_t step_id, uint32_t number,
			 uint16_t first, uint16_t last);

/*
 * The port of a number in the text of SLURM_STEP_RESV_PORTS, such as
 * "12000-12003" or "12000,12005-12007". Returns 0; 1 if there are not so many;
 * -1 if the text is malformed, or has none. *port is set with 0 only.
 */
int ddp_port_reserved(const char *text, uint32_t number, uint16_t *port,
		      struct ddp_error *error);

/*
 * TF_CONFIG, by which TensorFlow's MultiWorkerMirroredStrategy finds the ranks:
 * one worker a rank, in their order, each with an address of its own.
 */

/* Its bytes, with the NUL: execve takes 128 KiB, of DDP_SET with it too. */
enum { DDP_TF_SIZE = 96 << 10 };

/*
 * The port of a rank. number counts the ranks on one machine, from 0. Returns
 * 0, or -1.
 */
typedef int ddp_tf_port(void *context, uint32_t number, uint16_t *port,
			struct ddp_error *error);

/*
 * The value for a rank, without blanks, for the caller to free. NULL if it has
 * more than DDP_TF_SIZE bytes, if a port fails, or if memory is short.
 */
char *ddp_tf_config(const struct ddp_layout *layout, uint32_t rank,
		    ddp_tf_port *port, void *context, struct ddp_error *error);

#endif
