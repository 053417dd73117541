/* SPDX-License-Identifier: BSD-3-Clause */
/* Listening, and the variables by which a user chooses network interfaces. */
#ifndef DDP_UTIL_NET_H
#define DDP_UTIL_NET_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Listen by TCP at a port (0: any) of all the machine's addresses, of IPv6 and
 * of IPv4 if the kernel has both. reuse: also at a port that a process before
 * has left in TIME_WAIT. Returns the socket, which does not block; -1 with
 * errno.
 */
int ddp_listen_at(uint16_t port, bool reuse);

/*
 * Returns true if [name] is not one of [list], the value of [variable], in which
 * commas separate names. For NCCL they are beginnings of names; after "=" they
 * are whole names; after "^" they are what it must not use (NCCL's User Guide,
 * NCCL_SOCKET_IFNAME). Gloo takes whole names.
 */
bool ddp_interface_is_other(const char *variable, const char *list,
			    const char *name);

/*
 * Returns true if this machine lacks what [list] asks for, so that a program
 * that obeys [variable] fails: NCCL needs one interface, and Gloo each of those
 * that are named. They count if they have an address. [list] NULL or empty asks
 * for nothing; where the kernel does not tell, nothing is lacking.
 */
bool ddp_interface_lacks(const char *variable, const char *list);

/* This says it, with the text that ddp_interface_find_flaw writes. */
#define DDP_INTERFACE_FLAW "there is no network interface for your %s: unset " \
	"that, or name one that all nodes have"

enum { DDP_INTERFACE_FLAW_SIZE = 144 };

/*
 * Write those of GLOO_SOCKET_IFNAME=[gloo] and NCCL_SOCKET_IFNAME=[nccl] that ask
 * for what this machine lacks, "NAME=value and NAME=value"; "": none does. Long
 * values are cut.
 */
void ddp_interface_find_flaw(const char *gloo, const char *nccl,
			     char text[DDP_INTERFACE_FLAW_SIZE]);

#endif
