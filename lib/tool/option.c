/* SPDX-License-Identifier: BSD-3-Clause */
/* Options by a table: their values, the command line, --help. */
#define _GNU_SOURCE
#include "tool/option.h"

#include <ctype.h>
#include <errno.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "tool/tool.h"
#include "util/scan.h"
#include "util/text.h"

/* ---- values: what each kind takes, and how it is written back */

static const char *const switch_words[] = { "off", "on", NULL };

static int set_whole(const struct tool_option *row, const char *value,
		     uint64_t *number, struct ddp_error *error)
{
	/* strtoull would take a sign and blanks before the digits. */
	bool digits = *value && !value[strspn(value, "0123456789")];
	unsigned long long whole;

	errno = 0;
	whole = digits ? strtoull(value, NULL, 10) : 0;
	if (digits && !errno && whole >= row->min && whole <= row->max) {
		*number = whole;
		return 0;
	}
	return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--%s '%s' is not a "
			     "whole number from %" PRIu64 " to %" PRIu64,
			     row->name, value, row->min, row->max);
}

static int set_size(const struct tool_option *row, const char *value,
		    uint64_t *size, struct ddp_error *error)
{
	static const char units[] = "KkMmGg";
	const uint64_t max = UINT64_C(1) << 40;
	const char *at = value, *unit;
	uint64_t number;
	int shift = 0;

	if (ddp_scan_number(&at, 1, max, &number) == 0) {
		unit = *at ? strchr(units, *at) : NULL;
		if (unit) {
			shift = 10 * (1 + (int)(unit - units) / 2);
			at++;
		}
		if (!*at && number <= max >> shift) {
			*size = number << shift;
			return 0;
		}
	}
	return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--%s '%s' is not a "
			     "size from 1 to 1024G, such as 8, 64K, 32M or 1G",
			     row->name, value);
}

/* A decimal number without a sign: no "inf", "nan" or hexadecimal. */
static double parse_real(const char *text)
{
	char *end;
	double value;

	if (text[strspn(text, "0123456789.eE+-")] ||
	    !(isdigit((unsigned char)*text) || *text == '.'))
		return NAN;
	value = strtod(text, &end);
	return *end || end == text ? NAN : value;
}

/* Round up, so that what describe_row() prints of the least MiB is not below it
 * when it is read again. */
static uint64_t round_up(double number)
{
	uint64_t whole = (uint64_t)number;

	return whole + ((double)whole < number);
}

static int set_real(const struct tool_option *row, const char *value,
		    void *field, struct ddp_error *error)
{
	static const struct range {
		double min, max;
		const char *words;
	} ranges[] = {
		[TOOL_REAL] = { 0, DBL_MAX, "from 0" },
		[TOOL_POSITIVE] = { DBL_TRUE_MIN, DBL_MAX, "above 0" },
		[TOOL_FRACTION] = { 0, 1 - DBL_EPSILON / 2,
				    "from 0 to below 1" },
		[TOOL_MIB] = { 0.001, 1024, "from 0.001 to 1024" }
	};
	const struct range *range = &ranges[row->kind];
	double number = parse_real(value);

	if (!(number >= range->min && number <= range->max))
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--%s '%s' is "
				     "not a number %s", row->name, value,
				     range->words);
	if (row->kind == TOOL_MIB)
		*(uint64_t *)field = round_up(number * (1 << 20));
	else
		*(double *)field = number;
	return 0;
}

static int set_word(const struct tool_option *row, const char *value,
		    void *field, struct ddp_error *error)
{
	bool is_switch = row->kind == TOOL_SWITCH;
	char what[64];
	int index;

	snprintf(what, sizeof(what), "--%s", row->name);
	index = ddp_scan_word(what, value,
			      is_switch ? switch_words : row->words, error);
	if (index < 0)
		return -1;
	if (is_switch)
		*(bool *)field = index;
	else
		*(unsigned *)field = (unsigned)index;
	return 0;
}

static int set_help(const struct tool_option *row, const char *value,
		    enum tool_help *help, struct ddp_error *error)
{
	if (value && strcmp(value, "all") != 0)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--%s '%s' is "
				     "not all, the only word that it takes; "
				     "leave it out", row->name, value);
	*help = value ? TOOL_HELP_ALL : TOOL_HELP_USUAL;
	return 0;
}

/* Texts are written in lines, for other ranks or runs, so that each must be
 * one. */
static int set_text(const struct tool_option *row, const char *value,
		    const char **text, struct ddp_error *error)
{
	if (!*value)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--%s needs a "
				     "value that is not empty", row->name);
	for (const char *at = value; *at && !row->own; at++)
		if (iscntrl((unsigned char)*at))
			return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--%s "
					     "'%s' has a line break or another "
					     "control character; choose one "
					     "without", row->name, value);
	*text = value;
	return 0;
}

static int add_text(const struct tool_option *row, const char *value,
		    struct tool_list *list, struct ddp_error *error)
{
	if (list->count == TOOL_LIST_MAX)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--%s is "
				     "given more than %d times", row->name,
				     TOOL_LIST_MAX);
	list->texts[list->count++] = value;
	return 0;
}

/* Set the row's field by its value, which may be NULL up to TOOL_FLAG. */
static int set_option(const struct tool_option *row, const char *value,
		      void *options, struct ddp_error *error)
{
	void *field = (char *)options + row->field;

	switch (row->kind) {
	case TOOL_ASK: case TOOL_FLAG:
		*(bool *)field = true;
		return 0;
	case TOOL_HELP:
		return set_help(row, value, field, error);
	case TOOL_SWITCH: case TOOL_CHOICE:
		return set_word(row, value, field, error);
	case TOOL_TEXT:
		return set_text(row, value, field, error);
	case TOOL_LIST:
		return add_text(row, value, field, error);
	case TOOL_WHOLE:
		return set_whole(row, value, field, error);
	case TOOL_SIZE:
		return set_size(row, value, field, error);
	default:
		return set_real(row, value, field, error);
	}
}

/*
 * Returns the fewest digits that read back as the same number: 15, or else 17.
 */
static int count_digits(double number)
{
	char text[32];

	snprintf(text, sizeof(text), "%.15g", number);
	return strtod(text, NULL) == number ? 15 : 17;
}

static const char *find_words(const struct tool_option *row, const void *field)
{
	const char *text;

	switch (row->kind) {
	case TOOL_CHOICE:
		return row->words[*(const unsigned *)field];
	case TOOL_TEXT:
		text = *(const char *const *)field;
		return text ? text : "-";
	default:
		return switch_words[*(const bool *)field];
	}
}

static int describe_row(const struct tool_option *row, const void *field,
			char *text, size_t size)
{
	double number;
	uint64_t whole;

	switch (row->kind) {
	case TOOL_WHOLE: case TOOL_SIZE:
		whole = *(const uint64_t *)field;
		if (whole < row->min)
			return snprintf(text, size, "--%s -\n", row->name);
		return snprintf(text, size, "--%s %" PRIu64 "\n", row->name,
				whole);
	case TOOL_REAL: case TOOL_POSITIVE: case TOOL_FRACTION: case TOOL_MIB:
		number = row->kind != TOOL_MIB ? *(const double *)field :
			 (double)*(const uint64_t *)field / (1 << 20);
		return snprintf(text, size, "--%s %.*g\n", row->name,
				count_digits(number), number);
	default:
		return snprintf(text, size, "--%s %s\n", row->name,
				find_words(row, field));
	}
}

size_t tool_options_describe(const struct tool_options *table,
			     const void *options, char *text, size_t size)
{
	size_t length = 0;

	for (unsigned i = 0; i < table->count && length < size; i++) {
		const struct tool_option *row = &table->rows[i];

		if (!row->own)
			length += (size_t)describe_row(row,
				(const char *)options + row->field,
				text + length, size - length);
	}
	return length < size ? length : size;
}

/* ---- reading back what tool_options_describe() wrote */

/* Nothing is set by what was left open, nor by a flag that is off. */
static int recall_row(const struct tool_option *row, const char *value,
		      void *options, struct ddp_error *error)
{
	if (strcmp(value, "-") == 0 ||
	    (row->kind == TOOL_FLAG && strcmp(value, "on") != 0))
		return 0;
	return set_option(row, value, options, error);
}

int tool_options_recall(const struct tool_options *table, char *lines,
			uint64_t but, void *options, uint64_t *recalled,
			struct ddp_error *error)
{
	const struct tool_option *row;
	char *line, *value;
	uint64_t bit;

	while ((line = strsep(&lines, "\n"))) {
		value = strchr(line, ' ');
		if (!value || strncmp(line, "--", 2) != 0)
			continue;
		*value++ = '\0';
		for (row = table->rows; row < table->rows + table->count; row++)
			if (strcmp(row->name, line + 2) == 0)
				break;
		/* An option that belongs to one rank or run is never in such
		 * lines. */
		if (row == table->rows + table->count || row->own)
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

/* ---- a command line */

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
		else if (set_option(row, value, options, at) < 0)
			result = -1;
		else if (given)
			*given |= UINT64_C(1) << (row - table->rows);
		if (!result && row->kind <= TOOL_HELP)
			break;
	}
	return result;
}

/* ---- the text of --help, and the version */

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
