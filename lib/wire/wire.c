/* SPDX-License-Identifier: BSD-3-Clause */
/* The frames of supervisor and agents, by a table of the fields of each kind. */
#define _GNU_SOURCE
#include "wire/wire.h"

#include <stdbool.h>
#include <string.h>

enum { FIELDS_MAX = 9, HEAD = 5 };	/* length and kind */

enum type { NONE, NUMBER, COUNT, TIME, BYTES, TEXT };

/* ns; no clock shows as much, and two of these have a difference. */
static const uint64_t time_max = INT64_MAX / 4;

struct field {
	enum type type;
	size_t at, size;
};

#define FIELD(type, name) \
	{ type, offsetof(struct ddp_wire, name), \
	  sizeof(((struct ddp_wire *)0)->name) }

static const struct field kinds[DDP_WIRE_KINDS][FIELDS_MAX] = {
	[DDP_WIRE_CHALLENGE] = { FIELD(BYTES, nonce) },
	[DDP_WIRE_HELLO] = {
		FIELD(BYTES, proof), FIELD(BYTES, nonce), FIELD(TEXT, node),
		FIELD(NUMBER, job_id), FIELD(NUMBER, step_id),
		FIELD(NUMBER, world_size), FIELD(NUMBER, count),
	},
	[DDP_WIRE_WELCOME] = { FIELD(BYTES, proof) },
	[DDP_WIRE_RANK] = {
		FIELD(NUMBER, rank), FIELD(NUMBER, pid), FIELD(TEXT, gpus),
		FIELD(TEXT, message),
	},
	[DDP_WIRE_END] = {
		FIELD(NUMBER, rank), FIELD(NUMBER, status), FIELD(TIME, at_ns),
		FIELD(TEXT, message), FIELD(TEXT, cause), FIELD(TEXT, tail),
	},
	[DDP_WIRE_ORPHANED] = { FIELD(TIME, at_ns) },
	[DDP_WIRE_STAYS] = {
		FIELD(NUMBER, rank), FIELD(NUMBER, pid), FIELD(TEXT, message),
	},
	[DDP_WIRE_PING] = { FIELD(TIME, at_ns) },
	[DDP_WIRE_PONG] = { FIELD(TIME, ping_ns), FIELD(TIME, at_ns) },
	[DDP_WIRE_SIGNAL] = { FIELD(NUMBER, status) },
	[DDP_WIRE_PULSE] = { FIELD(NUMBER, idle_ms) },
	[DDP_WIRE_DETAIL] = {
		FIELD(NUMBER, rank), FIELD(NUMBER, status),
		FIELD(NUMBER, idle_ms), FIELD(COUNT, beats),
		FIELD(NUMBER, depth), FIELD(NUMBER, behind),
		FIELD(TEXT, message), FIELD(TEXT, tail),
	},
	[DDP_WIRE_WARNING] = { FIELD(TEXT, message) },
	[DDP_WIRE_ERROR] = {
		FIELD(NUMBER, rank), FIELD(TIME, at_ns), FIELD(TEXT, message),
	},
};

static void put_number(unsigned char *to, uint64_t value, size_t bytes)
{
	while (bytes-- > 0) {
		to[bytes] = value & 0xff;
		value >>= 8;
	}
}

static uint64_t get_number(const unsigned char *from, size_t bytes)
{
	uint64_t value = 0;

	while (bytes-- > 0)
		value = value << 8 | *from++;
	return value;
}

/* Returns the bytes that the field takes in a frame. */
static size_t put_field(const struct field *field, const struct ddp_wire *wire,
			unsigned char *to)
{
	const void *from = (const char *)wire + field->at;
	size_t length = field->size;

	switch (field->type) {
	case NUMBER:
		put_number(to, *(const uint32_t *)from, length);
		return length;
	case COUNT:
	case TIME:
		put_number(to, *(const uint64_t *)from, length);
		return length;
	case TEXT:
		length = strnlen(from, length - 1);
		to[length] = '\0';
		memcpy(to, from, length);
		return length + 1;
	default:
		memcpy(to, from, length);
		return length;
	}
}

/* Returns the bytes that it takes; 0 if it is not whole, or no time. */
static size_t get_field(const struct field *field, const unsigned char *from,
			size_t size, struct ddp_wire *wire)
{
	void *to = (char *)wire + field->at;
	size_t length = field->size;

	if (field->type == TEXT) {
		const unsigned char *end = memchr(from, '\0', size);

		if (!end || (size_t)(end - from) >= length)
			return 0;
		length = (size_t)(end - from) + 1;
		memcpy(to, from, length);
		return length;
	}
	if (size < length)
		return 0;
	if (field->type == NUMBER)
		*(uint32_t *)to = (uint32_t)get_number(from, length);
	else if (field->type == COUNT || field->type == TIME)
		*(uint64_t *)to = get_number(from, length);
	else
		memcpy(to, from, length);
	return field->type == TIME && *(uint64_t *)to > time_max ? 0 : length;
}

size_t ddp_wire_encode(const struct ddp_wire *wire,
		       unsigned char frame[DDP_WIRE_FRAME_MAX])
{
	const struct field *field = kinds[wire->kind];
	size_t length = HEAD;

	frame[4] = (unsigned char)wire->kind;
	for (; field->type != NONE; field++)
		length += put_field(field, wire, frame + length);
	put_number(frame, length, 4);
	return length;
}

/* The fields of a frame; whether they are just what it has. */
static bool get_fields(const unsigned char *bytes, size_t size,
		       struct ddp_wire *wire)
{
	const struct field *field = kinds[wire->kind];
	size_t length;

	for (; field->type != NONE; field++) {
		length = get_field(field, bytes, size, wire);
		if (length == 0)
			return false;
		bytes += length;
		size -= length;
	}
	return size == 0;
}

int ddp_wire_decode(const unsigned char *bytes, size_t size,
		    struct ddp_wire *wire)
{
	size_t length;

	if (size < HEAD)
		return 0;
	length = get_number(bytes, 4);
	if (length < HEAD || length > DDP_WIRE_FRAME_MAX || bytes[4] == 0 ||
	    bytes[4] >= DDP_WIRE_KINDS)
		return -1;
	if (size < length)
		return 0;
	memset(wire, 0, sizeof(*wire));
	wire->kind = bytes[4];
	return get_fields(bytes + HEAD, length - HEAD, wire) ? (int)length : -1;
}
