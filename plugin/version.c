/* SPDX-License-Identifier: BSD-3-Clause */
/* Which version a plugin's file is of, for ddp-info --doctor to find in it. */
#include "config.h"

__attribute__((used))
static const char version[] = "slurm-ddp plugin " DDP_VERSION;
