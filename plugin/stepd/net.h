/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a task must know of the network before its program runs: that the
 * master can be reached by its name, by which interface, and that the
 * master's port is free. As the user, on the node.
 */
#ifndef DDP_STEPD_NET_H
#define DDP_STEPD_NET_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "layout/error.h"

struct ddp_address {
	struct sockaddr_storage storage;
	socklen_t length;
};

/*
 * Resolve a name to the first of its addresses that other nodes can reach.
 * Returns 0; 1 with the reason if it has none but this node can reach one,
 * such as loopback; -1 with the reason if no node can, which is also where the
 * name does not resolve.
 */
int ddp_net_resolve(const char *name, struct ddp_address *address,
		    struct ddp_error *error);

/*
 * The interface that has the address from which this node speaks to another
 * (or to itself). False if there is none, such as where no route leads there.
 */
bool ddp_net_interface(const struct ddp_address *to, char name[IF_NAMESIZE]);

/* Whether an address is one of this node's own. */
bool ddp_net_is_local(const struct ddp_address *address);

/*
 * Returns 0 if this process could listen on the TCP port, on all addresses;
 * -1 if another process holds it, or if the user may not.
 */
int ddp_net_port_free(uint16_t port, struct ddp_error *error);

#endif
