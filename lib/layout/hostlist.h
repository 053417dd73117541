/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Host names from a Slurm node list.
 *
 * Every form that Slurm writes is read, and expanded in the order in which
 * `scontrol show hostnames` prints it:
 *
 *   n1			one name
 *   n1,n2,gpu		a comma list
 *   n[1-3,7]		ranges and numbers: n1 n2 n3 n7
 *   n[09-11]		zero padding, kept: n09 n10 n11
 *   node[1-2]-int	text after the bracket: node1-int node2-int
 *   r[1-2]n[3-4]	several brackets, the last turns fastest:
 *			r1n3 r1n4 r2n3 r2n4; after it, as Slurm has it,
 *			the first, the second and so on:
 *   a[1-2]b[3-4]c[5-6]	a1b3c5 a1b3c6 a2b3c5 a2b3c6 a1b4c5 ...
 *   [1-3]		nothing but a bracket: 1 2 3
 *
 * Duplicates are kept. Anything else is an error that quotes the text and tells
 * the position, in bytes from 1, and what was expected there.
 */
#ifndef DDP_LAYOUT_HOSTLIST_H
#define DDP_LAYOUT_HOSTLIST_H

#include <stddef.h>

#include "util/error.h"

enum {
	DDP_HOSTLIST_MAX = 1048576,	/* hosts in one list */
	DDP_HOSTNAME_MAX = 255		/* bytes in one name, without NUL */
};

struct ddp_hostlist;

/*
 * Expand text, which must name at least one host. Time and memory are
 * proportional to the hosts, whatever numbers the text holds. The caller
 * destroys the list. NULL on error, a NULL or empty text included. The list
 * never changes: any number of threads may read it at once.
 */
struct ddp_hostlist *ddp_hostlist_create(const char *text,
					 struct ddp_error *error);
void ddp_hostlist_destroy(struct ddp_hostlist *hosts);	/* NULL: nothing */

size_t ddp_hostlist_count(const struct ddp_hostlist *hosts);

/* The name at index, from 0; borrowed from the list; NULL out of range. */
const char *ddp_hostlist_get(const struct ddp_hostlist *hosts, size_t index);

#endif
