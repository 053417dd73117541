/* SPDX-License-Identifier: BSD-3-Clause */
#include "layout/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* Room for length bytes more and a NUL. */
static bool text_grow(struct ddp_text *text, size_t length)
{
	size_t size = text->size > 0 ? text->size : 256;
	char *data;

	while (size - text->length <= length)
		size *= 2;
	data = size > text->size ? realloc(text->data, size) : text->data;
	if (data == NULL) {
		text->failed = true;
		return false;
	}
	text->data = data;
	text->size = size;
	return true;
}

/* Returns what was added; "" where nothing could be. */
static char *text_add(struct ddp_text *text, const char *format, va_list args)
	__attribute__((format(printf, 2, 0)));

static char *text_add(struct ddp_text *text, const char *format, va_list args)
{
	static char nothing[1];
	va_list again;
	char *added;
	int length;

	va_copy(again, args);
	length = vsnprintf(NULL, 0, format, again);
	va_end(again);
	if (text->failed || length < 0 || !text_grow(text, (size_t)length))
		return nothing;
	added = text->data + text->length;
	vsnprintf(added, (size_t)length + 1, format, args);
	text->length += (size_t)length;
	return added;
}

void ddp_text_add(struct ddp_text *text, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	text_add(text, format, args);
	va_end(args);
}

void ddp_text_add_quoted(struct ddp_text *text, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	ddp_text_quote(text_add(text, format, args));
	va_end(args);
}

void ddp_text_pad(struct ddp_text *text, size_t count)
{
	ddp_text_add(text, "%*s", (int)count, "");
}

char *ddp_text_quote(char *text)
{
	char *at;

	for (at = text; *at != '\0'; at++)
		if (*at < ' ' || *at > '~')
			*at = '?';
	return text;
}

char *ddp_text_finish(struct ddp_text *text)
{
	char *data;

	ddp_text_add(text, "%s", "");
	data = text->data;
	if (text->failed) {
		free(data);
		data = NULL;
	}
	*text = (struct ddp_text){ 0 };
	return data;
}
