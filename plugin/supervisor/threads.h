/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The other threads of srun. Slurm 26.05 starts some before it loads a plugin,
 * and so do users' tracing libraries. A signal for the process goes to any
 * thread that does not block it. So the supervisor, which reads its signals in
 * one thread, has them blocked in all.
 */
#ifndef DDP_SUPERVISOR_THREADS_H
#define DDP_SUPERVISOR_THREADS_H

#include <signal.h>
#include <stdint.h>

#include "util/error.h"

/*
 * Blocks [set] in all threads of this process but the one that calls. Threads
 * that start later inherit it; the process has a handler for SIGURG from then on.
 * Returns 0, or -1 with an error if a thread has not blocked it within some seconds,
 * or if nobody knows; others then have.
 */
int ddp_threads_block(const sigset_t *set, struct ddp_error *error);

/*
 * Reads a mask of signals, such as "\nShdPnd:", from [path], the status file of a
 * process or thread in /proc. Returns 0, or -1 if it is not there.
 */
int ddp_threads_read(const char *path, const char *name, uint64_t *mask);

#endif
