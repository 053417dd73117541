/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finds out what a task must know of the network before its program runs. That
 * is the address that the master's name has, the interface that leads there,
 * and if the master's port is free.
 */
#ifndef DDP_STEPD_NET_H
#define DDP_STEPD_NET_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "util/error.h"

struct ddp_address {
	struct sockaddr_storage storage;
	socklen_t length;
};

/*
 * Resolve a name to the first of its addresses that other nodes can reach.
 * Returns 0; 1 with the reason if it has none, but this node can reach one,
 * such as loopback; -1 with the reason if nobody can reach any, or if the name
 * does not resolve.
 */
int ddp_net_resolve(const char *name, struct ddp_address *address,
		    struct ddp_error *error);

/*
 * Find the interface through which this node reaches an address (which may be
 * its own). Returns false if there is none, as where no route leads there.
 */
bool ddp_net_interface(const struct ddp_address *to, char name[IF_NAMESIZE]);

/* Returns true if an address is one of this node's own. */
bool ddp_net_is_local(const struct ddp_address *address);

/*
 * Returns 0 if this process could listen on the TCP port, on all addresses;
 * -1 if another process holds it, or if the user may not.
 */
int ddp_net_port_free(uint16_t port, struct ddp_error *error);

#endif
