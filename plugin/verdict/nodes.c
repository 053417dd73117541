/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of many nodes in one line. */
#define _GNU_SOURCE
#include "verdict/nodes.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
	PARTS_MAX = 16,		/* nodes, or ranges of them, that a line names */
	DIGITS_MAX = 9		/* of a number that is counted */
};

/* A name ends with these digits; 0: with none that can be counted. */
static size_t count_digits(const char *name)
{
	size_t length = strlen(name), digits = 0;

	while (digits < length && digits < DIGITS_MAX &&
	       isdigit((unsigned char)name[length - digits - 1]))
		digits++;
	return digits;
}

static size_t get_prefix(const char *name)
{
	return strlen(name) - count_digits(name);
}

/* n2 comes before n10. */
static int compare(const void *a, const void *b)
{
	const char *one = *(const char *const *)a;
	const char *other = *(const char *const *)b;

	return strverscmp(one, other);
}

/* Whether they differ by a number only, which has as many digits. */
static bool is_alike(const char *a, const char *b)
{
	size_t prefix = get_prefix(a);
	const char *digits = a + prefix;

	if (!*digits || get_prefix(b) != prefix ||
	    memcmp(a, b, prefix) != 0)
		return false;
	/* n9 and n10 can stand in one list, n09 and n10 too; n9 and n010 not. */
	return strlen(a) == strlen(b) || (*digits != '0' && b[prefix] != '0');
}

static bool is_next(const char *a, const char *b)
{
	return is_alike(a, b) && strtol(b + get_prefix(b), NULL, 10) ==
	       strtol(a + get_prefix(a), NULL, 10) + 1;
}

void ddp_nodes_add(struct ddp_text *text, const char **names, uint32_t count)
{
	uint32_t i, last, parts;
	bool open = false, next;

	qsort(names, count, sizeof(*names), compare);
	for (i = 0, parts = 0; i < count && parts < PARTS_MAX; parts++) {
		for (last = i; last + 1 < count &&
		     is_next(names[last], names[last + 1]);)
			last++;
		next = last + 1 < count && parts + 1 < PARTS_MAX &&
		       is_alike(names[last], names[last + 1]);
		if (open)
			ddp_text_add_string(text, names[i] +
					    get_prefix(names[i]));
		else if (last > i || next)
			ddp_text_add_quoted(text, "%.*s[%s",
					    (int)get_prefix(names[i]), names[i],
					    names[i] + get_prefix(names[i]));
		else
			ddp_text_add_string(text, names[i]);
		open |= last > i || next;
		if (last > i)
			ddp_text_add_quoted(text, "-%s", names[last] +
					    get_prefix(names[last]));
		if (open && !next)
			ddp_text_add(text, "]");
		open &= next;
		i = last + 1;
		if (i < count && parts + 1 < PARTS_MAX)
			ddp_text_add(text, ",");
	}
	if (i < count)
		ddp_text_add(text, " and %u more", count - i);
}
