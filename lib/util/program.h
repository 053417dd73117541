/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DDP_UTIL_PROGRAM_H
#define DDP_UTIL_PROGRAM_H

#include <limits.h>
#include <sys/types.h>

/*
 * The one of Slurm's programs that was installed with this srun: a text in path,
 * or name itself, which is then sought on PATH.
 */
const char *ddp_program_find(const char *name, char path[PATH_MAX]);

/*
 * Run argv[0], one of Slurm's programs, without SQUEUE_ variables, by which a
 * user's squeue shows some jobs only, in a form of theirs. Returns all that it
 * prints on stdout, the caller's to free; NULL if it fails or prints nothing. Its
 * stdin is empty, and err is its stderr; -1: what it prints there is dropped. Until
 * it has ended SIGCHLD has its usual effect in this process, so one thread at a
 * time may call this.
 */
char *ddp_program_read(const char *const argv[], int err);

/*
 * Start a program, found as execvp(3) does, also without SQUEUE_ variables. entry,
 * "NAME=value", is in its environment instead of one of that name; NULL: none is
 * added. err becomes its stderr; -1: what it prints there is dropped. Its stdin is
 * empty, and it blocks no signal. Returns its process, for which the caller waits,
 * and in *out the read end of its stdout, which the caller closes; -1 if it cannot
 * start, and errno says why.
 */
pid_t ddp_program_start(const char *program, const char *const argv[],
			const char *entry, int err, int *out);

#endif
