/* SPDX-License-Identifier: BSD-3-Clause */
/* A message of the agent's sockets with more descriptors than one has. */
#define _GNU_SOURCE
#include <criterion/criterion.h>

#include <sys/socket.h>
#include <unistd.h>

#include "agent/note.h"

enum { SENT = DDP_NOTE_FDS + 1 };

static void send_descriptors(int to)
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
		((int *)CMSG_DATA(&control.header))[i] = STDERR_FILENO;
	cr_assert_eq(sendmsg(to, &message, 0), (ssize_t)sizeof(note));
}

/* Padding has room for the fourth. */
Test(note, takes_no_descriptor_too_many)
{
	struct ddp_note note;
	int ends[2], fds[SENT] = { [DDP_NOTE_FDS] = -7 };

	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
	send_descriptors(ends[0]);
	cr_assert_eq(ddp_note_receive(ends[1], &note, fds), 1);
	cr_expect_eq(note.kind, DDP_NOTE_OUTPUT);
	cr_expect_geq(fds[DDP_NOTE_FDS - 1], 0);
	cr_expect_eq(fds[DDP_NOTE_FDS], -7);
	cr_expect_eq(dup(ends[0]), fds[DDP_NOTE_FDS - 1] + 1,
		     "the fourth is not left open");
}
