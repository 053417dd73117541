/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads back what tool_options_describe() wrote. */
#define _GNU_SOURCE
#include <string.h>

#include "tool/option_value.h"

/* The row of "--name"; NULL: there is none. */
static const struct tool_option *find_row(const struct tool_options *table,
					  const char *line)
{
	for (unsigned i = 0; i < table->count; i++)
		if (strcmp(table->rows[i].name, line + 2) == 0)
			return &table->rows[i];
	return NULL;
}

/* Nothing is set by what was left open, nor by a flag that is off. */
static int recall_row(const struct tool_option *row, const char *value,
		      void *options, struct ddp_error *error)
{
	if (strcmp(value, "-") == 0 ||
	    (row->kind == TOOL_FLAG && strcmp(value, "on") != 0))
		return 0;
	return tool_option_set(row, value, options, error);
}

int tool_options_recall(const struct tool_options *table, char *lines,
			uint64_t but, void *options, uint64_t *recalled,
			struct ddp_error *error)
{
	char *line, *value;

	while ((line = strsep(&lines, "\n"))) {
		const struct tool_option *row;
		uint64_t bit;

		value = strchr(line, ' ');
		if (!value || strncmp(line, "--", 2) != 0)
			continue;
		*value++ = '\0';
		row = find_row(table, line);
		/* An option that belongs to one rank or run is never in such
		 * lines. */
		if (!row || row->own)
			continue;
		bit = UINT64_C(1) << (row - table->rows);
		if (bit & but)
			continue;
		if (recall_row(row, value, options, error) < 0)
			return -1;
		*recalled |= bit;
	}
	return 0;
}
