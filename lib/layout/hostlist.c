/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads Slurm's node lists, in two passes: one counts, one expands. */
#define _GNU_SOURCE
#include "layout/hostlist.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "util/scan.h"

#define TOO_MANY "at most 1048576 hosts in all"

struct ddp_hostlist {
	size_t count;
	uint32_t *offsets;	/* of each name in names */
	char *names;		/* one pool, each name with its NUL */
};

/* A bracket of an item, and the current number in it. */
struct bracket {
	const char *open;	/* behind '[' */
	const char *close;	/* at ']' */
	const char *next;	/* behind the current range: at ',' or ']' */
	uint64_t value, high;	/* what is left of the current range */
	size_t width;		/* zero padding of the current range */
};

/* A name of the comma list, with its brackets. */
struct item {
	const char *text, *end;
	size_t hosts;		/* that it expands to */
	size_t length;		/* of the longest of their names */
	size_t bracket_count;
	struct bracket brackets[DDP_HOSTNAME_MAX];
};

struct parser {
	const char *text;
	const char *at;
	struct ddp_error *error;
};

static int fail(const struct parser *parser, const char *at,
		const char *expected)
{
	return ddp_scan_error(parser->error, "node list", parser->text, at,
			      "%s", expected);
}

/*
 * Make the range that begins at `at` the current one. Returns NULL, or what was
 * expected at bracket->next.
 */
static const char *load_range(struct bracket *bracket, const char *at)
{
	bracket->next = at;
	if (ddp_scan_number(&bracket->next, 0, UINT64_MAX, &bracket->value))
		return "a number of at most 18 digits";
	bracket->width = (size_t)(bracket->next - at);
	bracket->high = bracket->value;
	if (*bracket->next != '-')
		return NULL;
	bracket->next++;
	if (ddp_scan_number(&bracket->next, bracket->value, UINT64_MAX,
			    &bracket->high))
		return "a number of at most 18 digits that is not below the "
		       "range's first";
	return NULL;
}

static size_t count_digits(uint64_t value)
{
	size_t count = 1;

	while (value >= 10) {
		value /= 10;
		count++;
	}
	return count;
}

/* Read a bracket from behind its '[', and count its hosts into item. */
static int parse_bracket(struct parser *parser, struct item *item)
{
	struct bracket *bracket = &item->brackets[item->bracket_count];
	const char *expected;
	size_t hosts = 0, digits, longest = 0;

	bracket->open = parser->at;
	bracket->next = parser->at - 1;
	do {
		expected = load_range(bracket, bracket->next + 1);
		if (expected)
			return fail(parser, bracket->next, expected);
		if (bracket->high - bracket->value >= DDP_HOSTLIST_MAX - hosts)
			return fail(parser, bracket->open, TOO_MANY);
		hosts += bracket->high - bracket->value + 1;
		digits = count_digits(bracket->high);
		if (digits < bracket->width)
			digits = bracket->width;
		if (longest < digits)
			longest = digits;
	} while (*bracket->next == ',');
	if (*bracket->next != ']')
		return fail(parser, bracket->next, "'-', ',' or ']'");
	bracket->close = bracket->next;
	load_range(bracket, bracket->open);
	if (item->hosts > DDP_HOSTLIST_MAX / hosts)
		return fail(parser, bracket->open, TOO_MANY);
	item->hosts *= hosts;
	item->length += longest;
	item->bracket_count++;
	parser->at = bracket->close + 1;
	return 0;
}

/* Read one item up to its ',' or NUL; its brackets are then at their start. */
static int parse_item(struct parser *parser, struct item *item)
{
	item->text = parser->at;
	item->hosts = 1;
	item->length = 0;
	item->bracket_count = 0;
	while (*parser->at && *parser->at != ',') {
		if (item->length >= DDP_HOSTNAME_MAX)
			return fail(parser, item->text,
				    "a name of at most 255 bytes");
		if (*parser->at == '[') {
			parser->at++;
			if (parse_bracket(parser, item))
				return -1;
		} else if (*parser->at <= ' ' || *parser->at > '~' ||
			   *parser->at == ']') {
			return fail(parser, parser->at,
				    "a letter, a digit, '[' or ','");
		} else {
			item->length++;
			parser->at++;
		}
	}
	item->end = parser->at;
	if (item->length > DDP_HOSTNAME_MAX)
		return fail(parser, item->text, "a name of at most 255 bytes");
	if (item->end == item->text)
		return fail(parser, item->text, "a host name");
	return 0;
}

/*
 * Step to the item's next name. Slurm's order for three or more brackets is odd
 * but fixed: the last one turns fastest, then the first, the second and so on.
 */
static void advance_item(struct item *item)
{
	struct bracket *bracket;
	size_t i;

	for (i = 0; i < item->bracket_count; i++) {
		bracket = &item->brackets[(item->bracket_count - 1 + i) %
					  item->bracket_count];
		if (bracket->value < bracket->high) {
			bracket->value++;
			return;
		}
		if (*bracket->next == ',') {
			load_range(bracket, bracket->next + 1);
			return;
		}
		load_range(bracket, bracket->open);
	}
}

static char *append_text(char *out, const char *from, const char *to)
{
	return mempcpy(out, from, (size_t)(to - from));
}

static char *append_number(char *out, uint64_t value, size_t width)
{
	size_t count = count_digits(value);
	char *end;

	if (count < width)
		count = width;
	end = out + count;
	while (count-- > 0) {
		out[count] = (char)('0' + value % 10);
		value /= 10;
	}
	return end;
}

/* Write the item's current name with its NUL; returns the byte behind that. */
static char *format_item(const struct item *item, char *out)
{
	const struct bracket *bracket;
	const char *from = item->text;
	size_t i;

	for (i = 0; i < item->bracket_count; i++) {
		bracket = &item->brackets[i];
		out = append_text(out, from, bracket->open - 1);
		out = append_number(out, bracket->value, bracket->width);
		from = bracket->close + 1;
	}
	out = append_text(out, from, item->end);
	*out++ = '\0';
	return out;
}

/* Check the whole text. Returns the number of its hosts, or 0 on error. */
static size_t count_hosts(const char *text, struct ddp_error *error)
{
	struct parser parser = { text, text, error };
	struct item item;
	size_t count = 0;

	for (;;) {
		if (parse_item(&parser, &item))
			return 0;
		if (item.hosts > DDP_HOSTLIST_MAX - count) {
			fail(&parser, item.text, TOO_MANY);
			return 0;
		}
		count += item.hosts;
		if (*parser.at == '\0')
			return count;
		parser.at++;
	}
}

/* Expand the checked text, into a pool that grows with the names. */
static int expand_hosts(struct ddp_hostlist *hosts, const char *text)
{
	struct parser parser = { text, text, NULL };
	struct item item;
	size_t used = 0, size = 0, filled = 0, i;
	char *names;

	while (filled < hosts->count) {
		parse_item(&parser, &item);
		parser.at++;
		for (i = 0; i < item.hosts; i++) {
			if (size - used <= item.length) {
				size = 2 * size + DDP_HOSTNAME_MAX + 1;
				names = realloc(hosts->names, size);
				if (!names)
					return -1;
				hosts->names = names;
			}
			hosts->offsets[filled++] = (uint32_t)used;
			used = (size_t)(format_item(&item,
						    hosts->names + used) -
					hosts->names);
			advance_item(&item);
		}
	}
	names = realloc(hosts->names, used);
	if (names)
		hosts->names = names;
	return 0;
}

struct ddp_hostlist *ddp_hostlist_create(const char *text,
					 struct ddp_error *error)
{
	struct ddp_hostlist *hosts;
	size_t count;

	count = count_hosts(text ? text : "", error);
	if (count == 0)
		return NULL;
	hosts = calloc(1, sizeof(*hosts));
	if (!hosts)
		goto no_memory;
	hosts->count = count;
	hosts->offsets = malloc(count * sizeof(*hosts->offsets));
	if (!hosts->offsets || expand_hosts(hosts, text))
		goto no_memory;
	return hosts;

no_memory:
	ddp_hostlist_destroy(hosts);
	ddp_error_set(error, DDP_ERROR_SYSTEM,
		      "out of memory for a node list of %zu hosts", count);
	return NULL;
}

void ddp_hostlist_destroy(struct ddp_hostlist *hosts)
{
	if (!hosts)
		return;
	free(hosts->names);
	free(hosts->offsets);
	free(hosts);
}

size_t ddp_hostlist_count(const struct ddp_hostlist *hosts)
{
	return hosts->count;
}

const char *ddp_hostlist_get(const struct ddp_hostlist *hosts, size_t index)
{
	if (index >= hosts->count)
		return NULL;
	return hosts->names + hosts->offsets[index];
}
