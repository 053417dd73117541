/* SPDX-License-Identifier: BSD-3-Clause */
/* The text of --help, made of the options' table, and the version. */
#include <stdio.h>
#include <string.h>

#include "config.h"
#include "tool/option.h"
#include "tool/tool.h"

/* Where the help of an option begins in a line. */
enum { COLUMN = 30 };

/* "  -b, --minbytes SIZE": what the option looks like; returns its width. */
static int print_option(const struct tool_option *row)
{
	int width = 0;

	if (row->letter)
		width = printf("  -%c, --%s", row->letter, row->name);
	else
		width = printf("  --%s", row->name);
	if (row->kind <= TOOL_FLAG)
		return width;
	if (row->value)
		return width + printf(" %s", row->value);
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

	if (width >= COLUMN) {
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

int tool_options_answer(const struct tool_options *table, bool help)
{
	struct ddp_error error;

	if (!help)
		printf("%s " DDP_VERSION "\n", table->program);
	else
		fputs(table->usage, stdout);
	for (unsigned i = 0; i < table->count && help; i++) {
		if (table->rows[i].heading)
			printf("\n%s:\n", table->rows[i].heading);
		print_row(&table->rows[i]);
	}
	if (tool_flush(&error) == 0)
		return 0;
	tool_print_error(table->program, &error);
	return 1;
}
