/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames in and out of a TCP socket. */
#define _GNU_SOURCE
#include "wire/link.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

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
