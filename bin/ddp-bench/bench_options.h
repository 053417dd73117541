/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of ddp-bench. */
#ifndef DDP_BENCH_BENCH_OPTIONS_H
#define DDP_BENCH_BENCH_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "backend.h"
#include "tool/option.h"

/* The choices of the ranks' mean time to show, as nccl-tests counts them. */
enum average { AVERAGE_RANK0, AVERAGE_MEAN, AVERAGE_MIN, AVERAGE_MAX };

/* The settings of the command line, with defaults for the rest. */
struct options {
	bool pairs, bootstrap, preflight;	/* what to do; none: measure a
						   collective */
	unsigned backend_index;
	const struct backend *backend;	/* never NULL */
	bool backend_given;
	enum collective collective;
	enum type type;
	enum redop redop;
	enum average average;
	uint64_t min_bytes, max_bytes, step_bytes, step_factor;
	uint64_t iters, warmup_iters, check, root;
	uint64_t limit;			/* seconds; 0: the default */
	uint64_t ngpus, nthreads;	/* of a rank, as nccl-tests has them */
	bool share_gpu, json;
	enum tool_help help;
	bool version;
};

/*
 * Returns 0, or -1 with error naming the option, its value and what fits. The
 * options are then the defaults, but with the backend that the options name,
 * for the ranks to meet.
 */
int options_parse(struct options *options, int argc, char **argv,
		  struct ddp_error *error);

extern const struct tool_options bench_options;

#endif
