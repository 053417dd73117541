/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The PMI process mapping: which host runs which rank, in the form in which
 * Slurm's mpi/pmix plugin exports it in SLURM_PMIX_MAPPING_SERV.
 *
 * "(vector,(first,count,depth),...)": a block places depth consecutive ranks on
 * host first, the next depth ranks on the host after it, and so on for count
 * hosts. The next block goes on with the next rank. Hosts are indexes, from 0,
 * into the step's node list.
 */
#ifndef DDP_LAYOUT_MAPPING_H
#define DDP_LAYOUT_MAPPING_H

#include <stddef.h>
#include <stdint.h>

#include "util/error.h"

/*
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

#endif
