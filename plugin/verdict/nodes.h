/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of many nodes in one line, as Slurm shortens them: "n[2-4,7],login". */
#ifndef DDP_VERDICT_NODES_H
#define DDP_VERDICT_NODES_H

#include <stdint.h>

#include "util/text.h"

/*
 * Adds them, sorted, which changes their order in names, too: "n2", or
 * "n[2-4]". Of more than 16 ranges: " and 5 more". Names are different from each
 * other.
 */
void ddp_nodes_add(struct ddp_text *text, const char **names, uint32_t count);

#endif
