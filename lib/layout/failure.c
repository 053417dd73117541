/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finds the message in PyTorch's error file. It stands at the beginning, so
 * that this reads one string of JSON and needs no library for the rest.
 */
#include "layout/failure.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "layout/text.h"

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

/* Read the four digits of \uXXXX; what is no ASCII is not printable anyway. */
static bool read_code(const char **at, char *byte)
{
	char digits[5] = "", *end;
	unsigned long code;

	strncat(digits, *at, 4);
	code = strtoul(digits, &end, 16);
	if (strspn(digits, "0123456789abcdefABCDEF") != 4)
		return false;
	*at += 4;
	*byte = code < 0x80 ? (char)code : '?';
	return true;
}

/* Read what follows a backslash; false if JSON has no such. */
static bool read_escape(const char **at, char *byte)
{
	static const char names[] = "\"\\/bfnrt", bytes[] = "\"\\/\b\f\n\r\t";
	const char *name = **at ? strchr(names, **at) : NULL;

	if (name) {
		*byte = bytes[name - names];
		++*at;
		return true;
	}
	if (**at != 'u')
		return false;
	++*at;
	return read_code(at, byte);
}

/* Read a byte of a string; false at the end of its first line. */
static bool read_byte(const char **at, char *byte)
{
	if (**at == '\0' || **at == '"')
		return false;
	*byte = *(*at)++;
	if (*byte == '\\' && !read_escape(at, byte))
		return false;
	return *byte != '\n' && *byte != '\r' && *byte != '\0';
}

int ddp_failure_parse(const char *text, char message[DDP_FAILURE_SIZE])
{
	const char *at = enter(text), *inner = enter(at);
	char line[DDP_FAILURE_SIZE];
	size_t length = 0;

	at = skip(inner ? inner : at, "\"");
	while (at && length < sizeof(line) && read_byte(&at, &line[length]))
		length++;
	if (length == 0)
		return -1;
	if (length == sizeof(line))
		memcpy(line + --length - 3, "...", 3);
	line[length] = '\0';
	strcpy(message, ddp_text_quote(line));
	return 0;
}
