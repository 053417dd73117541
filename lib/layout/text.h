/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Text that grows as it is written.
 */
#ifndef DDP_LAYOUT_TEXT_H
#define DDP_LAYOUT_TEXT_H

#include <stdbool.h>
#include <stddef.h>

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
