/* SPDX-License-Identifier: BSD-3-Clause */
/* The connection of supervisor and agent, over the loopback. */
#define _GNU_SOURCE
#include <criterion/criterion.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "wire/link.h"

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
