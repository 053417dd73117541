/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How many GPUs a Slurm request or allocation names.
 */
#ifndef DDP_LAYOUT_GRES_H
#define DDP_LAYOUT_GRES_H

#include <stddef.h>
#include <stdint.h>

#include "layout/error.h"

enum { DDP_GRES_MAX = 65535 };	/* GPUs of a node, or of one request */

/*
 * Whole GPUs of a node in a --gres text or in TresPerNode or GRES of scontrol:
 * "gpu" (1), "gpu:2", "gpu:a100:2", "gres/gpu:2", "gres/gpu=2", "gres:gpu:2",
 * "gpu:a100:2(IDX:0,2-3)", or a comma list, added up. "none", NULL, "" and
 * items of other names (shard, mps, nic, ...) are 0. A number may have Slurm's
 * suffixes (2k is 2048).
 *
 * As one list must not be read in two ways, a type that occurs twice (of which
 * Slurm keeps the last) and a mixture of items with and without a type (which
 * Slurm refuses) are errors. Returns 0, or -1 with *gpus unchanged.
 */
int ddp_gres_count_gpus(const char *text, uint32_t *gpus,
			struct ddp_error *error);

/*
 * GPUs in the text of --gpus or --gpus-per-node: "2", "a100" (1), "a100:2", or
 * a comma list; the rest as above.
 */
int ddp_gpus_count(const char *text, uint32_t *gpus, struct ddp_error *error);

/*
 * Write to share[size] what --gpus-per-node must say for each of nodes (at
 * least 1) to get its part of --gpus: of "a100:4,v100:2" over 2, that is
 * "a100:2,v100:1". Returns 0; -1 with an empty share if a type does not divide
 * evenly, or if it does not fit.
 */
int ddp_gpus_divide(const char *text, uint32_t nodes, char *share, size_t size,
		    struct ddp_error *error);

#endif
