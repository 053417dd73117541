/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bytes of one stream as whole lines, each with a label in front. Slurm passes
 * on at most 1,024 bytes of a task at once, and lines of others can come in
 * between; so a longer line becomes several. So does one with carriage returns,
 * as of a progress bar: each state of that is passed on, with its label.
 */
#ifndef DDP_PROC_LINES_H
#define DDP_PROC_LINES_H

#include <stddef.h>
#include <stdint.h>

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

#endif
