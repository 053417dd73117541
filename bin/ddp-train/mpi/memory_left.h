/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory that this process can still get. The kernel kills a process that
 * takes more than its cgroup's limit, so the limit is checked first.
 */
#ifndef DDP_TRAIN_MPI_MEMORY_LEFT_H
#define DDP_TRAIN_MPI_MEMORY_LEFT_H

#include <stdint.h>

enum { ROOMS = 16 };

/* The memory that a machine or a cgroup has left, for all its processes. */
struct room {
	uint64_t device, inode;		/* the cgroup's; 0: the machine */
	uint64_t bytes;			/* what is used for files alone counts
					   as free */
};

/*
 * The machine, this process's cgroup and those around it, if they have a limit.
 * proc is "/proc", or in tests a folder with the same
 * files. Returns how many.
 */
int room_find(const char *proc, struct room rooms[ROOMS]);

#endif
