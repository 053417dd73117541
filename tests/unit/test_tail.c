/* SPDX-License-Identifier: BSD-3-Clause */
/* The last bytes of a stream. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

#include "watch/tail.h"

static struct ddp_tail tail;
static char text[DDP_WIRE_TAIL_SIZE];

static const char *get(void)
{
	ddp_tail_get(&tail, text);
	return text;
}

static void add(const char *bytes)
{
	ddp_tail_add(&tail, bytes, strlen(bytes));
}

Test(tail, of_little_is_all_of_it)
{
	cr_expect_str_eq(get(), "");
	add("one\n");
	add("two");
	cr_expect_str_eq(get(), "one\ntwo");
	ddp_tail_add(&tail, "\0!\n", 3);
	cr_expect_str_eq(get(), "one\ntwo?!\n");
}

/* 1000 lines of 8 bytes: 511 whole ones fit before the NUL. */
Test(tail, of_much_begins_with_a_whole_line)
{
	char line[16];
	int i;

	for (i = 0; i < 1000; i++) {
		snprintf(line, sizeof(line), "line%03d\n", i);
		add(line);
	}
	cr_expect_eq(strlen(get()), 511 * 8);
	cr_expect_eq(strncmp(text, "line489\n", 8), 0);
	cr_expect_str_eq(text + 510 * 8, "line999\n");
}

Test(tail, of_one_long_line_is_its_end)
{
	static char bytes[3 * DDP_WIRE_TAIL_SIZE];

	memset(bytes, 'a', sizeof(bytes));
	bytes[sizeof(bytes) - 1] = '\n';
	add("before\n");
	ddp_tail_add(&tail, bytes, sizeof(bytes));
	cr_expect_eq(strlen(get()), DDP_WIRE_TAIL_SIZE - 1);
	cr_expect_eq(text[0], 'a');
	cr_expect_str_eq(text + DDP_WIRE_TAIL_SIZE - 3, "a\n");
}

Test(tail, is_the_same_however_it_is_added)
{
	static char bytes[2 * DDP_WIRE_TAIL_SIZE + 17], whole[sizeof(text)];
	size_t i, size;

	for (i = 0; i < sizeof(bytes); i++)
		bytes[i] = i % 61 == 0 ? '\n' : (char)('a' + i % 26);
	ddp_tail_add(&tail, bytes, sizeof(bytes));
	memcpy(whole, get(), sizeof(whole));
	for (size = 1; size < sizeof(bytes); size = 3 * size + 1) {
		memset(&tail, 0, sizeof(tail));
		for (i = 0; i < sizeof(bytes); i += size)
			ddp_tail_add(&tail, bytes + i, i + size < sizeof(bytes)
				     ? size : sizeof(bytes) - i);
		cr_expect_str_eq(get(), whole, "by %zu", size);
	}
}
