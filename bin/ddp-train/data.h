/* SPDX-License-Identifier: BSD-3-Clause */
/* The training text: one regular file, mapped read-only. */
#ifndef DDP_TRAIN_DATA_H
#define DDP_TRAIN_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct ddp_error;

struct data {
	const unsigned char *bytes;	/* size of them; NULL: not open */
	size_t size;
	dev_t device;
	ino_t inode;
};

/*
 * Map the regular file at path, which must hold at least min_size bytes (1 or
 * more).  Returns 0, or -1 with error set and data untouched.  A file that
 * shrinks while it is mapped ends the process with one sentence, and path is
 * borrowed for it until data_close().  One file may be open at a time.
 */
int data_open(struct data *data, const char *path, size_t min_size,
	      struct ddp_error *error);

/* Whether path names the file that is open; false where none is. */
bool data_is(const struct data *data, const char *path);

/* Accepts data that is not open. */
void data_close(struct data *data);

#endif
