/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The manifest of a checkpoint: lines of text, a name and its values. A line
 * whose name is not known is ignored, so that later versions of ddp-train can
 * say more. The last line is the CRC-32 of those before. ddp-train(1) has the
 * format.
 */
#ifndef DDP_TRAIN_MANIFEST_TEXT_H
#define DDP_TRAIN_MANIFEST_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "step/bucket.h"

struct crc;
struct ddp_error;

enum {
	MANIFEST_VERSION = 2,
	MANIFEST_FILE = 64,		/* bytes of a name, with its NUL */
	MANIFEST_STATES = 8,
	MANIFEST_BYTES = 16 << 20	/* of the text: no longer one is read */
};

/* Some ranges of each state, one state after the other. */
struct manifest_shard {
	char file[MANIFEST_FILE];
	uint32_t crc;
	int first, count;		/* of the manifest's ranges */
};

struct manifest {
	uint64_t step;
	uint64_t updates;		/* made so far */
	double loss_scale;		/* of an fp16 run; 0: of another */
	uint64_t good_steps;		/* since that has changed */
	uint64_t bad_steps;		/* skipped ones in a row, up to step */
	double seconds;			/* of all steps so far */
	size_t values;			/* of each state */
	const char *states[MANIFEST_STATES];	/* "param", "m", "v" */
	int state_count;
	const char *data;		/* which file it has learned; NULL:
					   that is not said */
	const char *data_sum;		/* of all bytes of that; likewise */
	const char *options;		/* complete: lines "--name value" */
	const char *parameters;		/* lines "NAME OFFSET ROWS COLUMNS" */
	struct manifest_shard *shards;
	int shard_count;
	struct range *ranges;		/* shard by shard */
	int range_count;

	/* The memory of the strings above, if it was read from a file. */
	char *text, *option_text, *parameter_text;
	char *compared;			/* recall.c's copy of options */
	uint64_t newest;		/* step of the newest one there */
	char *passed;			/* which newer checkpoints are broken:
					   lines; NULL: none */
};

/*
 * CRC-32 as of zlib, PNG and Ethernet, by libgcrypt, which uses the processor's
 * instructions for it. Returns NULL with error set if libgcrypt gives none.
 */
struct crc *crc_create(struct ddp_error *error);
void crc_reset(struct crc *crc);
void crc_add(struct crc *crc, const void *bytes, size_t count);

/* Returns the checksum of all that was added since the last reset; resets. */
uint32_t crc_read(struct crc *crc);

/* Accepts NULL. */
void crc_destroy(struct crc *crc);

/* The size of a shard's file. */
size_t manifest_count_bytes(const struct manifest *manifest,
			    const struct manifest_shard *shard);

/* Compares a shard's size. Returns 0, or -1 with error set: it is broken. */
int manifest_compare_size(const struct manifest *manifest,
			  const struct manifest_shard *shard, size_t size,
			  struct ddp_error *error);

/* Returns the text, the caller's to free; NULL if memory is short. */
char *manifest_format(const struct manifest *manifest);

/*
 * Read a text, which it takes over and cuts up. Returns 0, or -1 with error set
 * to a sentence that does not name the file: "its manifest ends early". Its
 * code is DDP_ERROR_ARGUMENT if the text is broken, DDP_ERROR_PEER if it is of
 * another version.
 */
int manifest_parse(struct manifest *manifest, char *text,
		   struct ddp_error *error);

/* The same of the file at path. */
int manifest_read(struct manifest *manifest, const char *path,
		  struct ddp_error *error);

/*
 * Open a file of a checkpoint, called name in errors, and see its size: no
 * link, and nothing that could block. Returns a descriptor, or -1 with error
 * set: its code is DDP_ERROR_ARGUMENT if there is no such file.
 */
int manifest_open_file(const char *path, const char *name, size_t *size,
		       struct ddp_error *error);

/* Free what it has; accepts one that is empty. */
void manifest_clear(struct manifest *manifest);

#endif
