/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DDP_SUPERVISOR_LISTEN_H
#define DDP_SUPERVISOR_LISTEN_H

#include <stdint.h>

#include "util/error.h"

/*
 * Listen on all addresses, at a port from first to last (0: any). Returns the
 * socket, which does not block; -1.
 */
int ddp_listen(uint16_t first, uint16_t last, uint16_t *port,
	       struct ddp_error *error);

#endif
