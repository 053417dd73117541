/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DDP_SRUN_LAUNCH_H
#define DDP_SRUN_LAUNCH_H

#include <stdint.h>

/*
 * Look at the command of a component: ddp_srun.launcher is then right for it,
 * and the tasks are told. Refuses a launcher whose arguments cannot work.
 */
void ddp_launch_read(uint32_t component);

#endif
