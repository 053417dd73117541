/* SPDX-License-Identifier: BSD-3-Clause */
/* Builds texts of any length, and makes others' texts safe to print. */
#define _GNU_SOURCE
#include "util/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Make room for length bytes more and a NUL. Returns where they begin, or NULL
 * after a failure.
 */
static char *grow_text(struct ddp_text *text, size_t length)
{
	size_t size = text->size > 0 ? text->size : 256;
	char *data;

	if (text->failed)
		return NULL;
	while (size - text->length <= length)
		size *= 2;
	data = size > text->size ? realloc(text->data, size) : text->data;
	if (!data) {
		text->failed = true;
		return NULL;
	}
	text->data = data;
	text->size = size;
	return data + text->length;
}

/* Returns what was added, or "" after a failure. */
static char *add_args(struct ddp_text *text, const char *format, va_list args)
	__attribute__((format(printf, 2, 0)));

static char *add_args(struct ddp_text *text, const char *format, va_list args)
{
	static char nothing[1];
	char *out = grow_text(text, 64);
	size_t room = out ? text->size - text->length : 0;
	va_list again;
	int length = -1;

	va_copy(again, args);
	if (out)
		length = vsnprintf(out, room, format, args);
	if (length >= 0 && (size_t)length >= room) {
		out = grow_text(text, (size_t)length);
		if (out)
			vsnprintf(out, (size_t)length + 1, format, again);
	}
	va_end(again);
	if (!out || length < 0)
		return nothing;
	text->length += (size_t)length;
	return out;
}

void ddp_text_add(struct ddp_text *text, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	add_args(text, format, args);
	va_end(args);
}

void ddp_text_add_quoted(struct ddp_text *text, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	ddp_text_quote(add_args(text, format, args));
	va_end(args);
}

/*
 * Returns how many bytes the character has that begins here, if it is safe to
 * print: printable ASCII, or well-formed UTF-8 (RFC 3629) that neither controls
 * the terminal nor breaks or turns the line; else 0.
 */
static size_t get_printable(const char *text)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	static const uint32_t others[][2] = {
		{ 0x80, 0x9f }, { 0x61c, 0x61c }, { 0x200e, 0x200f },
		{ 0x2028, 0x202e }, { 0x2066, 0x2069 }, { 0xd800, 0xdfff },
	};
	const unsigned char *at = (const unsigned char *)text;
	size_t length = *at < 0xe0 ? 2 : *at < 0xf0 ? 3 : 4, i;
	uint32_t code = *at & (0x7f >> length);

	if (*at < 0x80)
		return *at >= ' ' && *at <= '~';
	if (*at < 0xc0 || *at >= 0xf8)
		return 0;
	for (i = 1; i < length; i++) {
		if ((at[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (at[i] & 0x3f);
	}
	for (i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (code >= others[i][0] && code <= others[i][1])
			return 0;
	return code >= least[length] && code <= 0x10ffff ? length : 0;
}

void ddp_text_add_bytes(struct ddp_text *text, const char *bytes, size_t length)
{
	char *out = grow_text(text, length);

	if (!out || length == 0)
		return;
	memcpy(out, bytes, length);
	text->length += length;
}

void ddp_text_add_fixed(struct ddp_text *text, const char *string)
{
	ddp_text_add_bytes(text, string, strlen(string));
}

void ddp_text_add_string(struct ddp_text *text, const char *string)
{
	size_t length = strlen(string);
	char *out = grow_text(text, length);

	if (!out)
		return;
	ddp_text_quote(memcpy(out, string, length + 1));
	text->length += length;
}

void ddp_text_add_json(struct ddp_text *text, const char *string)
{
	const char *at, *end;
	size_t length;

	if (!string) {
		ddp_text_add(text, "null");
		return;
	}
	ddp_text_add_bytes(text, "\"", 1);
	for (at = string; *at != '\0'; at = end) {
		for (end = at; (length = get_printable(end)) > 0 &&
		     *end != '"' && *end != '\\'; end += length)
			;
		ddp_text_add_bytes(text, at, (size_t)(end - at));
		if (*end == '\0')
			break;
		if (length > 0)
			ddp_text_add(text, "\\%c", *end);
		else if ((unsigned char)*end < ' ')
			ddp_text_add(text, "\\u%04x", (unsigned char)*end);
		else
			ddp_text_add(text, "?");
		end++;
	}
	ddp_text_add_bytes(text, "\"", 1);
}

void ddp_text_add_json_lines(struct ddp_text *text, const char *lines)
{
	const char *comma = "";
	size_t length;
	char *line;

	ddp_text_add(text, "[");
	for (; lines && *lines; lines += length + (lines[length] == '\n')) {
		length = strcspn(lines, "\n");
		line = strndup(lines, length);
		if (!line) {
			text->failed = true;
			return;
		}
		ddp_text_add(text, "%s", comma);
		ddp_text_add_json(text, line);
		comma = ", ";
		free(line);
	}
	ddp_text_add(text, "]");
}

size_t ddp_text_digits(uint32_t number, char *out)
{
	char digits[10], *at = digits + sizeof(digits);
	size_t length;

	do
		*--at = (char)('0' + number % 10);
	while ((number /= 10) > 0);
	length = (size_t)(digits + sizeof(digits) - at);
	memcpy(out, at, length);
	return length;
}

void ddp_text_add_number(struct ddp_text *text, uint32_t number)
{
	char *out = grow_text(text, 10);

	if (out)
		text->length += ddp_text_digits(number, out);
}

void ddp_text_repeat(struct ddp_text *text, size_t at, size_t length)
{
	char *out = grow_text(text, length);

	if (!out)
		return;
	memcpy(out, text->data + at, length);
	text->length += length;
}

void ddp_text_pad(struct ddp_text *text, size_t count)
{
	char *out = grow_text(text, count);

	if (!out)
		return;
	memset(out, ' ', count);
	text->length += count;
}

char *ddp_text_quote(char *text)
{
	size_t length;
	char *at;

	for (at = text; *at != '\0'; at += length) {
		length = get_printable(at);
		if (length > 0)
			continue;
		*at = '?';
		length = 1;
	}
	return text;
}

char *ddp_text_finish(struct ddp_text *text)
{
	char *end = grow_text(text, 0), *data = text->data;

	if (end) {
		*end = '\0';
	} else {
		free(data);
		data = NULL;
	}
	*text = (struct ddp_text){ 0 };
	return data;
}
