/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <errno.h>
#include <float.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layout/error.h"
#include "options_table.h"

/* Above every character, which is what getopt_long returns for trouble. */
enum { OPT_FIRST = 256 };

/* Where the text of --help begins in a line. */
enum { COLUMN = 30 };

static const struct options defaults = {
	.steps = 100, .seed = 1, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8,
	.max_bad_steps = 1, .bucket_bytes = 25 << 20, .overlap = true,
	.granule = 1, .check_every = 100
};

int number_parse(const char *text, uint64_t min, uint64_t max,
		 uint64_t *number)
{
	unsigned long long value;

	/* strtoull would take a sign and blanks before the digits. */
	if (!*text || text[strspn(text, "0123456789")])
		return -1;
	errno = 0;
	value = strtoull(text, NULL, 10);
	if (errno || value < min || value > max)
		return -1;
	*number = value;
	return 0;
}

static int set_whole(const struct option_row *row, uint64_t *number,
		     struct ddp_error *error)
{
	if (number_parse(optarg, row->min, row->max, number) == 0)
		return 0;
	return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--%s '%s' is not a "
			     "whole number from %" PRIu64 " to %" PRIu64,
			     row->name, optarg, row->min, row->max);
}

/* A decimal number without a sign: no "inf", "nan" or hexadecimal. */
static double real_parse(const char *text)
{
	char *end;
	double value;

	if (text[strspn(text, "0123456789.eE+-")] ||
	    !(isdigit((unsigned char)*text) || *text == '.'))
		return NAN;
	value = strtod(text, &end);
	return *end || end == text ? NAN : value;
}

static int set_real(const struct option_row *row, void *field,
		    struct ddp_error *error)
{
	static const struct range {
		double min, max;
		const char *words;
	} ranges[] = {
		[REAL] = { 0, DBL_MAX, "from 0" },
		[POSITIVE] = { DBL_TRUE_MIN, DBL_MAX, "above 0" },
		[FRACTION] = { 0, 1 - DBL_EPSILON / 2, "from 0 to below 1" },
		[MIB] = { 0.001, 1024, "from 0.001 to 1024" }
	};
	const struct range *range = &ranges[row->kind];
	double value = real_parse(optarg);

	if (!(value >= range->min && value <= range->max))
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--%s '%s' is "
				     "not a number %s", row->name, optarg,
				     range->words);
	if (row->kind == MIB)
		*(uint64_t *)field = (uint64_t)(value * (1 << 20));
	else
		*(double *)field = value;
	return 0;
}

/* Which of the words a|b|c, or -1. */
static int find_choice(const char *words, const char *text)
{
	size_t length = strlen(text);

	for (int index = 0;; index++) {
		size_t word = strcspn(words, "|");

		if (word == length && strncmp(words, text, word) == 0)
			return index;
		if (!words[word])
			return -1;
		words += word + 1;
	}
}

static int set_choice(const struct option_row *row, void *field,
		      struct ddp_error *error)
{
	int index = find_choice(row->value, optarg);

	if (index < 0)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--%s '%s' is "
				     "not known; choose one of %s", row->name,
				     optarg, row->value);
	if (row->kind == SWITCH)
		*(bool *)field = index;
	else
		*(unsigned *)field = (unsigned)index;
	return 0;
}

static int set(struct options *options, const struct option_row *row,
	       struct ddp_error *error)
{
	void *field = (char *)options + row->field;

	switch (row->kind) {
	case FLAG:
		*(bool *)field = true;
		return 0;
	case SWITCH:
	case CHOICE:
		return set_choice(row, field, error);
	case WHOLE:
		return set_whole(row, field, error);
	case TEXT:
		break;
	default:
		return set_real(row, field, error);
	}
	if (!*optarg)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--%s needs a "
				     "%s", row->name, strcmp(row->value,
				     "FILE") == 0 ? "file name" : "name");
	*(const char **)field = optarg;
	return 0;
}

/* Fill options from argv, and *given with a bit for each row that was there. */
static int parse(struct options *options, int argc, char **argv,
		 uint64_t *given, struct ddp_error *error)
{
	struct option table[OPTIONS + 1] = { 0 };
	const char *argument = argv[optind];
	int option;

	for (int i = 0; i < OPTIONS; i++)
		table[i] = (struct option){
			option_rows[i].name, option_rows[i].kind == FLAG ?
			no_argument : required_argument, NULL, OPT_FIRST + i
		};
	opterr = 0;
	while ((option = getopt_long(argc, argv, "+:", table, NULL)) != -1) {
		if (option == ':')
			return ddp_error_set(error, DDP_ERROR_ARGUMENT, "%s "
					     "needs a value; see ddp-train "
					     "--help", argument);
		if (option < OPT_FIRST)
			return ddp_error_set(error, DDP_ERROR_ARGUMENT, "%s "
					     "is not an option of ddp-train; "
					     "see ddp-train --help", argument);
		option -= OPT_FIRST;
		if (set(options, &option_rows[option], error) < 0)
			return -1;
		*given |= UINT64_C(1) << option;
		if (options->help || options->version)
			return 0;
		argument = argv[optind];
	}
	if (optind == argc)
		return 0;
	return ddp_error_set(error, DDP_ERROR_ARGUMENT, "'%s' is not an "
			     "option; a file is named by --data",
			     argv[optind]);
}

int options_parse(struct options *options, int argc, char **argv,
		  struct ddp_error *error)
{
	struct options parsed = defaults;
	uint64_t given = 0;

	*options = defaults;
	if (parse(&parsed, argc, argv, &given, error) < 0)
		return -1;
	if (!parsed.help && !parsed.version &&
	    options_settle(&parsed, given, error) < 0)
		return -1;
	*options = parsed;
	return 0;
}

/* As few digits as read back as the same number: 15, or else 17. */
static int count_digits(double number)
{
	char text[32];

	snprintf(text, sizeof(text), "%.15g", number);
	return strtod(text, NULL) == number ? 15 : 17;
}

static size_t describe(const struct option_row *row, const void *field,
		       char *text, size_t size)
{
	const char *name = row->name, *words = row->value;
	double number;

	switch (row->kind) {
	case FLAG:
	case SWITCH:
		words = *(const bool *)field ? "on" : "off";
		break;
	case CHOICE:
		for (unsigned i = *(const unsigned *)field; i; i--)
			words = strchr(words, '|') + 1;
		break;
	case TEXT:
		words = *(const char *const *)field;
		break;
	case WHOLE:
		if (*(const uint64_t *)field >= row->min)
			return (size_t)snprintf(text, size, "--%s %" PRIu64
						"\n", name,
						*(const uint64_t *)field);
		words = "-";
		break;
	default:
		number = row->kind != MIB ? *(const double *)field :
			 (double)*(const uint64_t *)field / (1 << 20);
		return (size_t)snprintf(text, size, "--%s %.*g\n", name,
					count_digits(number), number);
	}
	words = words ? words : "-";
	return (size_t)snprintf(text, size, "--%s %.*s\n", name,
				(int)strcspn(words, "|"), words);
}

size_t options_describe(const struct options *options, char *text, size_t size)
{
	size_t length = 0;

	for (int i = 0; i < OPTIONS && length < size; i++) {
		const struct option_row *row = &option_rows[i];

		if (!row->own)
			length += describe(row, (const char *)options +
					   row->field, text + length,
					   size - length);
	}
	return length < size ? length : size;
}

/* A row, its text in a column of its own. */
static void print_row(FILE *file, const struct option_row *row)
{
	const char *text = row->help;
	int width = fprintf(file, "  --%s %s", row->name,
			    row->value ? row->value : "");

	for (;;) {
		int length = (int)strcspn(text, "\n");

		fprintf(file, "%*s%.*s\n", COLUMN - width, "", length, text);
		text += length;
		if (!*text++)
			break;
		width = 0;
	}
}

void options_print_help(FILE *file)
{
	fputs("Usage: srun --ddp [SRUN OPTIONS] ddp-train [OPTIONS]\n"
	      "Train a model, one process a rank; gradients are summed over "
	      "the ranks while the\nbackward pass runs.\n", file);
	for (int i = 0; i < OPTIONS; i++) {
		if (option_rows[i].heading)
			fprintf(file, "\n%s:\n", option_rows[i].heading);
		print_row(file, &option_rows[i]);
	}
}
