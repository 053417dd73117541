/* SPDX-License-Identifier: BSD-3-Clause */
/* SIGUSR1 and SIGTERM ask the run to save and to end. */
#ifndef DDP_TRAIN_SIGNALS_H
#define DDP_TRAIN_SIGNALS_H

#include <stdbool.h>

struct ddp_error;

/*
 * From now on the first of these signals is only noted, and a second one ends
 * the process at once, with exit code 128 + its number. What comes within two
 * seconds is the first one still: Slurm, srun and the script of a batch job may
 * each send it. Call it before other threads begin, as they must not get these
 * signals; a later call does nothing. Returns 0, or -1 with error set.
 */
int signals_catch(struct ddp_error *error);

/* Whether one has come. */
bool signals_have_come(void);

#endif
