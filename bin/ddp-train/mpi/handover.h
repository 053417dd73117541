/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A file descriptor, handed to other processes of the same user over a Unix
 * socket. Both sides look at whose process the other one is. The name of the
 * socket is random, in the abstract namespace: it is no file, and disappears
 * with the process.
 */
#ifndef DDP_TRAIN_MPI_HANDOVER_H
#define DDP_TRAIN_MPI_HANDOVER_H

#include <stdbool.h>

enum { HANDOVER_NAME = 48 };

/*
 * All return a descriptor (handover_send() 0), or -1 with errno set. None
 * waits longer than ten seconds.
 */

/* A socket that listens; fills in its name. */
int handover_listen(char name[HANDOVER_NAME]);

/*
 * A connection to it.  Strangers can fill the queue of those that connect: this
 * fails with EAGAIN then, or with wait waits until handover_send() makes room.
 */
int handover_connect(const char *name, bool wait);

/* Give a descriptor to so many processes that have connected. */
int handover_send(int listener, int descriptor, int count);

/* The descriptor, from a connection. */
int handover_receive(int connection);

#endif
