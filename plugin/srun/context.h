/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The plugin's state in one run of srun. It is global because Slurm gives its
 * hooks no room for it. Each member belongs to the file that is named above it.
 */
#ifndef DDP_SRUN_CONTEXT_H
#define DDP_SRUN_CONTEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct ddp_srun {
	/* srun.c */
	uint32_t component;	/* whose turn it is; counts up */
	uint32_t words;		/* of the command line, before its words */
	bool was_on;		/* --ddp, in the component before */
	char *bind_before;	/* an outer step's SLURM_CPU_BIND; or NULL */
	char *per_node_before;	/* SLURM_NTASKS_PER_NODE, before srun put its
				 * own there; or NULL */

	/* launch.c */
	const char *launcher;	/* what the component's command calls to start
				 * ranks; NULL: it is one */

	/* mpi.c */
	char *mpi_before;	/* SLURM_MPI_TYPE; NULL: not set */
	bool mpi_given;		/* --mpi, in the last component */

	/* rerun.c */
	bool again;		/* an earlier run of this command saw --ddp */
	uint32_t done;		/* components that earlier runs filled in */
	uint32_t expected;	/* components, as far as arguments show */
	pid_t supervised;	/* by which process; 0: by none */
	bool placed;		/* the arguments have the nodes of the step */
	char *extra[8];		/* arguments for the next run */
	size_t extra_count;
	bool checks;		/* it runs ddp-bench for --ddp-check */

	/* output.c */
	int held;		/* what stderr goes to meanwhile; -1 */
	int terminal;		/* the real stderr meanwhile; -1 */
};

extern struct ddp_srun ddp_srun;

#endif
