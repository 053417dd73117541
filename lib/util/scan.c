/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads numbers and words, and says where a text is malformed. */
#define _GNU_SOURCE
#include "util/scan.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	/* Bytes of a long text that an error quotes around the position. */
	QUOTE_BEFORE = 40, QUOTE_AFTER = 40,
	NEAR = 3	/* names that differ in fewer letters are near */
};

static int is_digit(char c)
{
	return c >= '0' && c <= '9';
}

int ddp_scan_number(const char **at, uint64_t min, uint64_t max,
		    uint64_t *value)
{
	const char *end = *at;
	uint64_t sum = 0;

	while (is_digit(*end)) {
		if (end - *at == DDP_SCAN_DIGITS_MAX)
			return -1;
		sum = sum * 10 + (uint64_t)(*end++ - '0');
	}
	if (end == *at || sum < min || sum > max)
		return -1;
	*at = end;
	*value = sum;
	return 0;
}

int ddp_scan_variable(const char *name, uint64_t min, uint64_t max,
		      uint64_t *value)
{
	const char *at = getenv(name);
	uint64_t number;

	if (!at)
		return 1;
	if (ddp_scan_number(&at, min, max, &number) < 0 || *at)
		return -1;
	*value = number;
	return 0;
}

static size_t min(size_t a, size_t b)
{
	return a < b ? a : b;
}

/*
 * How many letters to change, add, leave out or swap with the next, to turn
 * a[length] into b, a name in small letters: that of all beginnings, in three
 * rows of the usual table. Capitals count as small letters. "no" is not meant to
 * be "on".
 */
static size_t find_distance(const char *a, size_t length, const char *b)
{
	size_t rows[3][32], size = strlen(b), i, k;

	if (length > 30 || size > 30)
		return length + size;
	for (k = 0; k <= size; k++)
		rows[0][k] = k;
	for (i = 1; i <= length; i++) {
		size_t *row = rows[i % 3], *above = rows[(i + 2) % 3];

		row[0] = i;
		for (k = 1; k <= size; k++) {
			row[k] = above[k - 1] + (tolower((unsigned char)
							 a[i - 1]) != b[k - 1]);
			row[k] = min(row[k], min(row[k - 1], above[k]) + 1);
			if (length > 2 && i > 1 && k > 1 &&
			    a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1])
				row[k] = min(row[k],
					     rows[(i + 1) % 3][k - 2] + 1);
		}
	}
	return rows[length % 3][size];
}

void ddp_scan_compare(struct ddp_scan_nearest *nearest, const char *text,
		      size_t length, const char *name)
{
	size_t least = nearest->name ? nearest->distance : NEAR;
	size_t distance = find_distance(text, length, name);

	if (distance >= least || distance >= length)
		return;
	nearest->name = name;
	nearest->distance = distance;
}

int ddp_scan_word(const char *what, const char *text, const char *const *words,
		  struct ddp_error *error)
{
	struct ddp_scan_nearest nearest = { 0 };
	char known[256] = "";
	size_t used = 0;
	int i;

	for (i = 0; words[i]; i++) {
		if (strcmp(words[i], text) == 0)
			return i;
		ddp_scan_compare(&nearest, text, strlen(text), words[i]);
		used += (size_t)snprintf(known + used, sizeof(known) - used,
					 "%s%s", i > 0 ? ", " : "", words[i]);
		if (used >= sizeof(known))
			used = sizeof(known) - 1;
	}
	return ddp_error_set(error, DDP_ERROR_ARGUMENT,
			     "%s '%.64s' is not one of %s%s%s", what, text,
			     known, nearest.name ? "; did you mean " : "",
			     nearest.name ? nearest.name : "");
}

/* Write the bytes around at. */
static void quote(char *out, size_t size, const char *text, const char *at)
{
	const char *from = text;
	size_t length;

	if (at - text > QUOTE_BEFORE)
		from = at - QUOTE_BEFORE;
	length = (size_t)(at - from) + strnlen(at, QUOTE_AFTER);
	snprintf(out, size, "%s%.*s%s", from > text ? "..." : "",
		 (int)length, from, from[length] != '\0' ? "..." : "");
}

int ddp_scan_error(struct ddp_error *error, const char *what, const char *text,
		   const char *at, const char *expected, ...)
{
	char quoted[QUOTE_BEFORE + QUOTE_AFTER + sizeof("......")];
	char wanted[256];
	va_list args;

	quote(quoted, sizeof(quoted), text, at);
	va_start(args, expected);
	vsnprintf(wanted, sizeof(wanted), expected, args);
	va_end(args);
	return ddp_error_set(error, DDP_ERROR_ARGUMENT,
			     "%s '%s', byte %zu: expected %s", what, quoted,
			     (size_t)(at - text) + 1, wanted);
}
