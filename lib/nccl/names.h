/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks as a sentence names them: a few with their hosts, others by count. */
#ifndef DDP_NCCL_NAMES_H
#define DDP_NCCL_NAMES_H

#include <stdint.h>

enum { DDP_NAMES_MAX = 3 };

/* The hosts and nodes of the ranks. */
struct ddp_places {
	const void *of;
	const char *(*host)(const void *of, uint32_t rank);
	uint32_t (*node)(const void *of, uint32_t rank);
};

struct ddp_names {
	uint32_t count;
	uint32_t ranks[DDP_NAMES_MAX];	/* the first of them */
	char text[768];			/* of ddp_names_format */
};

void ddp_names_add(struct ddp_names *names, uint32_t rank);

/*
 * "rank 1 on n1, rank 3 on n2 and 5 other ranks"; or, if it is all ranks of
 * several, "all 4 ranks". Borrowed from names.
 */
const char *ddp_names_format(struct ddp_names *names, uint32_t all,
			     const struct ddp_places *places);

/* The name of a rank's host, never NULL. */
const char *ddp_names_get_host(const struct ddp_places *places, uint32_t rank);

#endif
