/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads numbers and words, and says where a text is malformed. */
#define _GNU_SOURCE
#include "layout/scan.h"

#include <stdarg.h>
#include <stdio.h>
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

/* How many letters to change, add or leave out to turn a[length] into b. */
static size_t find_distance(const char *a, size_t length, const char *b)
{
	size_t above[32], size = strlen(b), i, k;

	if (length > 30 || size > 30)
		return length + size;
	for (k = 0; k <= size; k++)
		above[k] = k;
	for (i = 1; i <= length; i++) {
		size_t corner = above[0], change;

		above[0] = i;
		for (k = 1; k <= size; k++) {
			change = corner + (a[i - 1] != b[k - 1]);
			corner = above[k];
			if (change > above[k - 1] + 1)
				change = above[k - 1] + 1;
			if (change > corner + 1)
				change = corner + 1;
			above[k] = change;
		}
	}
	return above[size];
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
