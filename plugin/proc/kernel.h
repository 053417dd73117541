/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plugin/proc is pure: it reads the texts of /proc, of cgroups, of the kernel's
 * log, of stacks, of NCCL's RAS, and the lines of output.
 *
 * Here: what the kernel says of processes: in /proc/PID/stat, and in records of
 * /dev/kmsg (dmesg), where those can be read.
 */
#ifndef DDP_PROC_KERNEL_H
#define DDP_PROC_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct ddp_kernel_process {
	char state;		/* R, S, D, T, Z, ... */
	pid_t parent, session;
	int threads;		/* 0: the text does not say it */
	int status;		/* of Z, as of wait(2); 0: also where the
				 * kernel does not say it to this user */
	uint64_t cpu;		/* clock ticks that it has used, and its
				 * children for which it has waited */
};

/* Read the text of /proc/PID/stat. Returns 0, or -1. */
int ddp_kernel_read_process(const char *text,
			    struct ddp_kernel_process *process);

enum { DDP_KERNEL_PLACE_SIZE = 64 };

/*
 * Reads what a process waits in from the texts of /proc/PID/wchan and, where
 * that does not tell, /proc/PID/syscall. place is a function of the kernel's,
 * or "system call 7"; "" if the process runs, or neither tells. Both texts may
 * be NULL.
 */
void ddp_kernel_read_place(const char *wchan, const char *syscall,
			   char place[DDP_KERNEL_PLACE_SIZE]);

/*
 * How many bytes of its stack a process that waits has in use, of the texts of
 * /proc/PID/stat and /proc/PID/syscall; 0: they do not tell. Both may be NULL.
 */
uint32_t ddp_kernel_read_depth(const char *stat, const char *syscall);

/*
 * Returns true if a process, by the text of its /proc/PID/maps, has a library
 * that waits by looking again and again: MPI's, or a GPU driver's.
 */
bool ddp_kernel_polls(const char *maps);

/* The number behind a name in the text of /proc/PID/io; 0: there is none. */
uint64_t ddp_kernel_read_io(const char *text, const char *name);

/* The share of the CPUs that threads have had. */
struct ddp_kernel_share {
	uint64_t ran_ns;	/* on a CPU */
	uint64_t waited_ns;	/* for one, ready to run */
	uint64_t times;		/* that a thread got one; of several: 0 */
};

struct ddp_kernel_thread {
	pid_t id;
	struct ddp_kernel_share share;	/* since it began */
};

/* The threads in any order, best in the same each time; zeros are none. */
struct ddp_kernel_threads {
	struct ddp_kernel_thread *data;	/* to be freed */
	size_t count, size;
};

/*
 * Add a thread, by the text of its /proc/PID/task/TID/schedstat (proc(5)).
 * Nothing is added if that is NULL or another text, or memory is short.
 */
void ddp_kernel_add_thread(struct ddp_kernel_threads *threads, pid_t id,
			   const char *text);

/*
 * Returns what the threads have had between two looks. A thread that ran for
 * less than 0.3 ms at a time in between only looked whether there is news, and
 * is left out. All is 0 if no threads are known from before.
 */
struct ddp_kernel_share
ddp_kernel_find_share(const struct ddp_kernel_threads *before,
		      const struct ddp_kernel_threads *now);

enum ddp_kernel_what {
	DDP_KERNEL_OTHER,
	DDP_KERNEL_KILLED,	/* a process, because memory was short */
	DDP_KERNEL_XID		/* the NVIDIA driver: an error of a GPU */
};

enum { DDP_KERNEL_BUS_SIZE = 32, DDP_KERNEL_WORDS_SIZE = 128 };

struct ddp_kernel_record {
	enum ddp_kernel_what what;
	uint32_t pid;			/* 0: the record does not say it */
	uint32_t xid;
	char bus[DDP_KERNEL_BUS_SIZE];	/* as "0000:3b:00" */
	char words[DDP_KERNEL_WORDS_SIZE];	/* of the Xid; printable */
};

/* Read a record of /dev/kmsg: "6,339,5140900,-;text". */
void ddp_kernel_read_record(const char *text, struct ddp_kernel_record *record);

/* ---- cgroups */

/*
 * Slurm has a folder step_N for each step, in cgroups of version 1 as of 2. What
 * else is in the path depends on Slurm's version and on the site. controller is
 * one of version 1, such as "freezer"; "" is version 2.
 */

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
