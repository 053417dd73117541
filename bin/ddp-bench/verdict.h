/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Judges the nodes by the facts of all ranks: which of them is bad, and why.
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

/* A slow rank's fastest exchange takes so many times the median of all, and so
 * much longer: less can come from what else the nodes do. */
#define SLOW_RATIO 4.0
#define SLOW_MORE_S 0.012

#define TRY_LONGER "try a larger --limit, or --ddp-check=SECONDS"

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
/* Returns true if anything is wrong, memory being short included. */
bool verdict_is_bad(const struct verdict *verdict);
bool verdict_has(const struct verdict *verdict, int node);
void verdict_clear(struct verdict *verdict);

/* Returns true if so many ranks have a fault that it is no node's: more than
 * half, on more than three nodes. */
bool verdict_is_common(const struct world *world, int ranks);

/* Arrays have an element for each rank of the world. here: it has come, or is
 * there still; began: all had come before. */
void verdict_absent(struct verdict *verdict, const struct world *world,
		    const bool *here, bool began);
void verdict_facts(struct verdict *verdict, const struct world *world,
		   const struct facts *all);

/* Matches and the all-reduce: what did not end, is slow, or moved wrong data.
 * Round numbers are those of pair_partner. */
void verdict_moved(struct verdict *verdict, const struct world *world,
		   const struct moved *all);
/*
 * Returns how many ranks have moved as little as the one that has moved least.
 */
int verdict_count_last(const struct world *world, const struct moved *all);

/*
 * Returns the time above which a rank's fastest exchange is slow. seconds are
 * those of all ranks, at least one, 0 where a rank had none; they get sorted.
 * *median_s becomes the median of those that are not 0. If these are fewer than
 * three, none is slow, and *median_s is the median of all.
 */
double verdict_find_slow(double *seconds, size_t count, double *median_s);

/* The text that most ranks have in this field, of those that have one; NULL:
 * none has. */
const char *verdict_version(const struct world *world, const struct facts *all,
			    enum version what);

#endif
