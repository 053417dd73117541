/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ranks of a run and what they exchange: a table of functions, so that
 * the trainer is written once. One thread calls it.
 *
 * "Collective" below: every rank calls it, in the same order and with the same
 * arguments. If the process of a rank ends early, the launcher ends the others.
 * If one does not come, all ranks end once another has waited for it as long as
 * `timeout` says.
 *
 * To read ddp-train: this file, device.h and model.h are its interfaces; main.c
 * and run/ are the run; step/ is a step.
 */
#ifndef DDP_TRAIN_COLLECTIVE_H
#define DDP_TRAIN_COLLECTIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device.h"

struct ddp_error;
struct collective;

enum { COLLECTIVE_ABI = 6 };

/* Bytes of staging memory that a collective has for each rank. */
enum { COLLECTIVE_RECORD = 1024 };

/*
 * Over values offset .. offset + count - 1 of a type, counted from the begin of
 * the buffer that alloc() gave. Sums are formed in fp32 and rounded once; of
 * 16-bit values that several nodes have, first within a node. NCCL rounds
 * sums of 16-bit values when and as often as it likes.
 * Rank r of n owns the slice of these that collective_find_slice() names.
 */
enum collective_op {
	ALL_REDUCE,		/* every rank has the sum */
	REDUCE_SCATTER,		/* a rank has the sum in its slice; the rest
				   of the range is undefined */
	ALL_GATHER,		/* every rank has every owner's slice */
	BROADCAST		/* every rank has rank 0's values */
};

struct collective_plan {
	size_t bytes;		/* of the buffer, a multiple of 64 */
	size_t largest;		/* the most bytes of one start() */
	char *staging;		/* [ranks][COLLECTIVE_RECORD] of SPACE_STAGING,
				   the collective's until close() */
	size_t own;		/* of this rank beside the buffer, for what
				   is said where memory is short */
	bool deterministic;	/* sums by fold_tree() in rank order, whatever
				   the nodes are */
};

struct collective_table {
	uint32_t abi;		/* COLLECTIVE_ABI */
	const char *name;

	/*
	 * Sets rank, size, nodes, most. Collective. Returns 0, or -1 with
	 * error set and nothing to free.
	 */
	int (*open)(struct collective *collective, struct ddp_error *error);

	/* Frees what alloc() gave. Collective. */
	void (*close)(struct collective *collective);

	/*
	 * The one buffer for all that ranks exchange by start(), zeroed; it
	 * lasts until close(). Collective; call it once. If a rank cannot
	 * allocate it, returns NULL on every rank with the same error set.
	 */
	void *(*alloc)(struct collective *collective, struct device *device,
		       const struct collective_plan *plan,
		       struct ddp_error *error);

	/*
	 * Begin once `event` has come; collective. Leave the range alone until
	 * you have waited for its ticket. Blocks only when very many are under
	 * way. Returns the ticket: 1, 2, 3, ... in the order of the calls.
	 */
	uint64_t (*start)(struct collective *collective,
			  enum collective_op op, size_t offset, size_t count,
			  enum device_type type, int event);

	/* Advance what is under way; never blocks. */
	void (*poll)(struct collective *collective);

	/* Later work in the queue sees the result. On the CPU, blocks. */
	void (*wait)(struct collective *collective, uint64_t ticket,
		     enum device_queue queue);

	/*
	 * all[r * bytes ..] = rank r's `mine`, host memory; blocks; collective.
	 * Every rank computes the same answer from it: so the ranks agree. (It
	 * is no reduction, as messages name the slowest rank, or the first
	 * that differs.)
	 */
	void (*agree)(struct collective *collective, const void *mine,
		      void *all, size_t bytes);

	/*
	 * Print "ddp-train: TEXT" and end every rank with exit code 1; does
	 * not return.
	 */
	void (*abort)(struct collective *collective, const char *text);
};

struct collective {
	const struct collective_table *table;
	void *state;			/* the table's own, NULL at first */
	int rank, size;			/* 0 and 1 before open() */
	int nodes;			/* that have ranks; 1 before open() */
	int most;			/* ranks of the node that has the most;
					   1 before open() */
	int place;			/* which of its node's ranks this is,
					   from 1; 0: not known */
	double timeout;			/* seconds that a wait may last; 0: for
					   ever. Set it before open() */
	bool share_gpu;			/* ranks may have the same GPU, so that
					   one is enough for a test; likewise */
};

extern const struct collective_table collective_self;	/* one process */
extern const struct collective_table collective_mpi;	/* if HAVE_MPI */
extern const struct collective_table collective_nccl;	/* if HAVE_PMIX */

/*
 * step/bucket.c: the slice of a rank in a range of count values: it begins at
 * *begin in the range; returns its length. All slices have one length, a
 * multiple of DEVICE_BLOCK, but the last ones can be shorter or empty.
 */
size_t collective_find_slice(size_t count, int rank, int size, size_t *begin);

/* The timeout as libddp takes it: in milliseconds, below 0 for ever. */
static inline int32_t
collective_find_timeout(const struct collective *collective)
{
	double ms = collective->timeout * 1000;

	if (ms <= 0)
		return -1;
	return ms < INT32_MAX ? (int32_t)ms : INT32_MAX;
}

#endif
