/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Texts that say which tasks there are: how many each node has, on which host
 * each rank runs, and lists of ranks.
 */
#ifndef DDP_LAYOUT_TASKS_H
#define DDP_LAYOUT_TASKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/error.h"

enum { DDP_RANK_MAX = 1 << 24 };	/* ranks in one job step */

/*
 * Read SLURM_STEP_TASKS_PER_NODE: "2(x3),1" is two tasks on each of three nodes
 * and one on a fourth. Writes the number of tasks of each node to
 * tasks[node_count]. The text must list exactly node_count nodes, with 1 to
 * DDP_RANK_MAX tasks in all; a node may have none. Returns 0, or -1 with tasks
 * undefined.
 */
int ddp_tasks_parse(const char *text, size_t node_count, uint32_t *tasks,
		    struct ddp_error *error);

/*
 * Read the PMI process mapping: which host runs which rank, in the form in
 * which Slurm's mpi/pmix plugin exports it in SLURM_PMIX_MAPPING_SERV.
 *
 * "(vector,(first,count,depth),...)": a block places depth consecutive ranks on
 * host first, the next depth ranks on the host after it, and so on for count
 * hosts. The next block goes on with the next rank. Hosts are indexes, from 0,
 * into the step's node list.
 *
 * Returns the host index of each of rank_count ranks (1 to DDP_RANK_MAX), all
 * below host_count, in an array that the caller frees. NULL if the text does
 * not place exactly so many ranks.
 */
uint32_t *ddp_mapping_parse(const char *text, size_t host_count,
			    size_t rank_count, struct ddp_error *error);

/*
 * The same for rank_count host indexes, as a text that the caller frees; NULL
 * if memory is short.
 */
char *ddp_mapping_format(const uint32_t *rank_hosts, size_t rank_count);

/* ---- a list of ranks, "0,3-5", stays text, as a step's size is known late */

/*
 * Check that a list names at least one rank, and none that a world of this size
 * lacks; 0: the size is not known. what, such as an option's name, begins the
 * error. Returns 0, or -1.
 */
int ddp_ranks_check(const char *what, const char *list, uint32_t world_size,
		    struct ddp_error *error);

/* Returns true if a list that was checked has this rank. */
bool ddp_ranks_has(const char *list, uint32_t rank);

#endif
