/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The environment variables that every task gets: one table, by which they are
 * set, and which ddp-info --variables prints.
 *
 * Most names are those of torchrun, where a group is a node, and all ranks have
 * one role. What was set is written down in DDP_SET: where another step, or a
 * job, is started from within this one, a variable that still has the value
 * written there is not the user's, and is taken out.
 */
#ifndef DDP_LAYOUT_VARS_H
#define DDP_LAYOUT_VARS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "layout/layout.h"

/* A variable's rule: what is done with a value from elsewhere, and whether ours
 * is recorded. */
enum ddp_var_rule {
	DDP_VAR_OURS,		/* always set anew; recorded */
	DDP_VAR_USERS,		/* one that the user exports stays; recorded */
	DDP_VAR_SLURMS,		/* Slurm sets it for each step */
	DDP_VAR_HANDED		/* from the plugin to ddp-info and srun */
};

/* A row of the table. */
struct ddp_var {
	const char *name;
	enum ddp_var_rule rule;
	const char *origin;	/* the program whose variable it is */
	const char *when;	/* it is set; NULL: always */
	const char *meaning;
};

/* The rows, index from 0 on; NULL beyond the last. */
const struct ddp_var *ddp_vars_get(size_t index);

/* torchrun is told so much in PET_ variables. */
enum ddp_vars_pet {
	DDP_PET_ALL,
	DDP_PET_NO_RANK,	/* its rendezvous gives nodes their ranks, and
				 * it warns of one that it is told */
	DDP_PET_NONE		/* its arguments are for several steps */
};

/* The facts that the values are made of. */
struct ddp_vars {
	struct ddp_rank rank;
	uint32_t world_size;
	uint32_t node_count;
	uint32_t ranks_per_node;	/* 0: not set */
	const char *tf_config;		/* TF_CONFIG; NULL: not set */
	uint32_t cpus;			/* for OMP_NUM_THREADS; 0: not set */
	uint32_t gpus;			/* that the task sees */
	uint32_t job_id, step_id;	/* PET_RDZV_ID; 0: not set */
	enum ddp_vars_pet pet;
	const char *master_addr;	/* NULL: not set */
	uint16_t master_port;		/* 0: not set */
	uint16_t second_port;		/* beside it on the master, of
					 * JAX_COORDINATOR_ADDRESS; 0 */
	const char *positions;		/* JAX_LOCAL_DEVICE_IDS, set where it
					 * is not the local rank; "" or NULL */
	const char *interface;		/* GLOO_SOCKET_IFNAME; NULL: not set */
	const char *nccl_interface;	/* NCCL_SOCKET_IFNAME; NULL: not set */
	const char *visible;		/* "VARIABLE=value", which orders GPUs;
					 * "" or NULL: none does */
	bool no_device;			/* ACCELERATE_USE_CPU */
	const char *error_file;		/* NULL: not set */
	uint32_t restarts;		/* RESTART_COUNT */
	uint32_t restarts_max;		/* 0: neither is set */
	const char *heartbeat_file;	/* NULL: not set */
	uint16_t ras_port;		/* NCCL_RAS_ADDR; 0: not set */
	const char *placement;		/* DDP_PLACEMENT; NULL: not set */
	const char *record;		/* DDP_SET; NULL: not set */
};

enum { DDP_VARS_BUFFER_SIZE = DDP_HOSTNAME_MAX + sizeof("[]:65535") };

/*
 * PET_NNODES where a node has several ranks. torchrun would make a world of its
 * own in each of them; it stops at what is no number, and prints it.
 */
#define DDP_VARS_SEVERAL "torchrun-needs-srun---ddp=torchrun"

/* Returns how many GPUs a value of CUDA_VISIBLE_DEVICES has; 0 for NULL. */
uint32_t ddp_vars_count_gpus(const char *list);

/*
 * The value of a row: one of vars' own strings, or made in the buffer, which
 * has DDP_VARS_BUFFER_SIZE bytes. NULL if it has none here, or there is no such
 * row.
 */
const char *ddp_vars_value(size_t index, const struct ddp_vars *vars,
			   char *buffer);

/*
 * The record, one line: "job=12.3 RANK=0 MASTER_ADDR=n1 MASTER_PORT=23456".
 * Begin it with the job and step, add each variable that was set, and put it
 * into the environment under this name.
 */
#define DDP_VARS_RECORD "DDP_SET"
/* It holds every record and its NUL, where there is no TF_CONFIG in it. */
enum { DDP_VARS_RECORD_SIZE = 8192 };

/*
 * The value of RANK and others on a node where the plugin is missing: srun puts
 * it into the environment, and the plugin in the task replaces it. It is no
 * number.
 */
#define DDP_POISON "slurm-ddp-plugin-missing-on-this-node"

/* Both return 0, or -1 if it does not fit, or a value has a space in it. */
int ddp_vars_record_begin(char *record, size_t size, uint32_t job_id,
			  uint32_t step_id);
int ddp_vars_record_add(char *record, size_t size, const char *name,
			const char *value);

/* Returns true if record (NULL: no) says that name was set to exactly value. */
bool ddp_vars_recorded(const char *record, const char *name,
		       const char *value);

/*
 * The heartbeat file: how a task tells whoever watches it that it makes progress
 * (ddp_heartbeat in ddp.h). Who starts the task makes an empty file that only
 * the user can open, and removes it at the end.
 * The task's first beat maps the file, so that a beat is one addition in memory;
 * it makes the file where the task has a /dev/shm of its own. Whoever reads the
 * counter by pread(2) sees it; the time of a beat is not recorded.
 *
 * Only the user can write the file, so its reader trusts nothing in it: it
 * looks whether the count has changed, and no more.
 */
/* The environment variable with the file's absolute path. */
#define DDP_HEARTBEAT_VARIABLE "DDP_HEARTBEAT_FILE"

enum { DDP_HEARTBEAT_SIZE = 4096 };	/* bytes of the file */

/* The file's content, in the byte order of the machine; the rest is zero. */
struct ddp_heartbeat {
	_Atomic uint64_t beats;
};

_Static_assert(offsetof(struct ddp_heartbeat, beats) == 0 &&
	       sizeof(struct ddp_heartbeat) == 8,
	       "the count is the file's first 8 bytes");

#endif
