/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts the GPUs that a Slurm request or allocation names. */
#ifndef DDP_REQUEST_GRES_H
#define DDP_REQUEST_GRES_H

#include <stddef.h>
#include <stdint.h>

#include "util/error.h"

enum { DDP_GRES_MAX = 65535 };	/* GPUs of a node, or of one request */

/*
 * Count the whole GPUs of a node in a --gres text or in TresPerNode or GRES of
 * scontrol: "gpu" (1), "gpu:2", "gpu:a100:2", "gres/gpu:2", "gres/gpu=2",
 * "gres:gpu:2", "gpu:a100:2(IDX:0,2-3)", or a comma list, added up. "none",
 * NULL, "" and items of other names (shard, mps, nic, ...) are 0. A number may
 * have Slurm's suffixes (2k is 2048).
 *
 * A list that could be read in two ways is an error: one in which a type comes
 * twice (Slurm keeps the last) and one in which some items have a type and some
 * have none (Slurm refuses it). Returns 0, or -1 with *gpus unchanged.
 */
int ddp_gres_count_gpus(const char *text, uint32_t *gpus,
			struct ddp_error *error);

/*
 * Count the GPUs in the text of --gpus or --gpus-per-node: "2", "a100" (1),
 * "a100:2", or a comma list; the rest as above.
 */
int ddp_gpus_count(const char *text, uint32_t *gpus, struct ddp_error *error);

/*
 * Write to share[size] what --gpus-per-node must be for each of nodes (at least
 * 1) to get its part of --gpus: with "a100:4,v100:2" over 2 nodes,
 * "a100:2,v100:1". Returns 0; -1 with an empty share if a type does not divide
 * evenly, or if it does not fit.
 */
int ddp_gpus_divide(const char *text, uint32_t nodes, char *share, size_t size,
		    struct ddp_error *error);

#endif
