/* SPDX-License-Identifier: BSD-3-Clause */
/* The ranks agree on an error, and on their options. */
#define _GNU_SOURCE
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool/agree.h"

/* A rank's report to the others. */
struct report {
	char host[64];
	struct ddp_error error;
	char settings[TOOL_SETTINGS_SIZE];
};

static bool is_same(const struct ddp_error *a, const struct ddp_error *b)
{
	return a->code == b->code && strcmp(a->text, b->text) == 0;
}

/* The first rank's error; without its name where all ranks say the same. */
static int find_error(const struct report *all, int size,
		      struct ddp_error *error)
{
	int first = 0, same = 0;

	while (first < size && all[first].error.code == DDP_ERROR_NONE)
		first++;
	if (first == size)
		return 0;
	for (int rank = 0; rank < size; rank++)
		same += is_same(&all[rank].error, &all[first].error);
	if (same < size)
		return ddp_error_set(error, all[first].error.code,
				     "rank %d on %s: %s", first,
				     all[first].host, all[first].error.text);
	if (error)
		*error = all[first].error;
	return -1;
}

/* The first rank whose settings differ from rank 0's, and the first line. */
static int compare_settings(const struct report *all, int size,
			    struct ddp_error *error)
{
	for (int rank = 1; rank < size; rank++) {
		const char *had = all[rank].settings;
		const char *wanted = all[0].settings;
		size_t i = 0;

		if (strcmp(had, wanted) == 0)
			continue;
		while (had[i] == wanted[i])
			i++;
		while (i > 0 && had[i - 1] != '\n')
			i--;
		had += i;
		wanted += i;
		return ddp_error_set(error, DDP_ERROR_PEER, "rank %d on %s "
				     "has %.*s, but rank 0 has %.*s; start "
				     "every rank with the same options and "
				     "data", rank, all[rank].host,
				     (int)strcspn(had, "\n"), had,
				     (int)strcspn(wanted, "\n"), wanted);
	}
	return 0;
}

int tool_agree(const struct tool_ranks *ranks, const char *settings,
	       const struct ddp_error *mine, struct ddp_error *error)
{
	struct report *all = calloc((size_t)ranks->size, sizeof(*all));
	struct report own = { .error = *mine };
	int result;

	/* The others wait for this rank, and could not be told otherwise. */
	if (!all || strlen(settings) >= sizeof(own.settings))
		ranks->abort(ranks->context, "no memory for what the ranks "
			     "tell each other");
	gethostname(own.host, sizeof(own.host) - 1);
	strcpy(own.settings, settings);
	ranks->exchange(ranks->context, &own, all, sizeof(own));
	result = find_error(all, ranks->size, error);
	if (result == 0)
		result = compare_settings(all, ranks->size, error);
	free(all);
	return result;
}
