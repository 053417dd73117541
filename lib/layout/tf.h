/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TF_CONFIG, by which TensorFlow's MultiWorkerMirroredStrategy finds the ranks:
 * one worker a rank, in their order, each with an address of its own.
 */
#ifndef DDP_LAYOUT_TF_H
#define DDP_LAYOUT_TF_H

#include <stdint.h>

#include "layout/layout.h"
#include "util/error.h"

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
