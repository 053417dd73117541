/* SPDX-License-Identifier: BSD-3-Clause */
/* Puts the lines of one stream together. */
#define _GNU_SOURCE
#include "proc/lines.h"

#include <stdbool.h>
#include <string.h>

static void put(struct ddp_lines *lines, const char *bytes, size_t size)
{
	memcpy(lines->text + lines->length, bytes, size);
	lines->length += (uint32_t)size;
}

/*
 * Finds where to break a line that is too long: not within a UTF-8 character.
 */
static uint32_t find_break(const struct ddp_lines *lines)
{
	uint32_t at = lines->length - 1, back;

	for (back = 0; back < 3 && (lines->text[at] & 0xc0) == 0x80; back++)
		at--;
	return (lines->text[at] & 0xc0) == 0xc0 ? at : lines->length;
}

/* Returns the length of what is now in out. */
static size_t break_line(struct ddp_lines *lines, const char *label, char *out)
{
	uint32_t at = find_break(lines), rest = lines->length - at;
	char character[4];

	memcpy(character, lines->text + at, rest);
	memcpy(out, lines->text, at);
	out[at] = '\n';
	lines->length = 0;
	if (rest > 0) {
		put(lines, label, strlen(label));
		put(lines, character, rest);
	}
	return at + 1;
}

/* Returns true if a carriage return comes last, and no newline follows it. */
static bool is_returned(const struct ddp_lines *lines, char next)
{
	return lines->length > 0 && lines->text[lines->length - 1] == '\r' &&
	       next != '\n';
}

size_t ddp_lines_take(struct ddp_lines *lines, const char *label,
		      const char *bytes, size_t size, char *out, size_t room,
		      size_t *used)
{
	size_t i;

	*used = 0;
	for (i = 0; i < size && room - *used >= DDP_LINES_MAX; i++) {
		if (is_returned(lines, bytes[i])) {
			memcpy(out + *used, lines->text, lines->length);
			*used += lines->length;
			lines->length = 0;
		}
		if (lines->length == 0)
			put(lines, label, strlen(label));
		if (bytes[i] == '\n')
			*used += ddp_lines_end(lines, out + *used);
		else
			put(lines, bytes + i, 1);
		if (lines->length == DDP_LINES_MAX - 1)
			*used += break_line(lines, label, out + *used);
	}
	return i;
}

size_t ddp_lines_end(struct ddp_lines *lines, char out[DDP_LINES_MAX])
{
	uint32_t length = lines->length;

	lines->length = 0;
	if (length == 0)
		return 0;
	memcpy(out, lines->text, length);
	out[length] = '\n';
	return length + 1;
}
