/* SPDX-License-Identifier: BSD-3-Clause */
/* Text that grows as it is written, and text that is safe to print. */
#ifndef DDP_UTIL_TEXT_H
#define DDP_UTIL_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ddp_text {
	char *data;		/* NULL at the beginning */
	size_t length, size;
	bool failed;		/* memory was short: data must not be used */
};

/* Codes for a terminal: what follows is bold, red, or as usual again. */
#define DDP_TEXT_BOLD "\033[1m"
#define DDP_TEXT_RED "\033[31m"
#define DDP_TEXT_PLAIN "\033[0m"

/* Begin with { 0 }. What is added after a failure is ignored. */
void ddp_text_add(struct ddp_text *text, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* The same; what is added is made printable by ddp_text_quote. */
void ddp_text_add_quoted(struct ddp_text *text, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* The same as ddp_text_add(text, "%s", string), but faster; for our own
 * strings. */
void ddp_text_add_fixed(struct ddp_text *text, const char *string);

/* Add bytes as they are, NULs among them too; NULL for none. */
void ddp_text_add_bytes(struct ddp_text *text, const char *bytes,
			size_t length);

/* The same as ddp_text_add_quoted(text, "%s", string), but faster. */
void ddp_text_add_string(struct ddp_text *text, const char *string);

/*
 * Add a string as JSON has it, in quotes; NULL: null. Of what ddp_text_quote
 * replaces, bytes above '~' become '?', and others are escaped.
 */
void ddp_text_add_json(struct ddp_text *text, const char *string);

/* Add lines as a JSON array of such strings; NULL: an empty one. */
void ddp_text_add_json_lines(struct ddp_text *text, const char *lines);

/* Write a number to out[10], without a NUL; returns its length. */
size_t ddp_text_digits(uint32_t number, char *out);

/* The same as ddp_text_add(text, "%u", number), but faster. */
void ddp_text_add_number(struct ddp_text *text, uint32_t number);

/* Add a copy of length bytes that text already has, from at on. */
void ddp_text_repeat(struct ddp_text *text, size_t at, size_t length);

/* Add count spaces. */
void ddp_text_pad(struct ddp_text *text, size_t count);

/*
 * Make text that others wrote safe to print: replace each byte by '?', in place,
 * that is neither printable ASCII nor part of a character of UTF-8; and controls.
 * So it cannot begin a line that looks like another program's message, be an
 * escape sequence to the terminal, or turn the direction of text. Whatever the
 * locale is, a terminal of today shows UTF-8. Returns text.
 */
char *ddp_text_quote(char *text);

/* The whole text, which the caller frees; NULL if memory was short. */
char *ddp_text_finish(struct ddp_text *text);

#endif
