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
#include <stdint.h>

#include "bench.h"

/*
 * ---- the facts that ranks tell rank 0, as they go over the connection
 *
 * Plain data. A text is "" where there is nothing to say.
 */

enum { FACT_TEXT = 160, FACT_VERSION = 48, FACT_HOST = 64 };

/* Versions that must be the same on all nodes. */
enum version { DRIVER, CUDA, NCCL, LIBDDP, MPI, VERSIONS };

/* A PCIe link; 0: not known. */
struct link {
	uint32_t speed;			/* in 0.1 GT/s of a lane */
	uint32_t width;			/* lanes */
};

/* A rank's versions, GPUs, clock and interface. */
struct facts {
	char versions[VERSIONS][FACT_VERSION];
	uint32_t gpus_given;		/* by the step, to this rank's view, of
					 * those that CUDA can use */
	uint32_t gpus_untried;		/* of AMD's */
	uint32_t gpus_seen;		/* by CUDA */
	char gpu_error[FACT_TEXT];	/* a GPU, CUDA or NCCL does not work;
					 * or none of this could be told */
	char bus_id[32];
	struct link link, most;		/* while it works; what it could */
	double clock_s;			/* rank 0's clock minus this rank's */
	double clock_error_s;		/* at most so far off */
	char interface[FACT_TEXT];	/* "NAME=value" by which it is to use
					 * an interface that is not there */
};

enum { ROUNDS = 3 };

/* The stages of a rank's work, in this order. */
enum stage { STAGE_BEGIN, STAGE_MEET, STAGE_MATCH, STAGE_SUM, STAGE_DONE };

/* A rank's stage, and its results so far. */
struct moved {
	uint32_t stage;
	uint32_t matches;		/* that have ended */
	double seconds;			/* its fastest exchange; 0: none */
	double common;			/* the median of those of all ranks */
	uint64_t wrong;			/* elements, of matches */
	uint64_t wrong_sum;		/* elements, of the all-reduce */
	bool slow;			/* in each of several attempts */
	char error[FACT_TEXT];		/* it could not go on */
};

/* ---- the verdict */

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
