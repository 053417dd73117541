/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The window: memory that the ranks of a node share, a segment for each. It is
 * a memfd, which has no name: nobody else can open it or have made it before.
 * The node's first rank makes it; the others open it through /proc/PID/fd.
 * Where that fails, as in PID namespaces of their own, they get it over a
 * socket.
 */
#ifndef DDP_TRAIN_MPI_WINDOW_H
#define DDP_TRAIN_MPI_WINDOW_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "mpi/memory_left.h"

struct ddp_error;
struct watch;

enum { HANDOVER_NAME = 48 };

/* The place of the first rank's memfd, and the numbers that identify it. */
struct window_origin {
	pid_t pid;
	int fd;
	dev_t device;
	ino_t inode;
};

struct window {
	MPI_Comm comm;			/* of the ranks of the node */
	struct watch *watch;
	int rank, size;
	size_t segment;			/* bytes of a rank, whole pages */
	size_t own;			/* what a rank needs beside them */
	char *base;			/* [size][segment]; NULL: not mapped */
	struct room *rooms;		/* [size][ROOMS]: each rank's */
	int fd;				/* until it is mapped; -1: none */
	int listener, connection;	/* likewise */
	int missing;			/* ranks that could not open it */
	struct window_origin origin;
	char socket_name[HANDOVER_NAME];
};

/* Opens the window for comm's ranks. Returns 0, or -1 without memory. */
int window_open(struct window *window, MPI_Comm comm, struct watch *watch);

/* Sets the bytes of each rank in the window, and those it has beside it. */
void window_set_bytes(struct window *window, size_t bytes, size_t own);

/*
 * The steps that make the window, in this order; collective. Call each only
 * once all ranks of the world know that the one before has succeeded on all of
 * them, so that no rank waits for one that has failed. They return 0, or -1
 * with error set. After the last one each rank's segment is allocated and
 * zeroed.
 */
enum { WINDOW_STEPS = 8 };
extern int (*const window_steps[WINDOW_STEPS])(struct window *window,
					       struct ddp_error *error);

/* Works also after a step has failed, or without any. */
void window_close(struct window *window);

/*
 * A file descriptor, handed to other processes of the same user over a Unix
 * socket. Both sides look at whose process the other one is. The name of the
 * socket is random, in the abstract namespace: it is no file, and disappears
 * with the process.
 *
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
