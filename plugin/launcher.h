/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DDP_PLUGIN_LAUNCHER_H
#define DDP_PLUGIN_LAUNCHER_H

#include <stdbool.h>

/* Whether a command is a helper that an MPI launcher starts by srun. */
bool ddp_launcher_is_helper(const char *command);

#endif
