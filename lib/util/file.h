/* SPDX-License-Identifier: BSD-3-Clause */
/* Files: their text, their names, and their descriptors. */
#ifndef DDP_UTIL_FILE_H
#define DDP_UTIL_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "util/error.h"

/*
 * Returns the text of a file that a user names, for the caller to free; opening it
 * does not wait, and it is a regular file of at most max bytes. *length (unless
 * NULL) as of ddp_file_read_fd. what is the file's name in errors: "the topology
 * file". NULL on error.
 */
char *ddp_file_read_regular(const char *what, const char *path, size_t max,
			    size_t *length, struct ddp_error *error);

/*
 * Returns the text of a whole file, also of those of /proc and /sys, which do not
 * tell their size. Two NULs end it, so that a list of words, such as cmdline, ends
 * too. The caller frees it. NULL: the file cannot be read, and errno says why; it
 * is ELOOP where path itself is a link.
 */
char *ddp_file_read(const char *path);
char *ddp_file_read_of(pid_t pid, const char *name);	/* in /proc/PID */

/*
 * The same of the rest of a descriptor, which stays open, if that has at most max
 * bytes; else errno is EFBIG. *length (unless NULL) does not count the NULs.
 */
char *ddp_file_read_fd(int fd, size_t max, size_t *length);

/* The first line of a file without its newline, cut; "" if there is none. */
void ddp_file_read_line(const char *path, char *line, size_t size);

/*
 * Make the name that a file has in the first folder of *path, the value of a
 * PATH (NULL: it has no folders), in file[PATH_MAX], and leave that folder out
 * of *path. Those without a name, as between "::", and those whose file would
 * have too long a name are left out, too. Returns false at the end. No file is
 * looked at.
 */
bool ddp_path_next(const char **path, const char *name, char *file);

/*
 * Open a new file for writing in the folder of path. Its mode is 0666, less the
 * umask. Returns its descriptor, or -1 with errno; *name, or NULL, is for the
 * caller to free.
 */
int ddp_file_open_beside(const char *path, char **name);

/*
 * Write a text to such a file, which then takes the name path, so that others see
 * the old file or the whole new one. Returns 0, or -1 with errno, and then leaves
 * nothing.
 */
int ddp_file_replace(const char *path, const char *text, size_t length);

/* Fill at most 256 bytes that nobody can guess. Returns 0, or -1 with errno. */
int ddp_random_fill(void *bytes, size_t size);

/*
 * The names of the folder that a rank of ddp-train makes for MPI's shared
 * memory, and of the files that the plugin makes for a rank. The end is random,
 * so that nobody can take it first; before that stands whose it is, so that what
 * a killed rank leaves can be removed.
 */
enum { DDP_PRIVATE_SIZE = 72 };	/* holds a path and its NUL */

/* The folders that may hold them: one in memory if possible, as Open MPI would.
 * Ends with NULL. */
extern const char *const ddp_private_parents[];

/* "slurm-ddp.JOB.STEP.RANK.", as Slurm's variables of a task have them. */
void ddp_private_format(uint32_t job_id, uint32_t step_id, uint32_t rank,
			char name[DDP_PRIVATE_SIZE]);

/*
 * Close all descriptors from this one on. Returns 0, or -1 with errno set: the
 * kernel is older than 5.9, and /proc cannot be read. Allocates nothing, as
 * processes that share another's memory call it (clone with CLONE_VM).
 */
int ddp_close_from(int first);

/*
 * Wait until all that was written to the pipe fd has been read, for so many
 * milliseconds at most. Returns at once if fd is no pipe, or nobody reads it.
 * This is for a program that prints why it ends and then has all ranks killed,
 * as MPI_Abort and PMIx_Abort do. Those who read what it prints are killed with
 * them, and what they have not read by then is lost.
 */
void ddp_drain_wait(int fd, int timeout_ms);

#endif
