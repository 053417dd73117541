/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The thread that writes: one job at a time. A job makes one file of a
 * checkpoint: beside its name, synced, renamed, and its folder synced.
 */
#ifndef DDP_TRAIN_WRITER_H
#define DDP_TRAIN_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "checkpoint/folder.h"
#include "util/error.h"

struct manifest;
struct writer;

struct writer_job {
	const char *dir;		/* --checkpoint */
	uint64_t step;
	const char *name;		/* of the file */
	const char *id;			/* what its temporary name ends in */
	const void *bytes;
	size_t count;			/* 0: there is no file to write */
	const struct manifest *commits;	/* for its manifest: look whether all
					   its shards are there before, sync
					   dir and prune after; NULL: a shard */
	struct folder_prune prune;	/* where it commits */
};

/* Returns NULL with error set on failure. */
struct writer *writer_create(struct ddp_error *error);

/* Begin a job when the one before has ended; what it names is borrowed. */
void writer_begin(struct writer *writer, const struct writer_job *job);

/* Returns true if no job is under way. */
bool writer_is_idle(struct writer *writer);

/*
 * Wait until the job has ended, but for a second at most. Returns whether it
 * has.
 */
bool writer_wait(struct writer *writer);

/* Returns true if a job has made progress since the last call. */
bool writer_has_grown(struct writer *writer);

/* The path of the file that the job makes, the caller's to free; or NULL. */
char *writer_format_file(struct writer *writer);

/* How the last job ended: 0 with *crc, or -1 with error set. */
int writer_get_result(struct writer *writer, uint32_t *crc,
		      struct ddp_error *error);

/* Waits for the job. Accepts NULL. */
void writer_destroy(struct writer *writer);

#endif
