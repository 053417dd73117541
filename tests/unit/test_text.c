/* SPDX-License-Identifier: BSD-3-Clause */
/* Texts that grow, and texts that are made printable. */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>

#include <stdlib.h>
#include <string.h>

#include "hooks.h"
#include "util/error.h"
#include "util/text.h"

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

/* One '?' for each byte; a character of UTF-8 has several bytes. */
Test(text, quote_replaces_the_rest)
{
	char text[] = "a\nb\r\033[31m\177\t\302\233\377\001z";

	cr_expect_str_eq(ddp_text_quote(text), "a?b??[31m??????z");
}

struct quote_row {
	char text[16], quoted[16];
};

/* RFC 3629 has four lengths: a row has the first and last character of one. */
ParameterizedTestParameters(text, quote)
{
	static struct quote_row table[] = {
		{ "gr\303\274\303\237er", "gr\303\274\303\237er" },
		{ "\302\240\337\277", "\302\240\337\277" },
		{ "\340\240\200\357\277\277", "\340\240\200\357\277\277" },
		{ "\355\237\277\356\200\200", "\355\237\277\356\200\200" },
		{ "\360\220\200\200", "\360\220\200\200" },
		{ "\364\217\277\277", "\364\217\277\277" },
		/* Controls: C1, and those of the direction of text */
		{ "\302\200\302\237", "????" },
		{ "\330\233\330\234\330\235", "\330\233??\330\235" },
		{ "\342\200\215\342\200\216", "\342\200\215???" },
		{ "\342\200\217\342\200\220", "???\342\200\220" },
		{ "\342\200\247\342\200\250", "\342\200\247???" },
		{ "\342\200\256\342\200\257", "???\342\200\257" },
		{ "\342\201\245\342\201\246", "\342\201\245???" },
		{ "\342\201\251\342\201\252", "???\342\201\252" },
		/* Longer than need be */
		{ "\300\257\301\277", "????" },
		{ "\340\237\277", "???" },
		{ "\360\217\277\277", "????" },
		/* Surrogates, and what is above Unicode */
		{ "\355\240\200\355\277\277", "??????" },
		{ "\364\220\200\200", "????" },
		{ "\365\200\200\200", "????" },
		/* Cut off, and continued without a beginning */
		{ "a\303", "a?" },
		{ "a\342\202", "a??" },
		{ "a\360\237\230", "a???" },
		{ "\342\202z", "??z" },
		{ "\342\202\303\274", "??\303\274" },
		{ "\200\274z", "??z" },
	};

	return cr_make_param_array(struct quote_row, table,
				   sizeof(table) / sizeof(table[0]));
}

ParameterizedTest(struct quote_row *row, text, quote)
{
	cr_expect_str_eq(ddp_text_quote(row->text), row->quoted);
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

static void expect(struct ddp_text *text, const char *expected)
{
	char *had = ddp_text_finish(text);

	cr_assert_not_null(had);
	cr_expect_str_eq(had, expected, "%s", had);
	free(had);
}

Test(text, grows)
{
	struct ddp_text text = { 0 };
	char *had;
	int i;

	expect(&text, "");
	for (i = 0; i < 1000; i++)
		ddp_text_add(&text, "%d%0300d,", i % 10, 0);
	had = ddp_text_finish(&text);
	cr_assert_not_null(had);
	cr_expect_eq(strlen(had), 302000);
	for (i = 0; i < 1000; i++) {
		cr_expect_eq(had[302 * i], '0' + i % 10);
		cr_expect_eq(strspn(had + 302 * i + 1, "0"), 300);
	}
	free(had);
}

Test(text, strings_are_quoted)
{
	struct ddp_text text = { 0 };

	ddp_text_add_string(&text, "a\n\x1b[2J\x7f\xc3\xa4~ ");
	ddp_text_add_string(&text, "");
	expect(&text, "a??[2J?\xc3\xa4~ ");
}

struct json {
	char text[16], json[32];
};

ParameterizedTestParameters(text, json)
{
	static struct json table[] = {
		{ "", "\"\"" },
		{ "n1", "\"n1\"" },
		{ "\"", "\"\\\"\"" },
		{ "a\"\\b\\", "\"a\\\"\\\\b\\\\\"" },
		{ "\n\x1b[", "\"\\u000a\\u001b[\"" },
		{ "\x7f\xe4", "\"??\"" },
		{ "\xc3\xa4\"\xc2\x9b", "\"\xc3\xa4\\\"??\"" },
	};

	return cr_make_param_array(struct json, table,
				   sizeof(table) / sizeof(table[0]));
}

ParameterizedTest(struct json *row, text, json)
{
	struct ddp_text text = { 0 };

	ddp_text_add_json(&text, row->text);
	expect(&text, row->json);
}

Test(text, numbers_and_repeats)
{
	struct ddp_text text = { 0 };

	ddp_text_add_number(&text, 0);
	ddp_text_pad(&text, 2);
	ddp_text_add_number(&text, UINT32_MAX);
	ddp_text_pad(&text, 0);
	ddp_text_repeat(&text, 1, 5);
	ddp_text_repeat(&text, 0, 0);
	expect(&text, "0  4294967295  429");
}

/* Whatever is added, and however long: there is room for the NUL, too. */
Test(text, has_room_for_the_nul)
{
	static const char bytes[600] = { 'a' };
	struct ddp_text text;
	size_t length;

	for (length = 0; length <= sizeof(bytes); length++) {
		text = (struct ddp_text){ 0 };
		ddp_text_add_bytes(&text, bytes, length);
		cr_assert_eq(text.length, length);
		cr_assert(length == 0 || text.size > length, "%zu", length);
		ddp_text_add(&text, "%*s", (int)length, "");
		cr_assert_eq(text.length, 2 * length);
		cr_assert_gt(text.size, 2 * length);
		ddp_text_pad(&text, length);
		cr_assert_gt(text.size, 3 * length);
		ddp_text_repeat(&text, 0, length);
		cr_assert_gt(text.size, 4 * length);
		free(ddp_text_finish(&text));
	}
}

Test(text, that_lacks_memory_is_null)
{
	struct ddp_text text = { 0 };

	ddp_text_add(&text, "a");
	hook_limit_memory(1000);
	ddp_text_pad(&text, 2000);
	ddp_text_add(&text, "b");
	cr_expect(text.failed);
	cr_expect_null(ddp_text_finish(&text));
	cr_expect_not(text.failed, "it can be used again");
}

Test(text, that_is_missing_is_null_in_json)
{
	struct ddp_text text = { 0 };

	ddp_text_add_json(&text, NULL);
	expect(&text, "null");
}

Test(text, of_lines_is_a_json_array)
{
	struct ddp_text text = { 0 };

	ddp_text_add_json_lines(&text, NULL);
	ddp_text_add_json_lines(&text, "");
	ddp_text_add_json_lines(&text, "a\n\n\"b\"\nc");
	expect(&text, "[][][\"a\", \"\", \"\\\"b\\\"\", \"c\"]");
}
