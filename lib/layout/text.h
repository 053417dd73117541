/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Text that grows as it is written.
 */
#ifndef DDP_LAYOUT_TEXT_H
#define DDP_LAYOUT_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ddp_text {
	char *data;		/* NULL while there is none */
	size_t length, size;
	bool failed;		/* memory was short: data is of no use */
};

/* Begin with { 0 }. What is added after a failure is ignored. */
void ddp_text_add(struct ddp_text *text, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* The same, with what is added made printable by ddp_text_quote. */
void ddp_text_add_quoted(struct ddp_text *text, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* As ddp_text_add_quoted(text, "%s", string), but at once. */
void ddp_text_add_string(struct ddp_text *text, const char *string);

/* Add a string as JSON's, in quotation marks; a byte above '~' becomes '?'. */
void ddp_text_add_json(struct ddp_text *text, const char *string);

/* As ddp_text_add(text, "%u", number), but at once. */
void ddp_text_add_number(struct ddp_text *text, uint32_t number);

/* Add length bytes of text itself that begin at at. */
void ddp_text_repeat(struct ddp_text *text, size_t at, size_t length);

/* As many spaces. */
void ddp_text_pad(struct ddp_text *text, size_t count);

/*
 * Make text that others wrote safe to print: in place, each byte that is not
 * printable ASCII becomes a '?', so that it can neither begin a line that looks
 * like somebody else's message nor reach the terminal as an escape sequence.
 * Returns text.
 */
char *ddp_text_quote(char *text);

/* The whole text, never NULL unless memory was short; the caller frees it. */
char *ddp_text_finish(struct ddp_text *text);

#endif
