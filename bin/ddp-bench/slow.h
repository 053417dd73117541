/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who meets whom in a tournament of nodes, and which nodes and pairs of nodes
 * turned out to be slow. Pure.
 *
 * A value is an outlier if it is above the median by more than 3.5 robust
 * standard deviations (1.4826 times the median absolute deviation: Iglewicz
 * and Hoaglin) and by more than a fifth, for where all are alike the
 * deviation is next to nothing.
 *
 * A node's time is that of its fastest pair: whatever a slow node does, its
 * partners have others. It is slow if its time is an outlier among the nodes'.
 * A pair is slow if its time, divided by that of the slower of its nodes, is
 * an outlier among the pairs'. So a slow node does not make all its pairs
 * slow, and of three nodes one can be told. The rule fails where half of them
 * are slow, and says nothing of two.
 */
#ifndef DDP_BENCH_SLOW_H
#define DDP_BENCH_SLOW_H

#include <stdbool.h>
#include <stddef.h>

#define SLOW_DEVIATIONS 3.5
#define SLOW_RATIO 1.2

/* times of the pairs (0,1), (0,2), (1,2), (0,3), ... */
static inline size_t pair_index(int a, int b)
{
	size_t low = (size_t)(a < b ? a : b), high = (size_t)(a < b ? b : a);

	return high * (high - 1) / 2 + low;
}

/*
 * The partner of node in a round, from 0 to nodes - 1 (nodes - 2 if they are
 * even), of a tournament in which each meets each once; node itself: it rests.
 */
int pair_partner(int node, int round, int nodes);

/* Of one value or more, which it sorts. */
double median(double *values, size_t count);

struct bounds {
	double median, mad, above;	/* above: the outliers */
};

struct slow {
	double *node_times;	/* [nodes] */
	int *partners;		/* [nodes]: the other one of the fastest pair */
	bool *nodes;		/* [nodes]: is slow */
	bool *pairs;		/* [pair_index] */
	struct bounds node_bounds, pair_bounds;	/* of times; of ratios */
	int node_count;		/* slow ones */
	size_t pair_count;
};

/* For two nodes or more. Returns 0, or -1 if memory is short. */
int slow_find(struct slow *slow, const double *times, int nodes);
void slow_clear(struct slow *slow);

#endif
