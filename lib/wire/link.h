/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A connection between supervisor and agent that never blocks: what cannot go
 * out yet is kept. The kernels ask each other every second whether the other is
 * there (keepalive, tcp(7)), and answer also where their processes are stopped
 * or suspended; so a link breaks only when the process at the other end has
 * ended, or when its machine has not answered for DDP_LINK_SILENCE_MS.
 *
 * Nobody may send without end to a process that is stopped: when it has no more
 * room, the kernel gives the link up after that time, too. So the supervisor
 * sends a PING only when the one before is answered.
 */
#ifndef DDP_WIRE_LINK_H
#define DDP_WIRE_LINK_H

#include <stdbool.h>

#include "wire/wire.h"

enum { DDP_LINK_SILENCE_MS = 7000 };

struct ddp_link;

/*
 * Take a connected TCP socket over, or one that connects; destroy closes it.
 * NULL: out of memory, and fd is closed. destroy accepts NULL.
 */
struct ddp_link *ddp_link_create(int fd);
void ddp_link_destroy(struct ddp_link *link);

int ddp_link_fd(const struct ddp_link *link);

/*
 * The events for poll(2) to wait for: POLLIN, and POLLOUT if something is kept.
 */
short ddp_link_events(const struct ddp_link *link);

/*
 * Send a message, or keep it and send it by a later flush. Returns 0; -1 with
 * errno if the link is broken, or ENOBUFS if a MiB is kept already.
 */
int ddp_link_send(struct ddp_link *link, const struct ddp_wire *wire);
int ddp_link_flush(struct ddp_link *link);

/*
 * The next message. Returns 1; 0 if none has come yet; -1 if the link is
 * broken: errno is 0 where the other side closed it, EPROTO where it sent no
 * message of ours.
 */
int ddp_link_receive(struct ddp_link *link, struct ddp_wire *wire);

#endif
