/* SPDX-License-Identifier: BSD-3-Clause */
/* Bytes become whole lines with a label, and the last of them are kept. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

#include "proc/output.h"

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

/* A bar prints its states one over the other, and no newline before an error. */
Test(tail, has_the_last_state_of_a_line)
{
	static char bar[100];
	int i;

	memset(bar, '#', sizeof(bar));
	bar[0] = '\r';
	bar[99] = '\0';
	add("before\r\n");
	for (i = 0; i < 1000; i++)
		add(bar);
	add("\r 1%\r\r 2%Trace");
	add("back:\n  a\r");
	cr_expect_str_eq(get(), "before\n 2%Traceback:\n  a");
	add("\nE: b");
	cr_expect_str_eq(get(), "before\n 2%Traceback:\n  a\nE: b");
	/* Bars of other threads go on. */
	add("\n");
	for (i = 0; i < 1000; i++)
		add(bar);
	cr_expect_eq(strncmp(get(), "before\n 2%Traceback:\n  a\nE: b\n###",
			     33), 0);
	cr_expect_eq(strlen(text), 30 + 98);
}

/* A long line leaves only the end of an earlier one, which is no line. */
Test(tail, keeps_a_return_that_is_the_reason)
{
	add("0%\r1%\r");
	add("bad interpreter(/bin/bash\r");
	add("): No such file\n");
	cr_expect_str_eq(get(), "bad interpreter(/bin/bash\r): No such file\n");
}

Test(tail, forgets_what_a_long_line_has_overwritten)
{
	static char bytes[DDP_TAIL_SIZE];
	int i;

	memset(bytes, 'a', sizeof(bytes));
	for (i = 0; i < 3; i++) {
		add("before\n");
		ddp_tail_add(&tail, bytes, sizeof(bytes) - i);
		add("\rb\nc");
		cr_expect_str_eq(get(), "b\nc");
	}
	ddp_tail_add(&tail, bytes, sizeof(bytes) / 2);
	cr_expect_eq(strlen(get()), DDP_WIRE_TAIL_SIZE - 1);
}

/* 9000 lines of 8 bytes: 511 whole ones fit before the NUL. */
Test(tail, of_much_begins_with_a_whole_line)
{
	char line[16];
	int i;

	for (i = 0; i < 9000; i++) {
		snprintf(line, sizeof(line), "line%03d\n", i % 1000);
		add(line);
	}
	cr_expect_eq(strlen(get()), 511 * 8);
	cr_expect_eq(strncmp(text, "line489\n", 8), 0);
	cr_expect_str_eq(text + 510 * 8, "line999\n");
}

/* As the programs print them; what is no frame stays, whatever it is like. */
Test(tail, is_without_frames_of_a_stack)
{
	static const char frames[] =
		"[n2:01562] [ 3] /lib/libc.so.6(abort+0xd3)[0x7fa411c2f472]\n"
		"[n2:01562] [11] /tmp/m(+0x1141)[0x55fe59e75141]\n"
		"./m(main+0x10)[0x55fe59e75141]\n"
		"frame #12: c10::Error::Error(int) + 0x57 (0x7f1 in libc10.so)\n"
		"    #0 0x55d0c0 in main m.c:3\n"
		"    @     0x7f8a2c3d  f()\n";
	static const char said[] =
		"  what():  x[0] is 3\n"
		"  File \"train.py\", line 9, in <module>\n"
		"RuntimeError: at [0x7f]: bad\n"
		"# 1 of 3\n"
		"frame # 3 is missing\n"
		"@ 0.5 s\n"
		"[0xab\n";
	int i;

	add("free(): invalid pointer\n");
	add(frames);
	add(said);
	/* More than the message takes, and less than the ring. */
	for (i = 0; i < 25; i++)
		add(frames);
	cr_expect_str_eq(get(), "free(): invalid pointer\n"
			 "  what():  x[0] is 3\n"
			 "  File \"train.py\", line 9, in <module>\n"
			 "RuntimeError: at [0x7f]: bad\n"
			 "# 1 of 3\nframe # 3 is missing\n@ 0.5 s\n[0xab\n");
}

/* As Open MPI 4.1 prints it; other blocks of its stay. */
Test(tail, is_without_the_block_of_mpi_abort)
{
	static const char ruler[] =
		"-------------------------------------"
		"-------------------------------------\n";

	add("a: disk full\n");
	add(ruler);
	add("MPI_ABORT was invoked on rank 0 in communicator MPI_COMM_WORLD\n"
	    "with errorcode 1.\n\nNOTE: invoking MPI_ABORT causes Open MPI\n");
	add(ruler);
	add("b\n");
	add(ruler);
	add("An error\n");
	add(ruler);
	add("---\n");
	cr_expect_eq(strncmp(get(), "a: disk full\nb\n----", 19), 0);
	cr_expect(strstr(text, "\nAn error\n---"));
	cr_expect_eq(strlen(text), strlen("a: disk full\nb\nAn error\n---\n") +
		     2 * strlen(ruler));
}

Test(tail, of_one_long_line_is_its_end)
{
	static char bytes[3 * DDP_TAIL_SIZE];

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
	static char bytes[2 * DDP_TAIL_SIZE + 17], whole[sizeof(text)];
	size_t i, size;

	for (i = 0; i < sizeof(bytes); i++)
		bytes[i] = i % 61 == 0 ? '\n' : i % 173 == 0 ? '\r' :
			   (char)('a' + i % 26);
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

/* The line is just as long as the text, with its NUL or without it. */
Test(tail, leaves_room_for_the_nul)
{
	static struct {
		char text[DDP_WIRE_TAIL_SIZE], behind;
	} got;
	static char bytes[DDP_TAIL_SIZE + 1];
	static const size_t sizes[] = {
		DDP_WIRE_TAIL_SIZE - 1, DDP_WIRE_TAIL_SIZE,
		DDP_WIRE_TAIL_SIZE + 1, DDP_TAIL_SIZE - 1, DDP_TAIL_SIZE,
		DDP_TAIL_SIZE + 1,
	};
	size_t i;

	memset(bytes, 'a', sizeof(bytes));
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		memset(&tail, 0, sizeof(tail));
		memset(&got, 'x', sizeof(got));
		ddp_tail_add(&tail, bytes, sizes[i]);
		ddp_tail_get(&tail, got.text);
		cr_expect_eq(got.behind, 'x', "of %zu bytes", sizes[i]);
		cr_expect_eq(strlen(got.text), DDP_WIRE_TAIL_SIZE - 1);
	}
}

Test(tail, a_character_that_is_cut_off_is_left_out_whole)
{
	static const char smile[] = "\360\237\231\202";
	int i, more;

	for (more = 0; more < 4; more++) {
		tail = (struct ddp_tail){ 0 };
		ddp_tail_add(&tail, "abc", (size_t)more);
		for (i = 0; i < DDP_TAIL_SIZE; i++)
			ddp_tail_add(&tail, smile, 4);
		ddp_tail_add(&tail, "abc\n", 4 - (size_t)more);
		cr_expect(strncmp(get(), smile, 4) == 0, "%d", more);
	}
}

/* The line that is cut off is left out; one that just fits is not. */
Test(tail, begins_with_the_first_whole_line_that_fits)
{
	static char bytes[DDP_WIRE_TAIL_SIZE + 8];
	size_t size = DDP_WIRE_TAIL_SIZE - 1;

	memset(bytes, 'a', sizeof(bytes));
	bytes[9] = '\n';
	ddp_tail_add(&tail, bytes, size);
	cr_expect_eq(strlen(get()), size);
	memset(&tail, 0, sizeof(tail));
	ddp_tail_add(&tail, bytes, size + 1);
	cr_expect_eq(strlen(get()), size + 1 - 10);
}

/* The tee writes it while the agent reads, and may be killed within. */
Test(tail, that_is_torn_is_read_within_its_bounds)
{
	struct ddp_tail torn = { .end = DDP_TAIL_SIZE + 1 };

	memset(torn.bytes, 'a', sizeof(torn.bytes));
	ddp_tail_get(&torn, text);
	cr_expect_lt(strlen(text), sizeof(text));
	torn.end = 9 * (uint64_t)DDP_TAIL_SIZE;
	ddp_tail_get(&torn, text);
	cr_expect_lt(strlen(text), sizeof(text));
	torn.first = torn.end + 1;
	ddp_tail_get(&torn, text);
	cr_expect_str_eq(text, "");
}
