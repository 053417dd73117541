/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of many ranks in one line. */
#include "watch/who.h"

enum { PARTS_MAX = 16 };	/* ranks, or ranges, that a line names */

uint32_t ddp_who_add(struct ddp_text *text, const struct ddp_step *step,
		       ddp_who_is *is, const void *context)
{
	uint32_t i, last, shown = 0, count = 0, world = step->world_size, left;

	for (i = 0; i < world; i++)
		count += is(step, i, context);
	left = count;
	ddp_text_add(text, count == 1 ? "rank " : "ranks ");
	for (i = 0; i < world && shown < PARTS_MAX; i = last + 1) {
		last = i;
		if (!is(step, i, context))
			continue;
		while (last + 1 < world && is(step, last + 1, context))
			last++;
		ddp_text_add(text, "%s%u", shown++ ? "," : "", i);
		if (last > i)
			ddp_text_add(text, "-%u", last);
		left -= last - i + 1;
	}
	if (left > 0)
		ddp_text_add(text, " and %u more", left);
	return count;
}
