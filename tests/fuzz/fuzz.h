/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the fuzz targets share. Each .c file in this folder is a libFuzzer
 * program for one parser; its seeds are in corpus/NAME, and dict/NAME, where
 * there is one, has words that the parser knows. A target checks what must
 * hold of every answer, so that a wrong answer is found and not only a crash.
 * Read hostlist.c first: it is a short one.
 */
#ifndef DDP_FUZZ_FUZZ_H
#define DDP_FUZZ_FUZZ_H

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>
#include <wctype.h>

#include "util/error.h"

/* What libFuzzer calls with each input; a target defines it. */
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

/* Say what does not hold, and where, and crash. */
#define CHECK(holds) \
	((holds) ? (void)0 : fuzz_fail(__FILE__, __LINE__, #holds))

__attribute__((noreturn, unused))
static void fuzz_fail(const char *file, int line, const char *wanted)
{
	fprintf(stderr, "%s:%d: this does not hold: %s\n", file, line, wanted);
	abort();
}

/* A message is one line of printable bytes, and it says something. */
__attribute__((unused)) static void fuzz_check_line(const char *text)
{
	size_t left = strlen(text), length;
	mbstate_t state = { 0 };
	wchar_t letter;

	CHECK(left > 0 && setlocale(LC_CTYPE, "C.UTF-8"));
	for (; left > 0; left -= length, text += length) {
		length = mbrtowc(&letter, text, left, &state);
		CHECK(length > 0 && length <= left && !iswcntrl((wint_t)letter));
	}
}

__attribute__((unused))
static void fuzz_check_error(const struct ddp_error *error,
			     enum ddp_error_code code)
{
	CHECK(error->code == code);
	CHECK(memchr(error->text, '\0', sizeof(error->text)) != NULL);
	fuzz_check_line(error->text);
}

/* The input as a string; the caller frees it. */
__attribute__((unused))
static char *fuzz_text(const unsigned char *data, size_t size)
{
	char *text = malloc(size + 1);

	CHECK(text);
	if (size > 0)
		memcpy(text, data, size);
	text[size] = '\0';
	return text;
}

/* End the line at *text and step behind it; "" where no line is left. */
__attribute__((unused)) static char *fuzz_next_line(char **text)
{
	char *line = *text;

	*text += strcspn(line, "\n");
	if (**text != '\0')
		*(*text)++ = '\0';
	return line;
}

#endif
