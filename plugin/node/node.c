/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How the tasks of one node wait for each other before their programs run, and
 * messages with descriptors to their agent.
 */
#define _GNU_SOURCE
#include "node/node.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>

/* ---- gates */

enum { SLICES_PER_S = 20 };	/* a sibling's failure is noticed this soon */

bool ddp_siblings_say(struct ddp_siblings *siblings)
{
	return atomic_fetch_add(&siblings->said, 1) + 1 == siblings->count;
}

void ddp_siblings_open(struct ddp_siblings *siblings, enum ddp_gate gate)
{
	uint32_t i;

	for (i = 0; i < siblings->count; i++)
		sem_post(&siblings->gates[gate]);
}

/* Wait for a slice of the time. Returns 0, or -1 if the gate is closed. */
static int wait_slice(sem_t *gate)
{
	struct timespec until;
	int rc;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += 1000000000 / SLICES_PER_S;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	do
		rc = sem_timedwait(gate, &until);
	while (rc < 0 && errno == EINTR);
	return rc;
}

int ddp_siblings_wait(struct ddp_siblings *siblings, enum ddp_gate gate,
		      const char *what, struct ddp_error *error)
{
	int slices = 0, rc;

	do
		rc = wait_slice(&siblings->gates[gate]);
	while (rc < 0 && !atomic_load(&siblings->failed) &&
	       ++slices < DDP_SIBLINGS_WAIT_S * SLICES_PER_S);
	if (atomic_load(&siblings->failed))
		return 1;
	if (rc == 0)
		return 0;
	return ddp_error_set(error, DDP_ERROR_SYSTEM, "%u of this node's %u "
			     "tasks have come and %u are ready, but %s has "
			     "taken longer than %d s; try again when the node "
			     "is less busy, or use --ddp-gpus=off "
			     "--ddp-cpus=off", atomic_load(&siblings->arrived),
			     siblings->count, atomic_load(&siblings->said),
			     what, DDP_SIBLINGS_WAIT_S);
}

/* ---- notes */

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
