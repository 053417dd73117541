/* SPDX-License-Identifier: BSD-3-Clause */
/* The frames of supervisor and agents, and their connection, over the loopback. */
#define _GNU_SOURCE
#include <criterion/criterion.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "wire/wire.h"

/* A message of this kind in which each field has another value. */
static struct ddp_wire make(enum ddp_wire_kind kind)
{
	struct ddp_wire wire = {
		.kind = kind, .node = "n1", .job_id = 0x01020304,
		.step_id = 5, .world_size = 6, .count = 7, .rank = 8,
		.pid = 9, .status = 0x0a0b, .gpus = "0,1",
		.at_ns = UINT64_C(0x1112131415161718), .ping_ns = 12,
		.idle_ms = 13,
		.beats = UINT64_C(0x2122232425262728), .depth = 14,
		.behind = 15,
		.message = "E: a", .cause = "out of memory", .tail = "b\nc\n",
	};

	memset(wire.nonce, 0xd1, sizeof(wire.nonce));
	memset(wire.proof, 0xe2, sizeof(wire.proof));
	return wire;
}

/* What each kind has, as wire.h says it. */
static struct ddp_wire keep(const struct ddp_wire *wire)
{
	struct ddp_wire kept = { .kind = wire->kind };

#define KEEP(name) memcpy(&kept.name, &wire->name, sizeof(kept.name))
	switch (wire->kind) {
	case DDP_WIRE_CHALLENGE:
		KEEP(nonce);
		break;
	case DDP_WIRE_HELLO:
		KEEP(proof), KEEP(nonce), KEEP(node), KEEP(job_id);
		KEEP(step_id), KEEP(world_size), KEEP(count);
		break;
	case DDP_WIRE_WELCOME:
		KEEP(proof);
		break;
	case DDP_WIRE_RANK:
		KEEP(rank), KEEP(pid), KEEP(gpus), KEEP(message);
		break;
	case DDP_WIRE_END:
		KEEP(rank), KEEP(status), KEEP(at_ns), KEEP(message);
		KEEP(cause), KEEP(tail);
		break;
	case DDP_WIRE_ORPHANED:
	case DDP_WIRE_PING:
		KEEP(at_ns);
		break;
	case DDP_WIRE_STAYS:
		KEEP(rank), KEEP(pid), KEEP(message);
		break;
	case DDP_WIRE_WARNING:
		KEEP(message);
		break;
	case DDP_WIRE_ERROR:
		KEEP(rank), KEEP(at_ns), KEEP(message);
		break;
	case DDP_WIRE_PONG:
		KEEP(ping_ns), KEEP(at_ns);
		break;
	case DDP_WIRE_SIGNAL:
		KEEP(status);
		break;
	case DDP_WIRE_PULSE:
		KEEP(idle_ms);
		break;
	case DDP_WIRE_DETAIL:
		KEEP(rank), KEEP(status), KEEP(idle_ms), KEEP(beats);
		KEEP(depth), KEEP(behind), KEEP(message), KEEP(tail);
		break;
	default:
		break;
	}
	return kept;
}

static void expect_bytes(const struct ddp_wire *wire, const char *bytes,
			 size_t size)
{
	unsigned char frame[DDP_WIRE_FRAME_MAX];

	cr_expect_eq(ddp_wire_encode(wire, frame), size);
	cr_expect_arr_eq(frame, bytes, size);
}

#define EXPECT(kind, bytes) \
	do { \
		struct ddp_wire expected = make(kind); \
		expect_bytes(&expected, bytes, sizeof(bytes) - 1); \
	} while (0)

/*
 * Written down by hand from the words of wire.h. Other bytes need another
 * version, or agents of nodes that are not upgraded yet end their ranks.
 */
Test(wire, bytes)
{
	cr_expect_str_eq(DDP_WIRE_VERSION, "1");
	EXPECT(DDP_WIRE_DONE, "\0\0\0\5\6");
	EXPECT(DDP_WIRE_KILL, "\0\0\0\5\14");
	EXPECT(DDP_WIRE_SIGNAL, "\0\0\0\11\13\0\0\12\13");
	EXPECT(DDP_WIRE_PING, "\0\0\0\15\11\21\22\23\24\25\26\27\30");
	EXPECT(DDP_WIRE_PONG, "\0\0\0\25\12\0\0\0\0\0\0\0\14"
	       "\21\22\23\24\25\26\27\30");
	EXPECT(DDP_WIRE_RANK, "\0\0\0\26\4\0\0\0\10\0\0\0\11" "0,1\0E: a\0");
	EXPECT(DDP_WIRE_STAYS, "\0\0\0\22\10\0\0\0\10\0\0\0\11" "E: a\0");
	EXPECT(DDP_WIRE_EXPLAIN, "\0\0\0\5\16");
	EXPECT(DDP_WIRE_ERRORS, "\0\0\0\5\20");
	EXPECT(DDP_WIRE_ERROR, "\0\0\0\26\21\0\0\0\10"
	       "\21\22\23\24\25\26\27\30" "E: a\0");
	EXPECT(DDP_WIRE_WARNING, "\0\0\0\12\22" "E: a\0");
	EXPECT(DDP_WIRE_PULSE, "\0\0\0\11\15\0\0\0\15");
	EXPECT(DDP_WIRE_DETAIL, "\0\0\0\53\17\0\0\0\10\0\0\12\13"
	       "\0\0\0\15\41\42\43\44\45\46\47\50\0\0\0\16"
	       "\0\0\0\17"
	       "E: a\0b\nc\n\0");
	EXPECT(DDP_WIRE_END, "\0\0\0\55\5\0\0\0\10\0\0\12\13"
	       "\21\22\23\24\25\26\27\30" "E: a\0out of memory\0b\nc\n\0");
}

Test(wire, each_kind_reads_back)
{
	unsigned char frame[DDP_WIRE_FRAME_MAX];
	struct ddp_wire wire, wanted, got;
	int kind, length;

	for (kind = 1; kind < DDP_WIRE_KINDS; kind++) {
		wire = make(kind);
		wanted = keep(&wire);
		length = (int)ddp_wire_encode(&wire, frame);
		memset(&got, 0xa5, sizeof(got));
		cr_expect_eq(ddp_wire_decode(frame, sizeof(frame), &got),
			     length, "kind %d", kind);
		cr_expect(memcmp(&got, &wanted, sizeof(got)) == 0, "kind %d",
			  kind);
	}
}

Test(wire, a_part_is_not_yet_a_frame)
{
	unsigned char frame[DDP_WIRE_FRAME_MAX];
	struct ddp_wire wire, got;
	size_t length, i;
	int kind;

	for (kind = 1; kind < DDP_WIRE_KINDS; kind++) {
		wire = make(kind);
		length = ddp_wire_encode(&wire, frame);
		for (i = 0; i < length; i++)
			cr_expect_eq(ddp_wire_decode(frame, i, &got), 0,
				     "%zu bytes of kind %d", i, kind);
	}
}

/* The largest frame has room, and texts end where their room does. */
Test(wire, full)
{
	unsigned char frame[DDP_WIRE_FRAME_MAX];
	struct ddp_wire wire = make(DDP_WIRE_END), got;
	int length;

	memset(wire.message, 'm', sizeof(wire.message));
	memset(wire.cause, 'c', sizeof(wire.cause));
	memset(wire.tail, 't', sizeof(wire.tail));
	length = (int)ddp_wire_encode(&wire, frame);
	cr_expect_eq(length, 5 + 4 + 4 + 8 + 256 + 256 + 4096);
	cr_expect_eq(ddp_wire_decode(frame, sizeof(frame), &got), length);
	cr_expect_eq(strlen(got.message), 255);
	cr_expect_eq(strlen(got.cause), 255);
	cr_expect_eq(strlen(got.tail), 4095);
}

static int decode(const char *bytes, size_t size)
{
	struct ddp_wire wire;

	return ddp_wire_decode((const unsigned char *)bytes, size, &wire);
}

#define DECODE(bytes) decode(bytes, sizeof(bytes) - 1)

Test(wire, what_is_no_frame)
{
	char text[DDP_WIRE_FRAME_MAX] = "";

	cr_expect_eq(DECODE("\0\0\0\5\0"), -1, "kind 0");
	cr_expect_eq(DECODE("\0\0\0\5\15"), -1, "kind 13");
	cr_expect_eq(DECODE("\0\0\0\4\6"), -1, "shorter than its head");
	cr_expect_eq(DECODE("\0\0\0\0\6"), -1, "length 0");
	cr_expect_eq(DECODE("\0\0\40\1\6"), -1, "length 8193");
	cr_expect_eq(DECODE("\377\377\377\377\6"), -1, "length 2^32 - 1");
	cr_expect_eq(DECODE("\0\0\0\6\6\0"), -1, "a byte too many");
	cr_expect_eq(DECODE("\0\0\0\10\13\0\0\0"), -1, "a byte too few");
	cr_expect_eq(DECODE("\0\0\0\21\4\0\0\0\1\0\0\0\2\0" "0,1"), -1,
		     "no NUL");
	cr_expect_eq(DECODE("\0\0\0\25\12\0\0\0\0\0\0\0\14"
			    "\200\0\0\0\0\0\0\0"), -1, "a time before 0");
	cr_expect_eq(DECODE("\0\0\0\25\12\0\0\0\0\0\0\0\14"
			    "\40\0\0\0\0\0\0\0"), -1, "one in 73 years");
	cr_expect_eq(DECODE("\0\0\0\51\17\0\0\0\10\0\0\12\13\0\0\0\15"
			    "\377\377\377\377\377\377\377\377\0\0\0\16"
			    "\0\0\0\17E: a\0b\n\0"), 41,
		     "a count may be any number");
	cr_expect_eq(DECODE("HTTP/1.1 400 Bad Request\r\n"), -1, "another");

	/* A text of 256 bytes has no room. */
	memcpy(text, "\0\0\1\17\4\0\0\0\1\0\0\0\2", 13);
	memset(text + 13, '1', 256);
	cr_expect_eq(decode(text, 13 + 258), -1, "a text that is too long");
	text[3] = '\16';
	text[13 + 255] = '\0';
	cr_expect_eq(decode(text, 13 + 257), 13 + 257);
}

/* ---- the connection */

static int raw;			/* the other end, as a plain socket */
static struct ddp_link *ours;

static int listen_at(struct sockaddr_in *address)
{
	socklen_t size = sizeof(*address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	*address = (struct sockaddr_in){ .sin_family = AF_INET };
	address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	cr_assert_eq(bind(fd, (struct sockaddr *)address, size), 0);
	cr_assert_eq(listen(fd, 1), 0);
	cr_assert_eq(getsockname(fd, (struct sockaddr *)address, &size), 0);
	return fd;
}

static void set_up(void)
{
	struct sockaddr_in address;
	int listener = listen_at(&address);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	cr_assert_eq(connect(fd, (struct sockaddr *)&address,
			     sizeof(address)), 0);
	raw = accept(listener, NULL, NULL);
	cr_assert(raw >= 0);
	close(listener);
	ours = ddp_link_create(fd);
	cr_assert(ours);
}

static void tear_down(void)
{
	ddp_link_destroy(ours);
	close(raw);
}

TestSuite(link, .init = set_up, .fini = tear_down, .timeout = 30);

static int wait_for(short events)
{
	struct pollfd fd = { .fd = ddp_link_fd(ours), .events = events };

	return poll(&fd, 1, 5000);
}

/* The next message, when it has come. */
static int receive(struct ddp_wire *wire)
{
	int rc;

	while ((rc = ddp_link_receive(ours, wire)) == 0)
		cr_assert_eq(wait_for(POLLIN), 1);
	return rc;
}

Test(link, receives_what_comes_in_pieces)
{
	static const char bytes[] = "\0\0\0\11\13\0\0\0\12" "\0\0\0\5\14";
	struct ddp_wire wire;
	size_t i;

	cr_expect_eq(ddp_link_receive(ours, &wire), 0);
	for (i = 0; i < 8; i++) {
		cr_assert_eq(send(raw, bytes + i, 1, 0), 1);
		cr_assert_eq(wait_for(POLLIN), 1);
		cr_expect_eq(ddp_link_receive(ours, &wire), 0);
	}
	cr_assert_eq(send(raw, bytes + 8, sizeof(bytes) - 9, 0),
		     sizeof(bytes) - 9);
	cr_expect_eq(receive(&wire), 1);
	cr_expect_eq(wire.kind, DDP_WIRE_SIGNAL);
	cr_expect_eq(wire.status, 10);
	cr_expect_eq(receive(&wire), 1);
	cr_expect_eq(wire.kind, DDP_WIRE_KILL);
	cr_expect_eq(ddp_link_receive(ours, &wire), 0);
}

/* More than it can hold has come, and the end of that is no whole message. */
Test(link, receives_many_at_once)
{
	enum { COUNT = 40 };
	static unsigned char bytes[COUNT * DDP_WIRE_FRAME_MAX];
	struct ddp_wire wire = { .kind = DDP_WIRE_END };
	size_t length = 0, sent = 0;
	ssize_t part;
	uint32_t rank;

	memset(wire.tail, 't', sizeof(wire.tail) - 1);
	for (wire.rank = 0; wire.rank < COUNT; wire.rank++)
		length += ddp_wire_encode(&wire, bytes + length);
	for (rank = 0; rank < COUNT; rank++) {
		part = send(raw, bytes + sent, length - sent, MSG_DONTWAIT);
		sent += part > 0 ? (size_t)part : 0;
		cr_assert_eq(receive(&wire), 1);
		cr_assert_eq(wire.rank, rank);
		cr_assert_eq(strlen(wire.tail), sizeof(wire.tail) - 1);
	}
}

Test(link, sends)
{
	const struct ddp_wire done = { .kind = DDP_WIRE_DONE };
	char bytes[16];

	cr_expect_eq(ddp_link_send(ours, &done), 0);
	cr_expect_eq(ddp_link_events(ours), POLLIN);
	cr_expect_eq(recv(raw, bytes, sizeof(bytes), 0), 5);
	cr_expect_arr_eq(bytes, "\0\0\0\5\6", 5);
}

/* Read count END messages of ranks 0, 1, ... from the other end. */
static void read_ends(uint32_t count)
{
	static unsigned char bytes[2 * DDP_WIRE_FRAME_MAX];
	struct ddp_wire wire;
	uint32_t rank = 0;
	size_t length = 0;
	ssize_t got;
	int used;

	while (rank < count) {
		ddp_link_flush(ours);
		got = recv(raw, bytes + length, sizeof(bytes) - length, 0);
		cr_assert(got > 0);
		length += (size_t)got;
		while ((used = ddp_wire_decode(bytes, length, &wire)) > 0) {
			cr_assert_eq(wire.kind, DDP_WIRE_END);
			cr_assert_eq(wire.rank, rank);
			rank++;
			length -= (size_t)used;
			memmove(bytes, bytes + used, length);
		}
		cr_assert_eq(used, 0);
	}
	cr_expect_eq(length, 0);
}

/* Nobody reads: what does not fit is kept, up to a MiB; then all arrives. */
Test(link, keeps)
{
	struct ddp_wire end = { .kind = DDP_WIRE_END };
	int rc = 0;

	memset(end.tail, 't', sizeof(end.tail));
	while (rc == 0) {
		rc = ddp_link_send(ours, &end);
		end.rank += rc == 0;
		cr_assert(end.rank < 100000);
	}
	cr_expect_eq(errno, ENOBUFS);
	cr_expect(end.rank > (1 << 20) / 5000);
	cr_expect_eq(ddp_link_events(ours), POLLIN | POLLOUT);
	read_ends(end.rank);
	cr_expect_eq(ddp_link_events(ours), POLLIN);
}

Test(link, closed)
{
	struct ddp_wire wire;

	cr_assert_eq(send(raw, "\0\0\0\5\6", 5, 0), 5);
	shutdown(raw, SHUT_WR);
	cr_expect_eq(receive(&wire), 1);
	cr_expect_eq(wire.kind, DDP_WIRE_DONE);
	errno = EINVAL;
	cr_expect_eq(receive(&wire), -1);
	cr_expect_eq(errno, 0);
}

Test(link, destroyed)
{
	char byte;

	ddp_link_destroy(ours);
	ours = NULL;
	cr_expect_eq(recv(raw, &byte, 1, 0), 0, "the other side is told");
}

Test(link, another_protocol)
{
	struct ddp_wire wire;

	cr_assert_eq(send(raw, "GET / HTTP/1.0\r\n\r\n", 18, 0), 18);
	cr_expect_eq(receive(&wire), -1);
	cr_expect_eq(errno, EPROTO);
}

Test(link, nobody_listens)
{
	const struct ddp_wire done = { .kind = DDP_WIRE_DONE };
	struct sockaddr_in address;
	struct ddp_wire wire;
	int fd;

	close(listen_at(&address));
	ddp_link_destroy(ours);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	connect(fd, (struct sockaddr *)&address, sizeof(address));
	ours = ddp_link_create(fd);
	cr_expect_eq(receive(&wire), -1);
	cr_expect_eq(errno, ECONNREFUSED);
	cr_expect_eq(ddp_link_send(ours, &done), -1);
	cr_expect_eq(errno, EPIPE);
}

static int get(int level, int name)
{
	socklen_t size = sizeof(int);
	int value = -1;

	cr_assert_eq(getsockopt(ddp_link_fd(ours), level, name, &value, &size),
		     0);
	return value;
}

/* tcp(7): a question each second, and 7 s until the link is broken. */
Test(link, notices_silence)
{
	cr_expect_eq(get(SOL_SOCKET, SO_KEEPALIVE), 1);
	cr_expect_eq(get(IPPROTO_TCP, TCP_KEEPIDLE), 1);
	cr_expect_eq(get(IPPROTO_TCP, TCP_KEEPINTVL), 1);
	cr_expect_eq(get(IPPROTO_TCP, TCP_USER_TIMEOUT), 7000);
	cr_expect_eq(get(IPPROTO_TCP, TCP_NODELAY) != 0, 1);
}
