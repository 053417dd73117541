/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of many ranks in one line. */
#define _GNU_SOURCE
#include "verdict/who.h"

#include <stdio.h>
#include <string.h>

enum { PARTS_MAX = 16 };	/* ranks, or ranges, that a line names */

void ddp_who_add_word(struct ddp_text *text, const struct ddp_step *step)
{
	if (step->launcher)
		ddp_text_add(text, "%s task", step->launcher);
	else
		ddp_text_add(text, "rank");
}

bool ddp_who_find_cause(const struct ddp_step *step, const char *tail,
			struct ddp_who_cause *cause)
{
	const char *line = step->launcher ? tail : NULL, *end;
	bool found = false;
	unsigned int rank, local;
	char time[32] = "";

	for (; line; line = *end ? end + 1 : NULL) {
		end = strchrnul(line, '\n');
		sscanf(line, " time : %31s", time);
		if (sscanf(line, " rank : %u (local_rank: %u)", &rank,
			   &local) != 2)
			continue;
		found = true;
		cause->rank = rank;
		memcpy(cause->time, time, sizeof(time));
	}
	return found;
}

uint32_t ddp_who_add(struct ddp_text *text, const struct ddp_step *step,
		       ddp_who_is *is, const void *context)
{
	uint32_t i, last, shown = 0, count = 0, world = step->world_size, left;

	for (i = 0; i < world; i++)
		count += is(step, i, context);
	left = count;
	ddp_who_add_word(text, step);
	ddp_text_add(text, count == 1 ? " " : "s ");
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
