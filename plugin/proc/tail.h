/* SPDX-License-Identifier: BSD-3-Clause */
/* The last bytes of a stream. It lies in memory that two processes share. */
#ifndef DDP_PROC_TAIL_H
#define DDP_PROC_TAIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/wire.h"

enum { DDP_TAIL_SIZE = 4 * DDP_WIRE_TAIL_SIZE };	/* frames take much */

/* Zeros are an empty one. */
struct ddp_tail {
	uint64_t total;		/* bytes that were ever added */
	uint64_t first, end;	/* of those that are kept: byte i is in
				 * bytes[i % DDP_TAIL_SIZE] */
	uint64_t line;		/* where the last line of them begins */
	bool cut;		/* the first of them is within a line */
	bool returned;		/* a carriage return came last */
	char bytes[DDP_TAIL_SIZE];
};

/* Add bytes, and keep what follows the last carriage return of each line. */
void ddp_tail_add(struct ddp_tail *tail, const char *bytes, size_t size);

/*
 * The last lines as a text, but for those of a stack of C or C++, and Open MPI's
 * block about MPI_Abort: what made it be printed stands above. It begins with a
 * whole line where one is left, and has '?' in place of NULs.
 */
void ddp_tail_get(const struct ddp_tail *tail, char text[DDP_WIRE_TAIL_SIZE]);

#endif
