/* SPDX-License-Identifier: BSD-3-Clause */
/* The plugin's state in one run of srun, before anything is known. */
#include "srun/context.h"

struct ddp_srun ddp_srun = { .held = -1, .terminal = -1 };
