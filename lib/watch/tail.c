/* SPDX-License-Identifier: BSD-3-Clause */
/* The last bytes of a stream, in a ring. */
#define _GNU_SOURCE
#include "watch/tail.h"

#include <string.h>

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

void ddp_tail_get(const struct ddp_tail *tail, char text[DDP_WIRE_TAIL_SIZE])
{
	uint64_t total = tail->total, at;
	size_t length = 0;
	char *first;

	at = total < sizeof(tail->bytes) ? 0 : total - sizeof(tail->bytes) + 1;
	for (; at < total; at++, length++) {
		text[length] = tail->bytes[at % sizeof(tail->bytes)];
		if (text[length] == '\0')
			text[length] = '?';
	}
	text[length] = '\0';
	if (total < sizeof(tail->bytes))
		return;
	first = strchr(text, '\n');
	if (first && first[1])
		memmove(text, first + 1, length - (size_t)(first - text));
}
