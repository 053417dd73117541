/* SPDX-License-Identifier: BSD-3-Clause */
/* find.c finds the newest checkpoint, load.c reads it; see checkpoint.h. */
#ifndef DDP_TRAIN_LOAD_H
#define DDP_TRAIN_LOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ddp_error;
struct manifest;
struct manifest_shard;
struct options;
struct trainer;

/* A function that is called after each piece that is read. */
struct load_pause {
	void (*call)(void *context);
	void *context;
};

/*
 * The newest checkpoint below dir whose manifest is whole and whose shards are
 * there, in their sizes, and which was not passed over; manifest->passed says
 * which newer ones are broken. Returns 1; 0 if there is none; or -1 with error
 * set, also where none of several is whole.
 */
int load_find(const char *dir, struct manifest *manifest,
	      struct ddp_error *error);

/*
 * Read shard `first` and each `step`-th after it, and compare their checksums.
 * Returns 0, or -1 with error set: its code is DDP_ERROR_ARGUMENT if one is
 * broken; else they may be whole.
 */
int load_check(const char *dir, const struct manifest *manifest, int first,
	       int step, const struct load_pause *pause,
	       struct ddp_error *error);

/* Read options->from: see checkpoint_load(). */
int load_state(const struct options *options, struct trainer *trainer,
	       const struct load_pause *pause, struct ddp_error *error);

/* Compares a shard's size. Returns 0, or -1 with error set: it is broken. */
int load_compare_size(const struct manifest *manifest,
		      const struct manifest_shard *shard, size_t size,
		      struct ddp_error *error);

/* Returns true if the manifest or its shards' sizes show that it is broken. */
bool load_is_broken(const char *dir, uint64_t step);

/*
 * Tells load_find() to pass over the checkpoint of a step, which is broken.
 * Returns -1 if memory is short.
 */
int load_pass_over(uint64_t step, const struct ddp_error *cause);

/* Sets error for one that may be whole, but cannot be read. Returns -1. */
int load_refuse(const char *dir, uint64_t step, const struct ddp_error *cause,
		struct ddp_error *error);

#endif
