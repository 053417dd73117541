/* SPDX-License-Identifier: BSD-3-Clause */
/* A file descriptor, handed to other processes of this user. */
#define _GNU_SOURCE
#include "mpi/handover.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/random.h"

enum { WAIT_SECONDS = 10 };

/* A union, to align the buffer for cmsghdr. */
union control {
	struct cmsghdr header;
	char space[CMSG_SPACE(sizeof(int))];
};

/* Close what did not work, but keep the reason. */
static int drop(int descriptor)
{
	int reason = errno;

	close(descriptor);
	errno = reason;
	return -1;
}

/* The address of an abstract name; returns its length. */
static socklen_t fill_address(struct sockaddr_un *address, const char *name)
{
	size_t length = strlen(name);

	*address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	memcpy(address->sun_path + 1, name, length);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length);
}

/* Returns true if the process at the other end is this user's. */
static bool is_ours(int connection)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);

	return getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer,
			  &size) == 0 && peer.uid == geteuid();
}

int handover_listen(char name[HANDOVER_NAME])
{
	struct sockaddr_un address;
	uint64_t random[2];
	socklen_t length;
	int listener;

	if (ddp_random_fill(random, sizeof(random)) < 0)
		return -1;
	snprintf(name, HANDOVER_NAME, "slurm-ddp-%016llx%016llx",
		 (unsigned long long)random[0], (unsigned long long)random[1]);
	length = fill_address(&address, name);
	listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
			  0);
	if (listener < 0)
		return -1;
	if (bind(listener, (struct sockaddr *)&address, length) < 0 ||
	    listen(listener, SOMAXCONN) < 0)
		return drop(listener);
	return listener;
}

int handover_connect(const char *name, bool wait)
{
	struct sockaddr_un address;
	socklen_t length = fill_address(&address, name);
	struct timeval limit = { .tv_sec = WAIT_SECONDS };
	int connection = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC |
				(wait ? 0 : SOCK_NONBLOCK), 0);

	if (connection < 0)
		return -1;
	if (setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &limit,
		       sizeof(limit)) < 0 ||
	    connect(connection, (struct sockaddr *)&address, length) < 0)
		return drop(connection);
	if (!is_ours(connection)) {
		errno = EPERM;
		return drop(connection);
	}
	return connection;
}

/* Wait until it can be read; -1 once the deadline has passed. */
static int await(int socket, double deadline)
{
	struct pollfd pollfd = { .fd = socket, .events = POLLIN };
	double left;
	int ready = 0;

	while (ready == 0) {
		left = deadline - ddp_clock_seconds();
		if (left <= 0) {
			errno = ETIMEDOUT;
			return -1;
		}
		ready = poll(&pollfd, 1, (int)(left * 1000) + 1);
		if (ready < 0 && errno == EINTR)
			ready = 0;
	}
	return ready < 0 ? -1 : 0;
}

static int send_descriptor(int connection, int descriptor)
{
	union control control = { .space = { 0 } };
	char byte = 0;
	struct iovec iovec = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr message = {
		.msg_iov = &iovec, .msg_iovlen = 1, .msg_control = &control,
		.msg_controllen = sizeof(control)
	};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(header), &descriptor, sizeof(int));
	return sendmsg(connection, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == 1 ?
		0 : -1;
}

int handover_send(int listener, int descriptor, int count)
{
	double deadline = ddp_clock_seconds() + WAIT_SECONDS;

	while (count > 0) {
		int connection;

		if (await(listener, deadline) < 0)
			return -1;
		connection = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		if (connection < 0) {
			if (errno == EAGAIN || errno == ECONNABORTED)
				continue;
			return -1;
		}
		/* A stranger who has seen the name gets nothing. */
		if (is_ours(connection) &&
		    send_descriptor(connection, descriptor) == 0)
			count--;
		close(connection);
	}
	return 0;
}

int handover_receive(int connection)
{
	union control control;
	char byte;
	struct iovec iovec = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr message = {
		.msg_iov = &iovec, .msg_iovlen = 1, .msg_control = &control,
		.msg_controllen = sizeof(control)
	};
	struct cmsghdr *header;
	int descriptor;

	if (await(connection, ddp_clock_seconds() + WAIT_SECONDS) < 0 ||
	    recvmsg(connection, &message, MSG_CMSG_CLOEXEC) < 0)
		return -1;
	header = CMSG_FIRSTHDR(&message);
	if (!header || header->cmsg_level != SOL_SOCKET ||
	    header->cmsg_type != SCM_RIGHTS ||
	    header->cmsg_len != CMSG_LEN(sizeof(int))) {
		errno = ECONNRESET;
		return -1;
	}
	memcpy(&descriptor, CMSG_DATA(header), sizeof(int));
	return descriptor;
}
