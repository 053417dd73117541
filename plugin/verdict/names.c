/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of many ranks in one line. */
#define _GNU_SOURCE
#include "verdict/names.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { PARTS_MAX = 16 };	/* of ranks, or of their ranges, a line names */

void ddp_who_add_word(struct ddp_text *text, const struct ddp_step *step)
{
	if (step->launcher)
		ddp_text_add(text, "%s task", step->launcher);
	else
		ddp_text_add(text, "rank");
}

/* "2026-11-28_16:58:42"; 0: it is none. */
static int64_t read_time(const char *text)
{
	struct tm time = { .tm_isdst = 0 };

	return strptime(text, "%Y-%m-%d_%H:%M:%S", &time) ? timegm(&time) : 0;
}

bool ddp_who_find_cause(const struct ddp_step *step, const char *tail,
			struct ddp_who_cause *cause)
{
	const char *line = step->launcher ? tail : NULL, *end;
	struct ddp_who_cause at = { .at_s = 0 };
	bool found = false;
	unsigned int local;
	char time[32];
	int code;

	*cause = at;
	for (; line; line = *end ? end + 1 : NULL) {
		end = strchrnul(line, '\n');
		if (sscanf(line, " time : %31s", time) == 1)
			at.at_s = read_time(time);
		if (sscanf(line, " rank : %u (local_rank: %u)", &at.rank,
			   &local) == 2) {
			found = true;
			if (!cause->killed)
				*cause = at;
		}
		if (found && sscanf(line, " exitcode : %d", &code) == 1 &&
		    code < 0 && code != -SIGTERM && code != -SIGABRT &&
		    !cause->killed) {
			*cause = at;
			cause->killed = true;
		}
	}
	return found;
}

/* The first line that names its modules begins that. */
size_t ddp_who_own_part(const char *tail)
{
	static const char *const modules[] = {
		"torch.distributed.elastic", "torch/distributed/elastic",
	};
	const char *at = NULL, *found;
	size_t i;

	for (i = 0; i < sizeof(modules) / sizeof(modules[0]); i++) {
		found = strstr(tail, modules[i]);
		if (found && (!at || found < at))
			at = found;
	}
	while (at && at > tail && at[-1] != '\n')
		at--;
	return at ? (size_t)(at - tail) : strlen(tail);
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
