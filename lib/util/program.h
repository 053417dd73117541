/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DDP_UTIL_PROGRAM_H
#define DDP_UTIL_PROGRAM_H

#include <sys/types.h>

/*
 * Run one of Slurm's programs, argv[0]: the one that was installed with this
 * srun, else the one on PATH; without SQUEUE_ variables, by which a user's squeue
 * shows some jobs only, in a form of theirs. Returns all that it prints on
 * stdout, the caller's to free; NULL if it fails or prints nothing.
 */
char *ddp_program_read(const char *const argv[]);

/*
 * Start one in the same way, with one more entry in its environment, and return
 * its process; *out is then the read end of its stdout. What it prints on stderr
 * is dropped. -1: it cannot start.
 */
pid_t ddp_program_start(const char *const argv[], const char *entry, int *out);

#endif
