/* SPDX-License-Identifier: BSD-3-Clause */
/* Bytes become whole lines with a label. */
#include <criterion/criterion.h>

#include <string.h>

#include "proc/lines.h"

#define LABEL "[3 n1] "

static struct ddp_lines lines;
static char out[64 * DDP_LINES_MAX];
static size_t length;

static void take(const char *bytes, size_t size)
{
	size_t used;

	cr_assert_eq(ddp_lines_take(&lines, LABEL, bytes, size, out + length,
				    sizeof(out) - length - 1, &used), size);
	length += used;
	out[length] = '\0';
}

static void end(void)
{
	length += ddp_lines_end(&lines, out + length);
	out[length] = '\0';
}

Test(lines, get_a_label_when_they_are_whole)
{
	take("a\n\nb", 4);
	cr_expect_str_eq(out, LABEL "a\n" LABEL "\n");
	take("c\r\nd\n", 5);
	cr_expect_str_eq(out, LABEL "a\n" LABEL "\n" LABEL "bc\r\n" LABEL "d\n");
	end();
	cr_expect_eq(length, strlen(LABEL "a\n" LABEL "\n" LABEL "bc\r\n" LABEL
				    "d\n"));
}

Test(lines, that_are_not_whole_end_with_the_stream)
{
	take("a", 1);
	cr_expect_str_eq(out, "");
	end();
	end();
	cr_expect_str_eq(out, LABEL "a\n");
}

Test(lines, keep_all_bytes)
{
	char bytes[256];
	int i;

	for (i = 0; i < 256; i++)
		bytes[i] = (char)i;
	bytes['\n'] = 'n';
	bytes['\r'] = 'r';
	take(bytes, sizeof(bytes));
	end();
	cr_expect_eq(length, strlen(LABEL) + sizeof(bytes) + 1);
	cr_expect_eq(memcmp(out + strlen(LABEL), bytes, sizeof(bytes)), 0);
}

/* A progress bar prints each state over the one before it. */
Test(lines, end_at_a_carriage_return_too)
{
	take("\r 0%", 4);
	cr_expect_str_eq(out, LABEL "\r");
	take("\r 9%\r", 5);
	cr_expect_str_eq(out, LABEL "\r" LABEL " 0%\r");
	take("\n\r", 2);
	cr_expect_str_eq(out, LABEL "\r" LABEL " 0%\r" LABEL " 9%\r\n");
	take("\r\n", 2);
	cr_expect_str_eq(out, LABEL "\r" LABEL " 0%\r" LABEL " 9%\r\n" LABEL
			 "\r" LABEL "\r\n");
	take("b\r", 2);
	end();
	cr_expect_str_eq(strrchr(out, '['), LABEL "b\r\n");
}

/* 992 bytes fit between the label and the end. */
Test(lines, that_are_too_long_are_broken)
{
	static char bytes[2001];
	const char *at = out;

	memset(bytes, 'x', 2000);
	bytes[2000] = '\n';
	take(bytes, 2001);
	cr_expect_eq(length, 3 * (strlen(LABEL) + 1) + 2000);
	cr_expect_eq(strcspn(at, "\n"), 999);
	cr_expect_eq(strncmp(at + 1000, LABEL "x", 8), 0);
	cr_expect_eq(strcspn(at + 1000, "\n"), 999);
	cr_expect_eq(strcspn(at + 2000, "\n"), strlen(LABEL) + 16);
}

/* The euro sign has three bytes; 992 is not a multiple of 3. */
Test(lines, are_not_broken_within_a_character)
{
	char bytes[3 * 500];
	size_t i, euros = 0;
	const char *at;

	for (i = 0; i < sizeof(bytes); i += 3)
		memcpy(bytes + i, "\xe2\x82\xac", 3);
	take(bytes, sizeof(bytes));
	end();
	for (at = out; *at; at += strcspn(at, "\n") + 1) {
		cr_assert_eq(strncmp(at, LABEL, strlen(LABEL)), 0);
		at += strlen(LABEL);
		for (; *at != '\n'; at += 3, euros++)
			cr_assert_eq(strncmp(at, "\xe2\x82\xac", 3), 0);
	}
	cr_expect_eq(euros, 500);
}

/*
 * Characters of each length, at each place: 992 bytes fit. What a line lacks is
 * the character that would not have fitted.
 */
Test(lines, are_not_broken_within_a_character_of_any_length)
{
	static const char *const characters[] = {
		"\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x98\x80",
	};
	char bytes[992 + 4];
	size_t kind, whole, rest, i;

	for (kind = 0; kind < 3; kind++) {
		whole = strlen(characters[kind]);
		for (rest = 0; rest < whole; rest++) {
			memset(&lines, 0, sizeof(lines));
			memset(bytes, 'x', 992 - rest);
			memcpy(bytes + 992 - rest, characters[kind], whole);
			length = 0;
			take(bytes, 992 - rest + whole);
			end();
			i = strlen(LABEL) + 992 - rest;
			cr_assert_eq(strcspn(out, "\n"), i, "%zu %zu", kind,
				     rest);
			cr_expect_eq(strncmp(out + i + 1, LABEL,
					     strlen(LABEL)), 0);
			cr_expect_eq(strncmp(out + i + 1 + strlen(LABEL),
					     characters[kind], whole), 0);
			cr_expect_eq(length, i + 1 + strlen(LABEL) + whole + 1);
		}
	}
}

/* No character has five bytes: it is broken like any other text. */
Test(lines, of_what_is_no_text_are_full)
{
	char bytes[992];

	memset(bytes, 'x', 987);
	memcpy(bytes + 987, "\xe2\x82\x82\x82\x82", 5);
	take(bytes, sizeof(bytes));
	cr_expect_eq(strcspn(out, "\n"), 999);
	cr_expect_eq(memcmp(out + 7, bytes, sizeof(bytes)), 0);
}

Test(lines, wait_for_room)
{
	size_t used;

	cr_expect_eq(ddp_lines_take(&lines, LABEL, "a\nb\n", 4, out,
				    DDP_LINES_MAX, &used), 2);
	cr_expect_eq(used, strlen(LABEL) + 2);
	cr_expect_eq(ddp_lines_take(&lines, LABEL, "b\n", 2, out,
				    DDP_LINES_MAX - 1, &used), 0);
	cr_expect_eq(used, 0);
}
