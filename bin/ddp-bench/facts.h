/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The facts that the ranks of a preflight tell rank 0, as they go over the
 * connection. Plain data. A text is "" where there is nothing to say.
 */
#ifndef DDP_BENCH_FACTS_H
#define DDP_BENCH_FACTS_H

#include <stdbool.h>
#include <stdint.h>

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
	uint32_t gpus_given;		/* by the step, to this rank's view */
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

#endif
