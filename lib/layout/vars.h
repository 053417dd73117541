/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The environment variables that every task gets: one table.
 *
 *   RANK LOCAL_RANK WORLD_SIZE LOCAL_WORLD_SIZE NODE_RANK	always ours
 *   GROUP_RANK GROUP_WORLD_SIZE ROLE_RANK ROLE_WORLD_SIZE	always ours
 *   MASTER_ADDR MASTER_PORT OMP_NUM_THREADS			user's wins
 *   GLOO_SOCKET_IFNAME NCCL_SOCKET_IFNAME			user's wins
 *
 * The names are those of torchrun, where a group is a node, and all ranks have
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

enum { DDP_VARS_VALUE_SIZE = 256 };	/* holds every value and its NUL */

struct ddp_vars {
	struct ddp_rank rank;
	uint32_t world_size;
	uint32_t node_count;
	uint32_t cpus;			/* for OMP_NUM_THREADS; 0: not set */
	const char *master_addr;	/* NULL: not set */
	uint16_t master_port;		/* 0: not set */
	const char *interface;		/* GLOO_SOCKET_IFNAME; NULL: not set */
	const char *nccl_interface;	/* NCCL_SOCKET_IFNAME; NULL: not set */
};

/* The table's rows, index from 0 to count - 1; NULL and false beyond. */
size_t ddp_vars_count(void);
const char *ddp_vars_name(size_t index);
bool ddp_vars_user_wins(size_t index);

/*
 * Write the row's value to value[size]. Returns 1; 0 if it has none here, with
 * value empty; -1 if it does not fit, never when size is DDP_VARS_VALUE_SIZE
 * and strings are at most DDP_HOSTNAME_MAX long, or if index is beyond.
 */
int ddp_vars_format(size_t index, const struct ddp_vars *vars, char *value,
		    size_t size);

/* Set to PCI_BUS_ID where the order of GPUs is set. No row of the table. */
#define DDP_VARS_DEVICE_ORDER "CUDA_DEVICE_ORDER"

/*
 * The record, one line: "job=12.3 RANK=0 MASTER_ADDR=n1 MASTER_PORT=23456".
 * Begin it with the job and step, add each variable that was set, and put it
 * into the environment under this name.
 */
#define DDP_VARS_RECORD "DDP_SET"
enum { DDP_VARS_RECORD_SIZE = 2048 };	/* holds every record and its NUL */

/* Both return 0, or -1 if it does not fit, or a value has a space in it. */
int ddp_vars_record_begin(char *record, size_t size, uint32_t job_id,
			  uint32_t step_id);
int ddp_vars_record_add(char *record, size_t size, const char *name,
			const char *value);

/* Whether record (NULL: no) says that name was set to exactly value. */
bool ddp_vars_recorded(const char *record, const char *name,
		       const char *value);

#endif
