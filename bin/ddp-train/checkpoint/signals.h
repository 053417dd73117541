/* SPDX-License-Identifier: BSD-3-Clause */
/* SIGUSR1 and SIGTERM ask the run to save and to end. */
#ifndef DDP_TRAIN_SIGNALS_H
#define DDP_TRAIN_SIGNALS_H

#include <stdbool.h>

struct ddp_error;

/*
 * Takes SIGUSR1 and SIGTERM: the first one is only noted, and a second one ends
 * the process at once, with exit code 128 + its number. Slurm, srun and the
 * script of a batch job may each send the first one, so signals within two
 * seconds of it count as one. Call it before other threads begin, as they must
 * not get these signals; a later call does nothing. Returns 0, or -1 with error
 * set.
 */
int signals_catch(struct ddp_error *error);

/* Returns true once one of the signals has come. */
bool signals_have_come(void);

#endif
