/* SPDX-License-Identifier: BSD-3-Clause */
/* The last bytes of a stream, in a ring. */
#define _GNU_SOURCE
#include "watch/tail.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

enum { RULER_MIN = 70 };	/* dashes, before and after a block */

void ddp_tail_add(struct ddp_tail *tail, const char *bytes, size_t size)
{
	size_t at, room;

	if (size > sizeof(tail->bytes)) {
		tail->total += size - sizeof(tail->bytes);
		bytes += size - sizeof(tail->bytes);
		size = sizeof(tail->bytes);
	}
	at = tail->total % sizeof(tail->bytes);
	room = sizeof(tail->bytes) - at;
	if (room > size)
		room = size;
	memcpy(tail->bytes + at, bytes, room);
	memcpy(tail->bytes, bytes + room, size - room);
	tail->total += size;
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

/* All that is in the ring, as a text; it may begin within a line. */
static void unroll(const struct ddp_tail *tail, char text[DDP_TAIL_SIZE])
{
	uint64_t total = tail->total, at;
	size_t length = 0;

	at = total < sizeof(tail->bytes) ? 0 : total - sizeof(tail->bytes) + 1;
	for (; at < total; at++, length++) {
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

void ddp_tail_get(const struct ddp_tail *tail, char text[DDP_WIRE_TAIL_SIZE])
{
	bool whole = tail->total < sizeof(tail->bytes);
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
	strcpy(text, from);
}
