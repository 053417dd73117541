/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The questions that the plugin has for Slurm's controller. It asks them through
 * scontrol and squeue, because libslurm's own interface changes between releases.
 */
#ifndef DDP_SLURM_SCONTROL_H
#define DDP_SLURM_SCONTROL_H

#include <stdint.h>

#include "util/error.h"

/*
 * GPUs on each node of a job. Returns 0, or -1 if scontrol does not answer or
 * if the nodes differ.
 */
int ddp_scontrol_count_gpus(const char *job_id, uint32_t *gpus,
			    struct ddp_error *error);

/*
 * Returns what scontrol says of a "job" or a "partition", or of all (id NULL),
 * for the caller to free; NULL: nothing.
 */
char *ddp_scontrol_show(const char *what, const char *id);

/*
 * The cluster's switches or blocks, as layout/network.h reads them, for the caller to
 * free; NULL: there are none, or scontrol does not tell.
 */
char *ddp_scontrol_show_topology(void);

/*
 * Ask squeue for fields of a job that users do not write. They write some of those
 * that scontrol prints, where what they write may look like another field. The
 * option is -o or -O, and its format begins with the job's number. Returns what
 * follows that number, for the caller to free; NULL: squeue does not tell.
 */
char *ddp_squeue_show(const char *job_id, const char *option,
		      const char *format);

/* Returns what scontrol says of a step, for the caller to free; NULL: nothing. */
char *ddp_scontrol_show_step(uint32_t job_id, uint32_t step_id);

/*
 * Returns what follows "KEY   = " in a text that scontrol has of the "config",
 * up to the end of the text. NULL: there is no such line, or text is NULL.
 */
const char *ddp_scontrol_find_setting(const char *text, const char *key);

/*
 * The value of a word "NAME=value" in such a text (NULL: none), which does not
 * end at length; "" and 0 where there is none.
 */
const char *ddp_scontrol_find_word(const char *text, const char *name,
				   int *length);

#endif
