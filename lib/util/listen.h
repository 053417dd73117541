/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DDP_UTIL_LISTEN_H
#define DDP_UTIL_LISTEN_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Listen by TCP at a port (0: any) of all the machine's addresses, of IPv6 and of
 * IPv4 if the kernel has both. reuse: also at a port that a process before has left
 * in TIME_WAIT. Returns the socket, which does not block; -1 with errno.
 */
int ddp_listen_at(uint16_t port, bool reuse);

#endif
