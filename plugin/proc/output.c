/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes whole lines of a stream, with a label, and keeps its last bytes. */
#define _GNU_SOURCE
#include "proc/output.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

/* ---- whole lines */

static void append(struct ddp_lines *lines, const char *bytes, size_t size)
{
	memcpy(lines->text + lines->length, bytes, size);
	lines->length += (uint32_t)size;
}

/*
 * Finds where to break a line that is too long: not within a UTF-8 character.
 */
static uint32_t find_break(const struct ddp_lines *lines)
{
	uint32_t at = lines->length - 1, back;

	for (back = 0; back < 3 && (lines->text[at] & 0xc0) == 0x80; back++)
		at--;
	return (lines->text[at] & 0xc0) == 0xc0 ? at : lines->length;
}

/* Returns the length of what is now in out. */
static size_t break_line(struct ddp_lines *lines, const char *label, char *out)
{
	uint32_t at = find_break(lines), rest = lines->length - at;
	char character[4];

	memcpy(character, lines->text + at, rest);
	memcpy(out, lines->text, at);
	out[at] = '\n';
	lines->length = 0;
	if (rest > 0) {
		append(lines, label, strlen(label));
		append(lines, character, rest);
	}
	return at + 1;
}

/* Returns true if a carriage return comes last, and no newline follows it. */
static bool is_returned(const struct ddp_lines *lines, char next)
{
	return lines->length > 0 && lines->text[lines->length - 1] == '\r' &&
	       next != '\n';
}

size_t ddp_lines_take(struct ddp_lines *lines, const char *label,
		      const char *bytes, size_t size, char *out, size_t room,
		      size_t *used)
{
	size_t i;

	*used = 0;
	for (i = 0; i < size && room - *used >= DDP_LINES_MAX; i++) {
		if (is_returned(lines, bytes[i])) {
			memcpy(out + *used, lines->text, lines->length);
			*used += lines->length;
			lines->length = 0;
		}
		if (lines->length == 0)
			append(lines, label, strlen(label));
		if (bytes[i] == '\n')
			*used += ddp_lines_end(lines, out + *used);
		else
			append(lines, bytes + i, 1);
		if (lines->length == DDP_LINES_MAX - 1)
			*used += break_line(lines, label, out + *used);
	}
	return i;
}

size_t ddp_lines_end(struct ddp_lines *lines, char out[DDP_LINES_MAX])
{
	uint32_t length = lines->length;

	lines->length = 0;
	if (length == 0)
		return 0;
	memcpy(out, lines->text, length);
	out[length] = '\n';
	return length + 1;
}

/* ---- the last bytes */

enum { RULER_MIN = 70 };	/* dashes, before and after a block */

static void push(struct ddp_tail *tail, char byte)
{
	tail->bytes[tail->end++ % sizeof(tail->bytes)] = byte;
	if (tail->end - tail->first > sizeof(tail->bytes)) {
		tail->first = tail->end - sizeof(tail->bytes);
		tail->cut = true;
	}
}

/*
 * A line that has overwritten those before it is all there is when it returns.
 * But of a script from Windows slurmstepd says "bad interpreter(/bin/bash\r): "
 * and why, where the carriage return is the reason.
 */
static void put(struct ddp_tail *tail, char byte)
{
	if (tail->returned && byte == ')') {
		push(tail, '\r');
	} else if (tail->returned && byte != '\n' && byte != '\r') {
		tail->end = tail->line;
		if (tail->first >= tail->end) {
			tail->first = tail->end;
			tail->cut = false;
		}
	}
	tail->returned = byte == '\r';
	if (tail->returned)
		return;
	push(tail, byte);
	if (byte == '\n')
		tail->line = tail->end;
}

void ddp_tail_add(struct ddp_tail *tail, const char *bytes, size_t size)
{
	size_t i = 0;

	tail->total += size;
	if (size > sizeof(tail->bytes)) {
		i = size - sizeof(tail->bytes);
		tail->end += i;
		tail->first = tail->line = tail->end;
		tail->returned = false;
		tail->cut = true;
	}
	for (; i < size; i++)
		put(tail, bytes[i]);
}

static bool begins(const char *at, const char *word)
{
	return strncmp(at, word, strlen(word)) == 0;
}

/* "(+0x13e1)[0x555d475883e1]", as backtrace_symbols of libc has it */
static bool ends_by_address(const char *line, size_t length)
{
	const char *at = line + length;

	if (length == 0 || *--at != ']')
		return false;
	while (at > line && isxdigit((unsigned char)at[-1]))
		at--;
	return at - line >= 3 && memcmp(at - 3, "[0x", 3) == 0;
}

/*
 * A frame of a stack: as libc has it, and with it Open MPI ("[n2:0164] [ 1]
 * ./m(+0x13e1)[0x555d475883e1]"); PyTorch's "frame #1: f + 0x57 (0x7f... in
 * x.so)"; "#1 0x55... in f" of sanitizers and debuggers; "@ 0x55... f" of glog.
 */
static bool is_frame(const char *line, size_t length)
{
	const char *at = line + strspn(line, " \t");

	if (ends_by_address(line, length))
		return true;
	if (begins(at, "frame #"))
		return isdigit((unsigned char)at[strlen("frame #")]);
	if (*at != '#' && *at != '@')
		return false;
	at++;
	at += strspn(at, "0123456789");
	return *at == ' ' && begins(at + strspn(at, " "), "0x");
}

/*
 * All that is in the ring, as a text; it may begin within a line. The tee may add to
 * it meanwhile, or have been killed while it did: first and end need not fit.
 */
static void unroll(const struct ddp_tail *tail, char text[DDP_TAIL_SIZE])
{
	uint64_t at = tail->first;
	size_t length = 0;

	if (tail->end - at == sizeof(tail->bytes))
		at++;
	for (; at < tail->end && length < DDP_TAIL_SIZE - 1; at++, length++) {
		text[length] = tail->bytes[at % sizeof(tail->bytes)];
		if (text[length] == '\0')
			text[length] = '?';
	}
	text[length] = '\0';
}

static bool is_ruler(const char *line, size_t length)
{
	return length >= RULER_MIN && strspn(line, "-") == length;
}

/* Take frames out, and what Open MPI says of MPI_Abort. Returns the length. */
static size_t drop_frames(char *text)
{
	bool in_abort = false, before;
	size_t length, kept = 0;
	char *at = text, *end;

	for (; *at; at = end) {
		length = strcspn(at, "\n");
		end = at + length + (at[length] == '\n');
		before = in_abort;
		if (is_ruler(at, length))
			in_abort = !before &&
				   begins(end, "MPI_ABORT was invoked on rank ");
		if (before || in_abort || is_frame(at, length))
			continue;
		memmove(text + kept, at, (size_t)(end - at));
		kept += (size_t)(end - at);
	}
	text[kept] = '\0';
	return kept;
}

/* Behind the end of a character of UTF-8 whose beginning was cut off. */
static char *skip_rest(char *at)
{
	int i;

	for (i = 0; i < 3 && (*at & 0xc0) == 0x80; i++)
		at++;
	return at;
}

void ddp_tail_get(const struct ddp_tail *tail, char text[DDP_WIRE_TAIL_SIZE])
{
	bool whole = !tail->cut &&
		     tail->end - tail->first < sizeof(tail->bytes);
	char all[DDP_TAIL_SIZE], *from = all, *first;
	size_t length;

	unroll(tail, all);
	length = drop_frames(all);
	if (length >= DDP_WIRE_TAIL_SIZE) {
		from += length - (DDP_WIRE_TAIL_SIZE - 1);
		whole = false;
	}
	first = whole ? NULL : strchr(from, '\n');
	if (first && first[1])
		from = first + 1;
	else if (!whole)
		from = skip_rest(from);
	strcpy(text, from);
}
