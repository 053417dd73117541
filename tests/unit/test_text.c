/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>

#include "layout/error.h"
#include "layout/text.h"

Test(text, quote_leaves_printable_ascii_alone)
{
	char text[96];
	int c, n = 0;

	for (c = ' '; c <= '~'; c++)
		text[n++] = (char)c;
	text[n] = '\0';
	ddp_text_quote(text);
	for (c = ' '; c <= '~'; c++)
		cr_expect_eq(text[c - ' '], c);
	cr_expect_eq(strlen(text), 95);
}

/* One '?' for each byte, of which a character of UTF-8 has several. */
Test(text, quote_replaces_the_rest)
{
	char text[] = "a\nb\r\033[31m\177\t\302\233\377\001z";

	cr_expect_str_eq(ddp_text_quote(text), "a?b??[31m??????z");
}

Test(text, only_what_is_added_quoted_is_quoted)
{
	struct ddp_text text = { 0 };
	char *whole;

	ddp_text_add(&text, "head\n");
	ddp_text_add_quoted(&text, "%s\t%d", "a\nb", 7);
	ddp_text_add(&text, "\ttail\n");
	whole = ddp_text_finish(&text);
	cr_expect_str_eq(whole, "head\na?b?7\ttail\n");
	free(whole);
}

Test(text, every_error_is_printable)
{
	struct ddp_error error;

	ddp_error_set(&error, DDP_ERROR_ARGUMENT, "--ddp '%s'", "a\n\033[2J");
	cr_expect_str_eq(error.text, "--ddp 'a??[2J'");
}
