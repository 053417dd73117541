/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The text of whole files, also of those of /proc and /sys, which do not tell their
 * size. Two NULs end it, so that a list of words, such as cmdline, ends too. The
 * caller frees it. NULL: the file cannot be read, and errno says why.
 */
#ifndef DDP_UTIL_FILE_H
#define DDP_UTIL_FILE_H

#include <stddef.h>
#include <sys/types.h>

char *ddp_file_read(const char *path);
char *ddp_file_read_of(pid_t pid, const char *name);	/* in /proc/PID */

/* What a descriptor still has; *length (unless NULL) is without the two NULs. */
char *ddp_file_read_fd(int fd, size_t *length);

/* The first line of a file without its newline, cut; "" if there is none. */
void ddp_file_read_line(const char *path, char *line, size_t size);

#endif
