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

void ddp_text_add(struct ddp_text *text, const char *format, ...)
{
	va_list args;
	int length;

	va_start(args, format);
	length = vsnprintf(NULL, 0, format, args);
	va_end(args);
	if (text->failed || length < 0 || !text_grow(text, (size_t)length))
		return;
	va_start(args, format);
	vsnprintf(text->data + text->length, (size_t)length + 1, format, args);
	va_end(args);
	text->length += (size_t)length;
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
