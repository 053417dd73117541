/* SPDX-License-Identifier: BSD-3-Clause */
/* The variables by which a user chooses network interfaces. */
#ifndef DDP_LAYOUT_INTERFACE_H
#define DDP_LAYOUT_INTERFACE_H

#include <stdbool.h>

/* GLOO_SOCKET_IFNAME and NCCL_SOCKET_IFNAME; ends with NULL. */
extern const char *const ddp_interface_variables[];

/*
 * Returns true if [name] is not one of [list], the value of [variable], in which
 * commas separate names. For NCCL they are beginnings of names; after "=" they
 * are whole names; after "^" they are what it must not use (NCCL's User Guide,
 * NCCL_SOCKET_IFNAME). Gloo takes whole names.
 */
bool ddp_interface_is_other(const char *variable, const char *list,
			    const char *name);

/*
 * Returns true if this machine has no network interface with an address that
 * [list] allows: a program that obeys [variable] then fails. [list] NULL or
 * empty allows all; so does an error of the kernel's.
 */
bool ddp_interface_lacks(const char *variable, const char *list);

#endif
