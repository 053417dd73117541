/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finds the cgroups of a step by what the kernel says in /proc. Slurm has a
 * folder step_N for each step, in cgroups of version 1 as of 2. What else is in
 * the path depends on Slurm's version and on the site.
 *
 * controller is one of version 1, such as "freezer"; "" is version 2.
 */
#ifndef DDP_PROC_CGROUP_H
#define DDP_PROC_CGROUP_H

#include <stddef.h>

enum { DDP_CGROUP_SIZE = 1024 };	/* holds a path and its NUL */

/*
 * Find the step of a process in the text of its /proc/PID/cgroup: its path
 * within the hierarchy, up to the folder of the step. Returns 0; -1 if it is in
 * none, or the path is too long.
 */
int ddp_cgroup_find_step(const char *text, const char *controller,
			 char path[DDP_CGROUP_SIZE]);

/* The same for the whole path, in whatever folder the process is. */
int ddp_cgroup_find(const char *text, const char *controller,
		    char path[DDP_CGROUP_SIZE]);

/*
 * Find the folder that such a path is in the file system, by the text of
 * /proc/self/mountinfo. Returns 0; -1 if it is not mounted.
 */
int ddp_cgroup_find_folder(const char *mounts, const char *controller,
			   const char *path, char folder[DDP_CGROUP_SIZE]);

/*
 * The number in the line of a cgroup's file that begins with key and a blank,
 * as in memory.events; 0 if there is none.
 */
unsigned long ddp_cgroup_count(const char *text, const char *key);

#endif
