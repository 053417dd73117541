/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rows that are copies of one, as those of many nodes alike are, end alike: the
 * end is formatted once, and then copied within the text.
 */
#ifndef DDP_PLACE_TAILS_H
#define DDP_PLACE_TAILS_H

#include <stdbool.h>
#include <stddef.h>

#include "place/report.h"
#include "util/text.h"

enum { DDP_TAILS = 16 };

/* Begin with { { { NULL, 0, 0 } } }. */
struct ddp_tails {
	struct {
		const char *storage;	/* the rows'; NULL: none yet */
		size_t at, length;	/* of the end in the text */
	} of[DDP_TAILS];		/* by local rank */
};

/* Add the row's end once more, if the text has it already; true if it has. */
bool ddp_tails_repeat(const struct ddp_tails *tails, const struct ddp_row *row,
		      struct ddp_text *out);

/* The row's end is what the text has from at on. */
void ddp_tails_keep(struct ddp_tails *tails, const struct ddp_row *row,
		    const struct ddp_text *out, size_t at);

#endif
