/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks as a sentence names them. */
#include "nccl/names.h"

#include <stdio.h>
#include <string.h>

void ddp_names_add(struct ddp_names *names, uint32_t rank)
{
	if (names->count < DDP_NAMES_MAX)
		names->ranks[names->count] = rank;
	names->count++;
}

const char *ddp_names_get_host(const struct ddp_places *places, uint32_t rank)
{
	const char *name = places->host(places->of, rank);

	return name ? name : "an unknown host";
}

const char *ddp_names_format(struct ddp_names *names, uint32_t all,
			     const struct ddp_places *places)
{
	uint32_t i, named = names->count;
	const size_t room = sizeof(names->text);
	const char *before = "";
	char *text = names->text;
	uint32_t more;

	if (names->count == all && all > 1) {
		snprintf(text, room, "all %u ranks", all);
		return text;
	}
	if (named > DDP_NAMES_MAX)
		named = DDP_NAMES_MAX;
	more = names->count - named;
	text[0] = '\0';
	for (i = 0; i < named; i++) {
		snprintf(text + strlen(text), room - strlen(text),
			 "%srank %u on %s", before, names->ranks[i],
			 ddp_names_get_host(places, names->ranks[i]));
		before = i + 2 == named && more == 0 ? " and " : ", ";
	}
	if (more > 0)
		snprintf(text + strlen(text), room - strlen(text),
			 " and %u other%s", more, more > 1 ? " ranks" : "");
	return text;
}
