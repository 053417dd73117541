/* SPDX-License-Identifier: BSD-3-Clause */
/* One rank's part in a match of two nodes: it exchanges with one other rank. */
#ifndef DDP_BENCH_PLAYER_H
#define DDP_BENCH_PLAYER_H

#include "bench.h"

struct player {
	struct bench bench;
	double *calls;		/* [iters] */
	double limit_s;		/* above 0: the timed calls of one match shall
				 * not take much longer together */
	int peer;		/* of this rank in the match; -1: none */
};

/* What one rank found in one match. */
struct result {
	double seconds;		/* median of the calls; 0: took no part */
	uint64_t wrong;
};

/* Play against a node; the rank's own node: rest. */
void player_play(struct player *player, int node, struct result *result);

#endif
