/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The --ddp options and plugstack.conf's arguments, in every context. Errors
 * are kept until they are asked for, because a step without --ddp must not
 * notice them.
 */
#ifndef DDP_PLUGIN_OPTIONS_H
#define DDP_PLUGIN_OPTIONS_H

#include <stdbool.h>

#include <slurm/spank.h>

/* Both from slurm_spank_init: once for each line of plugstack.conf; once. */
void ddp_options_read(int argc, char **argv);
void ddp_options_register(spank_t spank);

/* The first error that makes a --ddp step impossible; NULL if there is none. */
const char *ddp_options_error(void);

/* Whether the hardware matters to this step; if not, nobody looks at it. */
bool ddp_options_place(void);

#endif
