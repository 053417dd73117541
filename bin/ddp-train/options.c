/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layout/error.h"
#include "options.h"
#include "options_table.h"

/* Above every character, which is what getopt_long returns for trouble. */
enum { OPT_FIRST = 256 };

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

static int set_real(const struct option_row *row, double *number,
		    struct ddp_error *error)
{
	double value = real_parse(optarg);

	if (row->kind == POSITIVE && !(value > 0 && isfinite(value)))
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--%s '%s' is "
				     "not a number above 0", row->name,
				     optarg);
	if (row->kind == FRACTION && !(value >= 0 && value < 1))
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--%s '%s' is "
				     "not a number from 0 to below 1",
				     row->name, optarg);
	if (!(value >= 0 && isfinite(value)))
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--%s '%s' is "
				     "not a number from 0", row->name, optarg);
	*number = value;
	return 0;
}

static int set_mib(const struct option_row *row, uint64_t *bytes,
		   struct ddp_error *error)
{
	double value = real_parse(optarg);

	if (!(value >= 0.001 && value <= 1024))
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--%s '%s' is "
				     "not a number from 0.001 to 1024",
				     row->name, optarg);
	*bytes = (uint64_t)(value * (1 << 20));
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
	case MIB:
		return set_mib(row, field, error);
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

static int describe(const struct option_row *row, const void *field,
		    char *text, size_t size)
{
	const char *words = row->value;

	switch (row->kind) {
	case FLAG:
		return snprintf(text, size, "--%s ", row->name);
	case SWITCH:
		return snprintf(text, size, "--%s %s ", row->name,
				*(const bool *)field ? "on" : "off");
	case CHOICE:
		for (unsigned i = *(const unsigned *)field; i; i--)
			words = strchr(words, '|') + 1;
		return snprintf(text, size, "--%s %.*s ", row->name,
				(int)strcspn(words, "|"), words);
	case TEXT:
		return snprintf(text, size, "--%s %s ", row->name,
				*(const char *const *)field);
	case WHOLE:
		return snprintf(text, size, "--%s %" PRIu64 " ", row->name,
				*(const uint64_t *)field);
	case MIB:
		return snprintf(text, size, "--%s %.15g ", row->name,
				(double)*(const uint64_t *)field / (1 << 20));
	default:
		return snprintf(text, size, "--%s %.15g ", row->name,
				*(const double *)field);
	}
}

int options_describe(const struct options *options, char *text, size_t size)
{
	unsigned state = options_state(options);
	size_t length = 0;

	for (int i = 0; i < OPTIONS; i++) {
		const struct option_row *row = &option_rows[i];
		const void *field = (const char *)options + row->field;

		if (row->own || (row->idle & state) ||
		    (row->kind == FLAG && !*(const bool *)field))
			continue;
		length += (size_t)describe(row, field, length < size ?
					   text + length : NULL, length < size ?
					   size - length : 0);
	}
	return (int)length;
}
