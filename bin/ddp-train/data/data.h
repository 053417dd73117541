/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The training data: one regular file, mapped read-only. Either any file, of
 * which each byte is a token (vocabulary 256), or a token file: 256 int32
 * (20240520, version 1, the number of tokens, 0 ...), then the tokens, uint16;
 * all little-endian (the format of llm.c's .bin files).
 */
#ifndef DDP_TRAIN_DATA_H
#define DDP_TRAIN_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct ddp_error;

enum data_format { DATA_BYTES, DATA_TOKENS };

struct data {
	enum data_format format;
	const unsigned char *bytes;	/* size of them; NULL: not open */
	size_t size;
	uint64_t tokens;
	uint64_t vocab;			/* of a token file, once checked */
	const char *path;		/* the caller's, borrowed */
	dev_t device;
	ino_t inode;
};

/*
 * Prints text, one sentence that names the file, and ends the run with exit
 * code 1. Does not return.
 */
typedef void data_end(void *context, const char *text);

/*
 * Map the file at path and check its kind, its header and its length; it must
 * have at least min_tokens. Returns 0, or -1 with error set and data untouched.
 * If the file later turns out to have shrunk or to have other tokens, end is
 * called with context (also from a handler of SIGBUS, in the thread that
 * reads). path is borrowed until data_close(). One file may be open at a time.
 */
int data_open(struct data *data, const char *path, enum data_format format,
	      uint64_t min_tokens, data_end *end, void *context,
	      struct ddp_error *error);

/*
 * Checks that part `part` of `parts` equal parts has only tokens below vocab.
 * Returns 0, or -1 with error naming the first one that is not and where.
 */
int data_check(struct data *data, uint64_t vocab, int part, int parts,
	       struct ddp_error *error);

/*
 * Tokens first .. first + count - 1, which must be there and were checked. A
 * token past the vocabulary ends the run: the file has changed since, or the
 * rank that checked this part has another file.
 */
void data_read(const struct data *data, uint64_t first, size_t count,
	       int32_t *tokens);

/*
 * FNV-1a, of 64 bits, of the bytes: of all up to 1 MiB, of a longer file of 256
 * pieces of 4 KiB that are spread over it.
 */
uint64_t data_hash(const struct data *data);

/*
 * A checksum of part `part` of `parts` equal parts of the file. The sum of all
 * parts does not depend on how many there are: it is that of mix(word + G i)
 * over its words i of 64 bits, little-endian, the last one filled up with
 * zeros, with mix and G of mix.h.
 */
uint64_t data_sum(const struct data *data, int part, int parts);

/*
 * Ends the run if the file has shrunk: the missing part of its last page reads
 * as zeros and raises no signal. Accepts data that is not open.
 */
void data_check_size(const struct data *data);

/* Returns true if path names the file that is open; false if none is open. */
bool data_is_path(const struct data *data, const char *path);

/* Accepts data that is not open. */
void data_close(struct data *data);

#endif
