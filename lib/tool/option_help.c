/* SPDX-License-Identifier: BSD-3-Clause */
/* The text of --help, made of the options' table, and the version. */
#include <stdio.h>
#include <string.h>

#include "config.h"
#include "tool/option.h"
#include "tool/tool.h"

/* The column in which the help of an option begins. */
enum { COLUMN = 30 };

/* "  -b, --minbytes SIZE": what the option looks like; returns its width. */
static int print_option(const struct tool_option *row)
{
	int width = 0;

	if (row->letter)
		width = printf("  -%c, --%s", row->letter, row->name);
	else
		width = printf("  --%s", row->name);
	if (row->value)
		return width + printf(" %s", row->value);
	if (row->kind <= TOOL_FLAG)
		return width;
	if (row->kind == TOOL_SWITCH)
		return width + printf(" off|on");
	for (int i = 0; row->words[i]; i++)
		width += printf("%c%s", i > 0 ? '|' : ' ', row->words[i]);
	return width;
}

/* A row, its text in a column of its own. */
static void print_row(const struct tool_option *row)
{
	const char *text = row->help;
	int width = print_option(row), length;

	/* Two blanks tell the text from words. */
	if (width > COLUMN - 2) {
		putchar('\n');
		width = 0;
	}
	for (;;) {
		length = (int)strcspn(text, "\n");
		printf("%*s%.*s\n", COLUMN - width, "", length, text);
		text += length;
		if (!*text++)
			break;
		width = 0;
	}
}

/* A group of which no option is shown has no heading either. */
static void print_rows(const struct tool_options *table, bool all)
{
	const char *heading = NULL;

	for (unsigned i = 0; i < table->count; i++) {
		const struct tool_option *row = &table->rows[i];

		if (row->heading)
			heading = row->heading;
		if (row->rare && !all)
			continue;
		if (heading)
			printf("\n%s:\n", heading);
		heading = NULL;
		print_row(row);
	}
}

int tool_options_answer(const struct tool_options *table, enum tool_help help)
{
	struct ddp_error error;

	if (help == TOOL_HELP_NONE) {
		printf("%s " DDP_VERSION "\n", table->program);
	} else {
		fputs(table->usage, stdout);
		print_rows(table, help == TOOL_HELP_ALL);
	}
	if (tool_flush(&error) == 0)
		return 0;
	tool_print_error(table->program, &error);
	return 1;
}
