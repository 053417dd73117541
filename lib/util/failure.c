/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finds the message in PyTorch's error file. It stands at the beginning, so
 * that this reads one string of JSON and needs no library for the rest.
 */
#include "util/failure.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "util/text.h"

#define BLANKS " \t\r\n"

/* Step over a token and the blanks before it; NULL if it is not there. */
static const char *skip(const char *at, const char *token)
{
	size_t length = strlen(token);

	if (!at)
		return NULL;
	at += strspn(at, BLANKS);
	return strncmp(at, token, length) == 0 ? at + length : NULL;
}

/* Step over {"message": and find what it is. */
static const char *enter(const char *at)
{
	return skip(skip(skip(at, "{"), "\"message\""), ":");
}

/* Read the four digits of \uXXXX: a half of a character, or all of it. */
static bool read_unit(const char **at, uint32_t *unit)
{
	char digits[5] = "";

	strncat(digits, *at, 4);
	if (strspn(digits, "0123456789abcdefABCDEF") != 4)
		return false;
	*unit = (uint32_t)strtoul(digits, NULL, 16);
	*at += 4;
	return true;
}

/* Read what follows "\u". Half a character becomes '?'. */
static bool read_code(const char **at, uint32_t *code)
{
	const char *second;
	uint32_t low;

	if (!read_unit(at, code))
		return false;
	if (*code < 0xd800 || *code > 0xdfff)
		return true;
	second = *at + 2;
	if (*code < 0xdc00 && strncmp(*at, "\\u", 2) == 0 &&
	    read_unit(&second, &low) && low >= 0xdc00 && low <= 0xdfff) {
		*code = 0x10000 + ((*code - 0xd800) << 10) + (low - 0xdc00);
		*at = second;
	} else {
		*code = '?';
	}
	return true;
}

/* Write a character as UTF-8. Returns how many bytes it has. */
static size_t encode(uint32_t code, char bytes[4])
{
	size_t length = code < 0x80 ? 1 : code < 0x800 ? 2 :
			code < 0x10000 ? 3 : 4, i;

	for (i = length - 1; i > 0; i--, code >>= 6)
		bytes[i] = (char)(0x80 | (code & 0x3f));
	bytes[0] = (char)(length == 1 ? code : (0xf00U >> length | code) & 0xff);
	return length;
}

/* Read what follows a backslash; returns 0 if JSON has no such. */
static size_t read_escape(const char **at, char bytes[4])
{
	static const char names[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
	const char *name = **at ? strchr(names, **at) : NULL;
	uint32_t code;

	if (name) {
		*bytes = meant[name - names];
		++*at;
		return 1;
	}
	if (**at != 'u')
		return 0;
	++*at;
	return read_code(at, &code) ? encode(code, bytes) : 0;
}

/* Read some bytes of a string; returns 0 at the end of its first line. */
static size_t read_some(const char **at, char bytes[4])
{
	size_t length = 1;

	if (**at == '\0' || **at == '"')
		return 0;
	*bytes = *(*at)++;
	if (*bytes == '\\')
		length = read_escape(at, bytes);
	return *bytes == '\n' || *bytes == '\r' || *bytes == '\0' ? 0 : length;
}

int ddp_failure_parse(const char *text, char message[DDP_FAILURE_SIZE])
{
	const char *at = enter(text), *inner = enter(at);
	char line[DDP_FAILURE_SIZE + 4];
	size_t length = 0, some = 1;

	at = skip(inner ? inner : at, "\"");
	for (; at && some > 0 && length < DDP_FAILURE_SIZE; length += some)
		some = read_some(&at, line + length);
	if (length == 0)
		return -1;
	if (length >= DDP_FAILURE_SIZE) {
		length = DDP_FAILURE_SIZE - sizeof("...");
		while (length > 0 && (line[length] & 0xc0) == 0x80)
			length--;
		strcpy(line + length, "...");
		length += 3;
	}
	line[length] = '\0';
	strcpy(message, ddp_text_quote(line));
	return 0;
}
