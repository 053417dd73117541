/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the facts of all ranks say of the nodes: which of them is bad, and why.
 * Pure. What differs from rank to rank is judged by what most ranks have; where
 * no value is the most common, by what the lowest rank has, and the sentence
 * says so.
 */
#ifndef DDP_BENCH_VERDICT_H
#define DDP_BENCH_VERDICT_H

#include <stddef.h>

#include "bench_world.h"
#include "facts.h"

/* How far clocks may be apart. */
#define CLOCK_APART_S 1.0

/* A slow node takes so many times the median of all, and so much longer: less
 * can come from what else the nodes do. */
#define SLOW_RATIO 2.0
#define SLOW_MORE_S 0.0005

/* One thing that is wrong. A node has one of each check at most. */
struct finding {
	int node;			/* of struct member; -1: of no node */
	const char *check;		/* a word, for programs */
	char text[320];			/* the cause, then the fix */
};

struct verdict {
	struct finding *list;
	size_t count;
	bool failed;			/* memory was short */
};

__attribute__((format(printf, 4, 5)))
void verdict_add(struct verdict *verdict, int node, const char *check,
		 const char *format, ...);
bool verdict_has(const struct verdict *verdict, int node);
void verdict_clear(struct verdict *verdict);

/* Whether so many ranks have a fault that it is no node's: more than half, on
 * more than three nodes. */
bool verdict_is_common(const struct world *world, int ranks);

/* Arrays have an element for each rank of the world. */
void verdict_absent(struct verdict *verdict, const struct world *world,
		    const bool *here, bool came_before);
void verdict_facts(struct verdict *verdict, const struct world *world,
		   const struct facts *all);
void verdict_probes(struct verdict *verdict, const struct world *world,
		    const struct probe *all);

/* Matches that have not ended or moved wrong data; round numbers are those of
 * pair_partner. */
void verdict_matches(struct verdict *verdict, const struct world *world,
		     const struct moved *all);
void verdict_sums(struct verdict *verdict, const struct world *world,
		  const struct moved *all);

/*
 * The time of each node's fastest match, 0 where it has played none, into
 * times[node_count]; and the slow nodes among them. Returns how many are slow,
 * or -1 if memory is short. In fewer than three nodes none is.
 */
void verdict_times(const struct world *world, const struct moved *all,
		   double *times);
int verdict_find_slow(const double *times, int nodes, bool *slow,
		      double *median);

/* The text that most ranks have in this field, of those that have one; NULL:
 * none has. */
const char *verdict_version(const struct world *world, const struct facts *all,
			    enum version what);

#endif
