/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Says who meets whom in a tournament of nodes, and finds which nodes and pairs
 * of nodes were slow. Pure.
 *
 * A value is an outlier if it is above the median by more than 3.5 robust
 * standard deviations (1.4826 times the median absolute deviation: Iglewicz and
 * Hoaglin) and by more than a fifth. The fifth is there because the deviation
 * is almost 0 where all values are alike.
 *
 * A node's time is that of its fastest pair, so that a slow node does not make
 * its partners slow. A node is slow if its time is an outlier among the nodes'
 * times. A pair is slow if its time, divided by the time of the slower of its
 * nodes, is an outlier among the pairs. So one slow node of three is found. The
 * rule fails where half of the nodes are slow, and two nodes are too few.
 */
#ifndef DDP_BENCH_OUTLIERS_H
#define DDP_BENCH_OUTLIERS_H

#include <stdbool.h>
#include <stddef.h>

#define OUTLIER_DEVIATIONS 3.5
#define OUTLIER_RATIO 1.2

/* times of the pairs (0,1), (0,2), (1,2), (0,3), ... */
static inline size_t pair_index(int a, int b)
{
	size_t low = (size_t)(a < b ? a : b), high = (size_t)(a < b ? b : a);

	return high * (high - 1) / 2 + low;
}

/*
 * The partner of node in a round of a tournament in which each node meets each
 * other once; node itself if it rests. There are nodes rounds, counted from 0,
 * or nodes - 1 if nodes is even.
 */
int pair_partner(int node, int round, int nodes);

/* The median of count values, at least 1, which it sorts. */
double median(double *values, size_t count);

struct bounds {
	double median, mad, above;	/* above: the outliers */
};

struct outliers {
	double *node_times;	/* [nodes] */
	int *partners;		/* [nodes]: the other one of the fastest pair */
	bool *nodes;		/* [nodes]: is slow */
	bool *pairs;		/* [pair_index] */
	struct bounds node_bounds, pair_bounds;	/* of times; of ratios */
	int node_count;		/* of slow nodes */
	size_t pair_count;
};

/* Find slow nodes and pairs of two nodes or more. Returns 0, or -1 if memory is
 * short. */
int outliers_find(struct outliers *slow, const double *times, int nodes);
void outliers_clear(struct outliers *slow);

#endif
