/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads from Slurm's text which switch or block each node of a cluster is on, and
 * orders nodes so that a ring through them leaves as few switches as possible.
 *
 * The text is that of topology.conf(5), or of `scontrol show topology`, of the
 * plugins topology/tree and topology/block:
 *
 *   SwitchName=s1 Nodes=n[1-4]
 *   SwitchName=s3 Switches=s[1-2]
 *   BlockName=b1 Nodes=n[1-4]
 *
 * Other words of these lines, other lines and comments are passed over. The base
 * blocks count, and not the larger ones that Slurm makes of them.
 */
#ifndef DDP_LAYOUT_NETWORK_H
#define DDP_LAYOUT_NETWORK_H

#include <stdbool.h>
#include <stdint.h>

#include "layout/hostlist.h"

enum { DDP_NETWORK_LEVELS = 32 };	/* switches above each other */

struct ddp_network;

/*
 * The caller destroys it. NULL on error: a list that cannot be read, a switch that
 * is not there or is below itself, too many levels, or no switch and no block at
 * all. The network never changes: any number of threads may read it at once.
 */
struct ddp_network *ddp_network_create(const char *text,
				       struct ddp_error *error);
void ddp_network_destroy(struct ddp_network *network);	/* NULL: nothing */

/* Returns whether a node is on one of the switches or blocks. */
bool ddp_network_has(const struct ddp_network *network, const char *node);

/*
 * Links between two nodes' switches; 0: they share one. Whatever has no switch
 * above it meets the others one level further up, and a node that is on no switch
 * is such a one by itself.
 */
uint32_t ddp_network_distance(const struct ddp_network *network,
			      const char *node, const char *other);

/*
 * Write the indexes of the hosts to order[], so that a ring through them has the
 * fewest crossings that there can be: those of each switch stand together, at
 * every level, in the order of the text; on one switch they stay as they are. For
 * 10,000 hosts that takes a few milliseconds. Returns 0, or -1 without memory.
 */
int ddp_network_order(const struct ddp_network *network,
		      const struct ddp_hostlist *hosts, uint32_t *order,
		      struct ddp_error *error);

/*
 * How often the ring through hosts in this order (NULL: their own), from the last
 * back to the first, goes up from a switch to the one above.
 */
uint64_t ddp_network_crossings(const struct ddp_network *network,
			       const struct ddp_hostlist *hosts,
			       const uint32_t *order);

/*
 * How many switches or blocks the hosts are on; *cut: of how many of these other
 * nodes are no hosts. Returns -1 without memory.
 */
int64_t ddp_network_used(const struct ddp_network *network,
			 const struct ddp_hostlist *hosts, uint32_t *cut);

#endif
