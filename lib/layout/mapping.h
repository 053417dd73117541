/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The PMI process mapping: which host runs which rank, in the form that
 * Slurm's mpi/pmix plugin exports in SLURM_PMIX_MAPPING_SERV.
 *
 * "(vector,(first,count,depth),...)": each block places depth ranks in a row
 * on host first, the next depth on the host after it, and so on for count
 * hosts; the next block goes on with the next rank. Hosts are numbers from 0
 * into the step's node list.
 */
#ifndef DDP_LAYOUT_MAPPING_H
#define DDP_LAYOUT_MAPPING_H

#include <stddef.h>
#include <stdint.h>

#include "layout/error.h"

/*
 * Returns an array of rank_count host indexes below host_count, one a rank,
 * which the caller frees; NULL unless the text places exactly rank_count
 * ranks (1 to DDP_RANK_MAX).
 */
uint32_t *ddp_mapping_parse(const char *text, size_t host_count,
			    size_t rank_count, struct ddp_error *error);

#endif
