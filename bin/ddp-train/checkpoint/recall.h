/* SPDX-License-Identifier: BSD-3-Clause */
/* recall.c finds the checkpoint that --resume takes; see checkpoint.h. */
#ifndef DDP_TRAIN_RECALL_H
#define DDP_TRAIN_RECALL_H

#include <stdbool.h>
#include <stdint.h>

struct ddp_error;

/* Returns true if the manifest or its shards' sizes show that it is broken. */
bool recall_is_broken(const char *dir, uint64_t step);

/*
 * Tells checkpoint_recall() to pass over the checkpoint of a step, which is
 * broken. Returns -1 if memory is short.
 */
int recall_pass_over(uint64_t step, const struct ddp_error *cause);

/* Sets error for one that may be whole, but cannot be read. Returns -1. */
int recall_refuse(const char *dir, uint64_t step, const struct ddp_error *cause,
		  struct ddp_error *error);

#endif
