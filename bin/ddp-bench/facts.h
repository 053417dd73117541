/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the ranks of a preflight tell each other, in three exchanges: what each
 * has, what it met, and what it moved. Plain data. A text is "" where there is
 * nothing to say.
 */
#ifndef DDP_BENCH_FACTS_H
#define DDP_BENCH_FACTS_H

#include <stdbool.h>
#include <stdint.h>

enum { FACT_TEXT = 160, FACT_VERSION = 48 };

/* What must be the same on all nodes. */
enum version { DRIVER, CUDA, NCCL, LIBDDP, MPI, VERSIONS };

struct facts {
	char versions[VERSIONS][FACT_VERSION];
	uint32_t gpus_given;		/* by the step, to this rank's view */
	uint32_t gpus_seen;		/* by CUDA */
	char gpu_error[FACT_TEXT];	/* CUDA's or NCCL's; "": both answer */
	uint64_t nonce;			/* rank 0's, at the master's port */
	char port_error[FACT_TEXT];	/* why rank 0 cannot listen there */
};

/* A PCIe link; 0: not known. */
struct link {
	uint32_t speed;			/* in 0.1 GT/s of a lane */
	uint32_t width;			/* lanes */
};

struct probe {
	char master_error[FACT_TEXT];	/* it cannot be resolved or reached */
	double clock_s;			/* rank 0's clock minus this rank's */
	double clock_error_s;		/* at most so far off; below 0: the
					 * clock was not measured */
	char gpu_error[FACT_TEXT];	/* it does not do what it is asked */
	char bus_id[32];
	struct link link, most;		/* while it works; what it could */
};

enum { ROUNDS = 3 };

struct moved {
	uint32_t matches;		/* that have ended */
	bool ended;			/* all that there was to do */
	double seconds[ROUNDS];		/* of a match; 0: took no part */
	uint64_t wrong;			/* elements, of matches */
	uint64_t wrong_sum;		/* elements, of the all-reduce */
	char error[FACT_TEXT];		/* it could not begin */
};

#endif
