/* SPDX-License-Identifier: BSD-3-Clause */
/* The states of the trainer that a checkpoint has. */
#ifndef DDP_TRAIN_STATE_H
#define DDP_TRAIN_STATE_H

#include <stdbool.h>
#include <stddef.h>

#include "step/bucket.h"

struct ddp_error;
struct trainer;

enum { STATE_PARTS = 3 };

/*
 * States of one length, fp32, in the device's memory. A rank saves its slice of
 * each bucket if they are sharded, and else an equal part of all values.
 */
struct state {
	const char *names[STATE_PARTS];	/* "param", "m", "v" */
	float *values[STATE_PARTS];
	bool whole[STATE_PARTS];	/* all values are there; else those that
					   this rank updates: see bucket.h */
	int count;
	size_t length;
	size_t part;			/* values of each that it saves */
};

/* Valid until the trainer is destroyed; values after trainer_begin(). */
void state_list(const struct trainer *trainer, struct state *state);

/* Bytes of this rank's part. */
size_t state_count_bytes(const struct state *state);

/*
 * Copy this rank's part, state after state, to host memory. Returns 0, or -1
 * with error set if the device failed.
 */
int state_copy(struct trainer *trainer, const struct state *state, void *to,
	       struct ddp_error *error);

/* Writes to a state the values from host memory that this rank updates. */
void state_write(struct trainer *trainer, const struct state *state, int index,
		 struct range values, const float *from);

/*
 * The first values of a range that this rank updates, and so are to be loaded;
 * if there are none, none at the range's end.
 */
struct range state_find_part(const struct trainer *trainer,
			     struct range values);

/*
 * Lists the values of each state that a rank saves, in the order of
 * state_copy(); neighbours are one range. Writes at most as many ranges as
 * there are buckets; returns how many.
 */
int state_list_ranges(const struct trainer *trainer, int rank,
		      struct range *ranges);

/* Lines "NAME OFFSET ROWS COLUMNS", the caller's to free; NULL: no memory. */
char *state_format_parameters(const struct trainer *trainer);

#endif
