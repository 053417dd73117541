/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages with descriptors on the agent's socketpairs. */
#define _GNU_SOURCE
#include "node/note.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

union control {
	struct cmsghdr header;		/* for its alignment */
	char bytes[CMSG_SPACE(DDP_NOTE_FDS * sizeof(int))];
};

int ddp_note_send(int to, const struct ddp_note *note, const int *fds,
		  int count)
{
	struct iovec part = { (void *)note, sizeof(*note) };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
	union control control = { .bytes = { 0 } };
	ssize_t sent;

	if (count > 0) {
		message.msg_control = control.bytes;
		message.msg_controllen = CMSG_SPACE((size_t)count *
						    sizeof(int));
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN((size_t)count * sizeof(int));
		memcpy(CMSG_DATA(&control.header), fds,
		       (size_t)count * sizeof(int));
	}
	do
		sent = sendmsg(to, &message, MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	return sent < 0 ? -1 : 0;
}

int ddp_note_receive(int from, struct ddp_note *note, int fds[DDP_NOTE_FDS])
{
	struct iovec part = { note, sizeof(*note) };
	union control control = { .bytes = { 0 } };
	struct msghdr message = {
		.msg_iov = &part, .msg_iovlen = 1,
		.msg_control = control.bytes,
		/* Less than CMSG_SPACE, which has padding for one more. */
		.msg_controllen = CMSG_LEN(sizeof(int) * DDP_NOTE_FDS),
	};
	struct cmsghdr *header;
	ssize_t got;
	int i;

	memset(note, 0, sizeof(*note));
	for (i = 0; i < DDP_NOTE_FDS; i++)
		fds[i] = -1;
	do
		got = recvmsg(from, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	while (got < 0 && errno == EINTR);
	if (got <= 0)
		return (int)got;
	note->label[DDP_NOTE_LABEL_SIZE - 1] = '\0';
	header = CMSG_FIRSTHDR(&message);
	if (header && header->cmsg_type == SCM_RIGHTS)
		memcpy(fds, CMSG_DATA(header),
		       header->cmsg_len - CMSG_LEN(0));
	return 1;
}
