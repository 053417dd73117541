/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes whole lines of a stream, with a label, and keeps its last bytes. */
#ifndef DDP_PROC_OUTPUT_H
#define DDP_PROC_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/wire.h"

/*
 * Bytes of one stream as whole lines, each with a label in front. Slurm passes
 * on at most 1,024 bytes of a task at once, and lines of others can come in
 * between; so a longer line becomes several. So does one with carriage returns,
 * as of a progress bar: each state of that is passed on, with its label.
 */
enum { DDP_LINES_MAX = 1000 };	/* bytes of a line, label and end included */

/* A line that is not whole yet. Zeros are none. */
struct ddp_lines {
	uint32_t length;
	char text[DDP_LINES_MAX];
};

/*
 * Take bytes in, and put the lines that become whole into out. label has less
 * than half of DDP_LINES_MAX. Returns how many bytes were taken: all, unless
 * the room is less than DDP_LINES_MAX after the *used bytes that this adds.
 */
size_t ddp_lines_take(struct ddp_lines *lines, const char *label,
		      const char *bytes, size_t size, char *out, size_t room,
		      size_t *used);

/* The stream has ended: what is left becomes a line. Returns its length. */
size_t ddp_lines_end(struct ddp_lines *lines, char out[DDP_LINES_MAX]);

/*
 * The last bytes of a stream. They lie in memory that two processes share.
 */
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
