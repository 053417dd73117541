/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads a command line by a table of options. */
#include <stdlib.h>
#include <string.h>

#include "tool/option_value.h"
#include "util/scan.h"
#include "util/text.h"

static const struct tool_option *fail_unknown(const struct tool_options *table,
					      const char *argument,
					      size_t length,
					      struct ddp_error *error)
{
	struct ddp_scan_nearest nearest = { 0 };

	for (unsigned i = 0; i < table->count && length > 2; i++)
		ddp_scan_compare(&nearest, argument + 2, length - 2,
				 table->rows[i].name);
	if (nearest.name)
		ddp_error_set(error, DDP_ERROR_ARGUMENT, "%.*s is not an "
			      "option of %s; did you mean --%s", (int)length,
			      argument, table->program, nearest.name);
	else
		ddp_error_set(error, DDP_ERROR_ARGUMENT, "%s is not an option "
			      "of %s; see %s --help", argument,
			      table->program, table->program);
	return NULL;
}

/* The error lists the options that begin like that: --a, --b and --c. */
static void fail_ambiguous(const struct tool_options *table,
			   const char *argument, size_t length,
			   unsigned count, struct ddp_error *error)
{
	struct ddp_text names = { 0 };
	char *list;

	for (unsigned i = 0; i < table->count; i++) {
		const char *name = table->rows[i].name;

		if (strncmp(name, argument + 2, length - 2) != 0)
			continue;
		count--;
		ddp_text_add(&names, "--%s%s", name, count > 1 ? ", " :
			     count == 1 ? " and " : "");
	}
	list = ddp_text_finish(&names);
	ddp_error_set(error, DDP_ERROR_ARGUMENT, "%.*s is short for %s; write "
		      "more of it", (int)length, argument,
		      list ? list : "several options");
	free(list);
}

/* The row of "--name" or of a beginning that no other has. */
static const struct tool_option *find_name(const struct tool_options *table,
					   const char *argument, size_t length,
					   struct ddp_error *error)
{
	const struct tool_option *found = NULL;
	unsigned count = 0;

	for (unsigned i = 0; i < table->count; i++) {
		const struct tool_option *row = &table->rows[i];

		if (strncmp(row->name, argument + 2, length - 2) != 0)
			continue;
		if (!row->name[length - 2])
			return row;
		found = row;
		count++;
	}
	if (!found)
		return fail_unknown(table, argument, length, error);
	if (count == 1)
		return found;
	fail_ambiguous(table, argument, length, count, error);
	return NULL;
}

static const struct tool_option *find_letter(const struct tool_options *table,
					     const char *argument,
					     struct ddp_error *error)
{
	for (unsigned i = 0; i < table->count; i++)
		if (table->rows[i].letter == argument[1])
			return &table->rows[i];
	return fail_unknown(table, argument, 2, error);
}

/*
 * The row of an argument, and in *value what it has behind the option, or NULL.
 * Returns NULL with error set if there is none.
 */
static const struct tool_option *find_row(const struct tool_options *table,
					  const char *argument,
					  const char **value,
					  struct ddp_error *error)
{
	size_t length = strcspn(argument, "=");

	*value = NULL;
	if (argument[0] != '-' || !argument[1]) {
		ddp_error_set(error, DDP_ERROR_ARGUMENT, "'%s' is not an "
			      "option; %s", argument, table->stray);
		return NULL;
	}
	if (argument[1] != '-') {
		*value = argument[2] ? argument + 2 : NULL;
		return find_letter(table, argument, error);
	}
	if (argument[length])
		*value = argument + length + 1;
	return find_name(table, argument, length, error);
}

/*
 * The value of argv[*i], if its row takes one: what is behind the option, or
 * the next argument, which makes *i go on. That of --help may be missing.
 */
static const char *find_value(const struct tool_option *row, const char *value,
			      int argc, char **argv, int *i)
{
	bool next = row->kind > TOOL_FLAG;

	if (row->kind == TOOL_HELP)
		next = *i + 1 < argc && argv[*i + 1][0] != '-';
	if (!value && next && ++*i < argc)
		value = argv[*i];
	return value;
}

int tool_options_parse(const struct tool_options *table, int argc, char **argv,
		       void *options, uint64_t *given, struct ddp_error *error)
{
	const struct tool_option *row;
	const char *value;
	int result = 0;

	for (int i = 1; i < argc; i++) {
		struct ddp_error *at = result ? NULL : error;
		const char *argument = argv[i];

		if (strcmp(argument, "--") == 0)
			continue;
		row = find_row(table, argument, &value, at);
		if (!row) {
			result = -1;
			continue;
		}
		value = find_value(row, value, argc, argv, &i);
		if (!value && row->kind > TOOL_FLAG)
			result = ddp_error_set(at, DDP_ERROR_ARGUMENT, "%s "
					       "needs a value; see %s --help",
					       argument, table->program);
		else if (value && row->kind <= TOOL_FLAG &&
			 row->kind != TOOL_HELP)
			result = ddp_error_set(at, DDP_ERROR_ARGUMENT, "%s: "
					       "--%s takes no value; leave "
					       "it out", argument, row->name);
		else if (tool_option_set(row, value, options, at) < 0)
			result = -1;
		else if (given)
			*given |= UINT64_C(1) << (row - table->rows);
		if (!result && row->kind <= TOOL_HELP)
			break;
	}
	return result;
}
