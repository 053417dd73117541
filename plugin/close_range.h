/* SPDX-License-Identifier: BSD-3-Clause */
/* A system call that Slurm's older platforms have no name for. */
#ifndef DDP_CLOSE_RANGE_H
#define DDP_CLOSE_RANGE_H

#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

/*
 * Close all descriptors from this one on. Returns 0, or -1 with errno set, as
 * on a kernel older than 5.9.
 */
static inline int ddp_close_from(int first)
{
	return (int)syscall(SYS_close_range, first, ~0U, 0);
}

#endif
