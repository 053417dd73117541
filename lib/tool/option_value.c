/* SPDX-License-Identifier: BSD-3-Clause */
/* The values of options: what each kind takes, and how it is written back. */
#include <ctype.h>
#include <errno.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/option_value.h"
#include "util/scan.h"

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

int tool_option_set(const struct tool_option *row, const char *value,
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
