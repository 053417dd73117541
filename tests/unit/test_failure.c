/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The message of an error file. What PyTorch writes is copied from its source,
 * torch/distributed/elastic/multiprocessing/errors/error_handler.py.
 */
#define _GNU_SOURCE
#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tool/tool.h"
#include "util/failure.h"

/* The message of a file; "none" where it has none. */
static const char *parse(const char *text)
{
	static char message[DDP_FAILURE_SIZE];

	strcpy(message, "kept");
	if (ddp_failure_parse(text, message) == 0)
		return message;
	cr_expect_str_eq(message, "kept");
	return "none";
}

Test(failure, of_record)
{
	cr_expect_str_eq(parse("{\"message\": {\"message\": \"ValueError: bad "
			       "batch\", \"extraInfo\": {\"py_callstack\": "
			       "\"Traceback\\n\", \"timestamp\": \"1\"}}}"),
			 "ValueError: bad batch");
	cr_expect_str_eq(parse("{\"message\": {\"message\": \"E: a\", "
			       "\"errorCode\": 1}}\n"), "E: a");
	cr_expect_str_eq(parse("{\"message\": \"E: a\", \"timestamp\": 1}"),
			 "E: a");
	cr_expect_str_eq(parse(" {\n\t\"message\" :\r\n{ \"message\":\"b\"}}"),
			 "b");
}

/* What was cut off behind it does not matter, as a file may be large. */
Test(failure, of_the_beginning_of_a_file)
{
	cr_expect_str_eq(parse("{\"message\": {\"message\": \"E: a\""), "E: a");
	cr_expect_str_eq(parse("{\"message\": {\"message\": \"E: a b"),
			 "E: a b");
}

Test(failure, escapes)
{
	cr_expect_str_eq(parse("{\"message\": \"\\\"a\\\\b\\/c\\\"\"}"),
			 "\"a\\b/c\"");
	cr_expect_str_eq(parse("{\"message\": \"a\\tb\\bc\\fd\"}"), "a?b?c?d");
	cr_expect_str_eq(parse("{\"message\": \"\\u0041\\u007a\\u00e9\\u20AC"
			       "\\ud83d\\ude00\\u001b[31m\"}"),
			 "Az\303\251\342\202\254\360\237\230\200?[31m");
	/* Halves of a pair */
	cr_expect_str_eq(parse("{\"message\": \"\\ud83dA\\ude00\\ud83d\\u0041\"}"),
			 "?A??A");
	cr_expect_str_eq(parse("{\"message\": \"caf\303\251 \033[31m\"}"),
			 "caf\303\251 ?[31m");
}

/* 252 bytes and the dots fit; the last of them would be the first of a character. */
Test(failure, is_not_cut_within_a_character)
{
	char text[512] = "{\"message\": \"a", *at = text + strlen(text);
	const char *had;
	int i;

	for (i = 0; i < 150; i++, at += 2)
		memcpy(at, "\303\251", 2);
	strcpy(at, "\"}");
	had = parse(text);
	cr_expect_eq(strlen(had), 1 + 2 * 125 + 3);
	cr_expect_str_eq(had + 249, "\303\251...");
}

Test(failure, one_line)
{
	cr_expect_str_eq(parse("{\"message\": \"CUDA error\\nCompile\"}"),
			 "CUDA error");
	cr_expect_str_eq(parse("{\"message\": \"a\\u000ab\"}"), "a");
	cr_expect_str_eq(parse("{\"message\": \"a\\rb\"}"), "a");
	cr_expect_str_eq(parse("{\"message\": \"a\nb\"}"), "a");
}

/* The string ends before an escape that JSON does not have. */
Test(failure, wrong_escapes)
{
	cr_expect_str_eq(parse("{\"message\": \"a\\xb\"}"), "a");
	cr_expect_str_eq(parse("{\"message\": \"a\\u12g4\"}"), "a");
	cr_expect_str_eq(parse("{\"message\": \"a\\u+123\"}"), "a");
	cr_expect_str_eq(parse("{\"message\": \"a\\u12"), "a");
	cr_expect_str_eq(parse("{\"message\": \"a\\"), "a");
	cr_expect_str_eq(parse("{\"message\": \"a\\u0000b\"}"), "a");
}

Test(failure, has_room_for_255)
{
	char text[600], wanted[DDP_FAILURE_SIZE];

	snprintf(text, sizeof(text), "{\"message\": \"%0255d\"}", 7);
	snprintf(wanted, sizeof(wanted), "%0255d", 7);
	cr_expect_str_eq(parse(text), wanted);
	snprintf(text, sizeof(text), "{\"message\": \"%0256d\"}", 7);
	memset(wanted, '0', 252);
	strcpy(wanted + 252, "...");
	cr_expect_str_eq(parse(text), wanted);
}

/* As PyTorch's ProcessFailure reads it: a message and whole seconds. */
Test(failure, writes_what_it_reads)
{
	char path[] = "/tmp/ddp-failure.XXXXXX", text[256] = "";
	int fd = mkstemp(path);
	long long now = 0;

	cr_assert_geq(fd, 0);
	cr_assert_eq(setenv("TORCHELASTIC_ERROR_FILE", path, 1), 0);
	tool_record_failure("a longer one, which is replaced by the next");
	tool_record_failure("no \"a\\b\": look there");
	cr_expect_gt(pread(fd, text, sizeof(text) - 1, 0), 0);
	cr_expect_str_eq(parse(text), "no \"a\\b\": look there");
	cr_expect_eq(sscanf(text, "{\"message\": \"no \\\"a\\\\b\\\": look "
			    "there\", \"timestamp\": %lld}", &now), 1);
	cr_expect_geq(now, time(NULL) - 60);
	close(fd);
	unlink(path);
	/* Nowhere to write to. */
	tool_record_failure("a");
	unlink(path);
	setenv("TORCHELASTIC_ERROR_FILE", "/nowhere/at/all", 1);
	tool_record_failure("a");
	unsetenv("TORCHELASTIC_ERROR_FILE");
	tool_record_failure("a");
}

Test(failure, of_anything_else)
{
	static const char *const texts[] = {
		"", " ", "{", "{}", "[]", "\"message\"", "null", "message: a",
		"{\"message\"", "{\"message\":", "{\"message\": ",
		"{\"message\": 1}", "{\"message\": null}", "{\"message\": {}}",
		"{\"message\": {\"message\": 1}}", "{\"message\": \"\"}",
		"{\"message\": \"\\n\"}", "{\"message\": \"",
		"{\"messages\": \"a\"}", "{\"a\": \"b\", \"message\": \"c\"}",
		"{\"message\": {\"a\": \"b\"}}", "{{\"message\": \"a\"}}",
	};
	size_t i;

	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		cr_expect_str_eq(parse(texts[i]), "none", "%s", texts[i]);
}
