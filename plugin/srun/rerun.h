/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Running srun again with the same arguments and more environment, and the
 * plugin's state in one run of it.
 *
 * srun reads its input variables before a plugin can know what the command
 * line left open. So the plugin sets variables and runs srun once more: what
 * the user typed still wins over them. A heterogeneous step needs one more run
 * for each component, because they are read one after the other. What srun
 * prints while it reads its command line is held back where it is going to be
 * run again, so that nobody sees it twice.
 */
#ifndef DDP_SRUN_RERUN_H
#define DDP_SRUN_RERUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* It is global because Slurm gives the plugin's hooks no room for it. */
extern struct ddp_srun {
	/* srun.c */
	uint32_t component;	/* whose turn it is; counts up */
	uint32_t words;		/* of the command line, before its words */
	bool was_on;		/* --ddp, in the component before */
	char *bind_before;	/* an outer step's SLURM_CPU_BIND; or NULL */
	char *per_node_before;	/* SLURM_NTASKS_PER_NODE, before srun put its
				 * own there; or NULL */

	/* find_launcher.c */
	const char *launcher;	/* what the component's command calls to start
				 * ranks; NULL: it is one */

	/* defaults.c */
	char *mpi_before;	/* SLURM_MPI_TYPE; NULL: not set */
	bool mpi_given;		/* --mpi, in the last component */

	/* order.c */
	bool ordered;		/* the arguments have the order of the ranks */
	bool measured;		/* the two that follow are known */
	uint32_t up, up_before;	/* crossings of a ring through the nodes, and
				 * in the order of their names */

	/* rerun.c */
	bool again;		/* an earlier run of this command saw --ddp */
	uint32_t done;		/* components that earlier runs filled in */
	uint32_t expected;	/* components, as far as arguments show */
	pid_t supervised;	/* by which process; 0: by none */
	bool placed;		/* the arguments have the nodes of the step */
	char *extra[8];		/* arguments for the next run */
	size_t extra_count;
	bool checks;		/* it runs ddp-bench for --ddp-check */
	int held;		/* what stderr goes to meanwhile; -1 */
	int terminal;		/* the real stderr meanwhile; -1 */
} ddp_srun;

/* Give srun its stderr back, and drop what was held back. */
void ddp_output_drop(void);

/* The same, but print it. Does nothing where nothing is held back. */
void ddp_output_release(void);

/* The user's stderr all the while, the caller's to close; NULL: it fails. */
FILE *ddp_output_open(void);

/*
 * Print one sentence the way srun does, made printable, and exit with 1. Does
 * not return. In sbatch and salloc too.
 */
void ddp_srun_refuse(const char *format, ...)
	__attribute__((format(printf, 1, 2), noreturn));

/* Read what an earlier run has left; begin to hold output back. */
void ddp_rerun_init(void);

/* Add an input variable of srun's for the next run; tasks do not see it. */
void ddp_rerun_add(const char *name, const char *value);

/* Add an argument for the next run, which holds over those before it. */
void ddp_rerun_insert(const char *argument);

/*
 * srun refuses the number of nodes beside a list that says where each task runs, so
 * that it is left out of an ordered step's arguments. Returns false if srun has it
 * in a group of letters, as -lN2, where it is not found.
 */
bool ddp_rerun_can_drop_nodes(void);

/* Hide a variable from the tasks. */
void ddp_rerun_hide(const char *name);

/* Returns true if a variable is one that was added or hidden. */
bool ddp_rerun_added(const char *name);

/*
 * Run srun again, which then begins with the component of this number, with
 * these arguments; NULL: its own, and those that were added. Refuses if that
 * fails. Does not return.
 */
void ddp_rerun_exec(uint32_t component, char **argv)
	__attribute__((noreturn));

#endif
