/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DDP_SRUN_FILL_H
#define DDP_SRUN_FILL_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Fill in, for the next run of srun, what the user left open in this component
 * of the step: better defaults than Slurm's. Returns whether there was any;
 * refuses where it cannot be known. Needs ddp_cli_available.
 */
bool ddp_fill_component(uint32_t component);

#endif
