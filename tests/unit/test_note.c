/* SPDX-License-Identifier: BSD-3-Clause */
/* A message of the agent's sockets with more descriptors than one has. */
#define _GNU_SOURCE
#include <criterion/criterion.h>

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "node/node.h"

enum { SENT = DDP_NOTE_FDS + 1 };

static void send_descriptors(int to, int fd)
{
	struct ddp_note note = { .kind = DDP_NOTE_OUTPUT };
	struct iovec part = { &note, sizeof(note) };
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(SENT * sizeof(int))];
	} control = { .bytes = { 0 } };
	const struct msghdr message = {
		.msg_iov = &part, .msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes),
	};

	control.header.cmsg_level = SOL_SOCKET;
	control.header.cmsg_type = SCM_RIGHTS;
	control.header.cmsg_len = CMSG_LEN(SENT * sizeof(int));
	for (int i = 0; i < SENT; i++)
		((int *)CMSG_DATA(&control.header))[i] = fd;
	cr_assert_eq(sendmsg(to, &message, 0), (ssize_t)sizeof(note));
}

/* Padding has room for the fourth. A pipe ends when nobody can write to it. */
Test(note, takes_no_descriptor_too_many)
{
	struct ddp_note note;
	int ends[2], pipe_ends[2], fds[SENT] = { [DDP_NOTE_FDS] = -7 }, i;
	char byte;

	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
	cr_assert_eq(pipe2(pipe_ends, O_NONBLOCK), 0);
	send_descriptors(ends[0], pipe_ends[1]);
	cr_assert_eq(ddp_note_receive(ends[1], &note, fds), 1);
	cr_expect_eq(note.kind, DDP_NOTE_OUTPUT);
	cr_expect_eq(fds[DDP_NOTE_FDS], -7);
	close(pipe_ends[1]);
	for (i = 0; i < DDP_NOTE_FDS; i++)
		cr_expect_eq(close(fds[i]), 0);
	cr_expect_eq(read(pipe_ends[0], &byte, 1), 0,
		     "the fourth is not left open");
}
