/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The frames of supervisor and agents, by a table of the fields of each kind,
 * and their way in and out of a TCP socket.
 */
#define _GNU_SOURCE
#include "wire/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

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

/* ---- the connection */

enum { OUT_MAX = 1 << 20 };

struct ddp_link {
	int fd;
	unsigned char in[2 * DDP_WIRE_FRAME_MAX];
	size_t in_length;
	unsigned char *out;		/* what is kept; NULL: nothing ever */
	size_t out_length, out_size;
};

/* Errors are ignored: they show when the socket is used. */
static void set_up(int fd)
{
	static const struct {
		int level, name, value;
	} options[] = {
		{ IPPROTO_TCP, TCP_NODELAY, 1 },
		{ IPPROTO_TCP, TCP_USER_TIMEOUT, DDP_LINK_SILENCE_MS },
		{ IPPROTO_TCP, TCP_KEEPIDLE, 1 },
		{ IPPROTO_TCP, TCP_KEEPINTVL, 1 },
		{ SOL_SOCKET, SO_KEEPALIVE, 1 },
	};
	size_t i;

	fcntl(fd, F_SETFD, FD_CLOEXEC);
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
	for (i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		setsockopt(fd, options[i].level, options[i].name,
			   &options[i].value, sizeof(options[i].value));
}

struct ddp_link *ddp_link_create(int fd)
{
	struct ddp_link *link = calloc(1, sizeof(*link));

	if (!link) {
		close(fd);
		return NULL;
	}
	link->fd = fd;
	set_up(fd);
	return link;
}

void ddp_link_destroy(struct ddp_link *link)
{
	if (!link)
		return;
	close(link->fd);
	free(link->out);
	free(link);
}

int ddp_link_fd(const struct ddp_link *link)
{
	return link->fd;
}

short ddp_link_events(const struct ddp_link *link)
{
	return link->out_length > 0 ? POLLIN | POLLOUT : POLLIN;
}

int ddp_link_flush(struct ddp_link *link)
{
	ssize_t sent = 0;

	while (link->out_length > 0) {
		sent = send(link->fd, link->out, link->out_length,
			    MSG_NOSIGNAL);
		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0)
			return errno == EAGAIN ? 0 : -1;
		link->out_length -= (size_t)sent;
		memmove(link->out, link->out + sent, link->out_length);
	}
	return 0;
}

static int make_room(struct ddp_link *link, size_t length)
{
	size_t size = link->out_size ? link->out_size : DDP_WIRE_FRAME_MAX;
	unsigned char *out;

	while (size < link->out_length + length)
		size *= 2;
	if (size > OUT_MAX) {
		errno = ENOBUFS;
		return -1;
	}
	if (size == link->out_size)
		return 0;
	out = realloc(link->out, size);
	if (!out)
		return -1;
	link->out = out;
	link->out_size = size;
	return 0;
}

int ddp_link_send(struct ddp_link *link, const struct ddp_wire *wire)
{
	unsigned char frame[DDP_WIRE_FRAME_MAX];
	size_t length = ddp_wire_encode(wire, frame);

	if (make_room(link, length) < 0)
		return -1;
	memcpy(link->out + link->out_length, frame, length);
	link->out_length += length;
	return ddp_link_flush(link);
}

/* Returns 1 if there is more to decode; 0; -1. */
static int read_more(struct ddp_link *link)
{
	ssize_t got;

	do
		got = recv(link->fd, link->in + link->in_length,
			   sizeof(link->in) - link->in_length, 0);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return errno == EAGAIN ? 0 : -1;
	if (got == 0) {
		errno = 0;
		return -1;
	}
	link->in_length += (size_t)got;
	return 1;
}

int ddp_link_receive(struct ddp_link *link, struct ddp_wire *wire)
{
	int length, rc = 1;

	for (;;) {
		length = ddp_wire_decode(link->in, link->in_length, wire);
		if (length != 0)
			break;
		rc = read_more(link);
		if (rc <= 0)
			return rc;
	}
	if (length < 0) {
		errno = EPROTO;
		return -1;
	}
	link->in_length -= (size_t)length;
	memmove(link->in, link->in + length, link->in_length);
	return 1;
}
