/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Launchers in the command of a step: programs that start processes themselves.
 * mpirun and mpiexec start helpers of their own by srun, one on each node.
 * Those of Python, such as torchrun, are started once on each node by the user,
 * and start its ranks; some go to the other nodes themselves.
 */
#ifndef DDP_REQUEST_LAUNCHER_H
#define DDP_REQUEST_LAUNCHER_H

#include <stdbool.h>
#include <stdint.h>

#include "request/command.h"
#include "util/error.h"

/* Returns true if a command is a helper that an MPI launcher starts by srun. */
bool ddp_launcher_is_helper(const char *command);

enum ddp_launcher_kind {
	DDP_LAUNCHER_NONE,
	DDP_LAUNCHER_TORCHRUN,
	DDP_LAUNCHER_ACCELERATE,
	DDP_LAUNCHER_FABRIC,	/* Lightning's; on one node unless told */
	DDP_LAUNCHER_COMPOSER,	/* has its world from our variables, wrongly,
				 * unless told */
	DDP_LAUNCHER_SSH	/* goes to other nodes by ssh or mpirun */
};

/* A launcher, and those of its arguments that matter here; 0 is not given. */
struct ddp_launcher {
	enum ddp_launcher_kind kind;
	const char *name;		/* what a user calls it; static */
	char file[256];			/* the script in which it is; "": in
					 * none that was read */
	unsigned int line;		/* in that, from 1 */
	bool disputed;			/* another branch of the script runs
					 * another launcher, or a program; or
					 * what is behind a branch does */
	bool program;			/* python runs a program, too, or instead */
	bool standalone;		/* --standalone */
	bool cpu;			/* --cpu */
	bool help;			/* --help: it starts nothing */
	bool parallel;			/* --multi_gpu and the like, or a
					 * --config_file that may say so */
	bool port;			/* --main_process_port, or such a file */
	bool node_rank;			/* --node-rank, --machine_rank */
	bool same_rank;			/* which is a number, on all nodes */
	bool same_address;		/* an address that each node has */
	bool own_rendezvous;		/* --rdzv-backend, other than static */
	bool no_ssh;			/* --no_ssh */
	bool world;			/* --world_size */
	char config[256];		/* --config_file; "" */
	uint32_t nodes_min, nodes_max;	/* --nnodes, --num_machines */
	uint32_t processes;		/* --nproc-per-node; of Accelerate
					 * --num_processes, which counts those
					 * of all its nodes */
};

/*
 * Look for a launcher in a command, whose words end with NULL: itself, a module
 * or script that python runs, or behind a program that runs another, such as
 * env, timeout, bash -c or apptainer exec; with read also in shell scripts, see
 * command.h. A number that the shell has yet to expand counts as not given. Of
 * several launchers the first counts; of those in branches that exclude each
 * other only what all of them say. Returns whether there is any; without one,
 * program alone is set.
 */
bool ddp_launcher_find(char *const *command, ddp_command_read_fn read,
		       struct ddp_launcher *launcher);

/*
 * Read what Accelerate takes from its configuration, the text of a YAML file,
 * where its arguments do not say otherwise: num_machines and machine_rank.
 */
void ddp_launcher_read_config(struct ddp_launcher *launcher, const char *text);

/*
 * Check that a launcher's arguments make one world on so many nodes. Returns 0,
 * or -1 with what to type.
 */
int ddp_launcher_check(const struct ddp_launcher *launcher, uint32_t nodes,
		       struct ddp_error *error);

/*
 * Returns whether this is one of several steps, one for each node, whose
 * launchers make one world by their arguments: it names its node, of more nodes
 * than the step has.
 */
bool ddp_launcher_is_apart(const struct ddp_launcher *launcher, uint32_t nodes);

/*
 * Returns true if it is Accelerate's and starts one process a node, a world of
 * its own, where it finds no GPU.
 */
bool ddp_launcher_needs_gpu(const struct ddp_launcher *launcher);

/* The port that Accelerate looks at unless it is told another. */
enum { DDP_LAUNCHER_PORT = 29500 };

/*
 * Returns true if it is Accelerate's and looks whether DDP_LAUNCHER_PORT is free on
 * each node, though the ranks meet elsewhere. Where that is taken, it makes a
 * world of the node alone, and waits there for the others.
 */
bool ddp_launcher_needs_port(const struct ddp_launcher *launcher);

/* Returns how many ranks it starts on each node by its arguments; 0: they leave
 * it open. */
uint32_t ddp_launcher_workers(const struct ddp_launcher *launcher);

#endif
