/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzzes what becomes of a task's output: whole lines with a label, and the tail
 * that a verdict shows. The first byte of the input is how much is read at a time.
 */
#include <stdbool.h>

#include "fuzz.h"
#include "proc/output.h"

enum { ROOM = 4 * DDP_LINES_MAX };

static const char label[] = "[1 n1] ";

/* Returns true for a byte that may be added or replaced where a line ends. */
static bool is_end(unsigned char byte)
{
	return byte == '\n' || byte == '\r';
}

/*
 * Each line has the label and is no longer than it may be, and without both, and
 * the ends of lines, their bytes are those of the input. Returns where that is.
 */
static const unsigned char *check_lines(const char *out, size_t length,
					const unsigned char *at,
					const unsigned char *end)
{
	size_t i, line;

	for (; length > 0; out += line, length -= line) {
		line = 1;
		while (!is_end((unsigned char)out[line - 1]) ||
		       (line < length && is_end((unsigned char)out[line])))
			CHECK(++line <= length);
		CHECK(line <= DDP_LINES_MAX);
		CHECK(line > strlen(label) &&
		      memcmp(out, label, strlen(label)) == 0);
		for (i = strlen(label); i < line; i++) {
			if (is_end((unsigned char)out[i]))
				continue;
			while (at < end && is_end(*at))
				at++;
			CHECK(at < end && *at++ == (unsigned char)out[i]);
		}
	}
	return at;
}

static void check_tail(const unsigned char *data, size_t size)
{
	struct ddp_tail tail = { 0 };
	char text[DDP_WIRE_TAIL_SIZE];

	ddp_tail_add(&tail, (const char *)data, size);
	CHECK(tail.total == size);
	memset(text, 0xa5, sizeof(text));
	ddp_tail_get(&tail, text);
	CHECK(memchr(text, '\0', sizeof(text)));
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	struct ddp_lines lines = { 0 };
	const unsigned char *at = data + 1, *end = data + size, *seen = at;
	char out[ROOM], last[DDP_LINES_MAX];
	size_t step, used, taken;

	if (size == 0)
		return 0;
	step = 1 + data[0];
	while (at < end) {
		used = 0;
		taken = ddp_lines_take(&lines, label, (const char *)at,
				       (size_t)(end - at) < step ?
				       (size_t)(end - at) : step, out,
				       sizeof(out), &used);
		CHECK(taken > 0 && used <= sizeof(out));
		seen = check_lines(out, used, seen, end);
		at += taken;
	}
	seen = check_lines(last, ddp_lines_end(&lines, last), seen, end);
	while (seen < end && is_end(*seen))
		seen++;
	CHECK(seen == end);
	check_tail(data + 1, size - 1);
	return 0;
}
