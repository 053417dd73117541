/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The --ddp options, in every context, over what the site says (site.h). From
 * strong to weak: an option that was typed, now or for the job around; the
 * site's default for the job's partition; the site's for all; the plugin's.
 * Errors are kept until they are asked for, because a step without --ddp must
 * not notice them.
 */
#ifndef DDP_OPTIONS_OPTIONS_H
#define DDP_OPTIONS_OPTIONS_H

#include <stdbool.h>

#include <slurm/spank.h>

#include "options/plugin.h"

/*
 * slurm_spank_init calls read for each line of plugstack.conf, register once.
 */
void ddp_options_read(int argc, char **argv);
void ddp_options_register(spank_t spank);

/* --ddp=help calls this in srun, sbatch and salloc; it does not return. */
extern void (*ddp_options_help)(void);

/* The job's partition is known; NULL: it is not. ddp_plugin is what holds. */
void ddp_options_partition(const char *name);

/* Returns true if "--NAME", or "--NAME=WORD" with this very word, was typed. */
bool ddp_options_typed(const char *option);

/* The default of the site of this number; as ddp_site_default. */
const char *ddp_options_site(size_t index);

/* The first error that makes a --ddp step impossible; NULL if there is none. */
const char *ddp_options_error(void);

/*
 * An option that was typed, and does nothing where the ranks are not watched;
 * NULL: there is none.
 */
const char *ddp_options_need(void);

/*
 * Returns true if the hardware matters to this step; if not, nobody looks at
 * it.
 */
bool ddp_options_place(void);

#endif
