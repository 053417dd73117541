/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks that compute on GPUs meet over NCCL, the others over MPI, where each
 * would wait for ranks that have gone the other way. So before either begins,
 * all ranks compare their ways, by libddp, over PMIx.
 */
#ifndef DDP_TRAIN_MEET_H
#define DDP_TRAIN_MEET_H

#include "run/train_options.h"

struct collective;
struct ddp_error;

/*
 * Collective, if the launcher offers PMIx; else it does nothing. Returns 0; or
 * -1 with error set if this rank cannot join the others on its way. Ends all
 * ranks, with a sentence, if their ways differ or one does not come.
 */
int meet_compare(const struct collective *collective, enum backend way,
		 struct ddp_error *error);

#endif
