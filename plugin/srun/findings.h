/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the step of --ddp-check has found, in the lines that it printed. A text
 * that is NULL has nothing.
 */
#ifndef DDP_SRUN_FINDINGS_H
#define DDP_SRUN_FINDINGS_H

#include <stdbool.h>

#include "layout/hostlist.h"

/* Whether ddp-bench says that all is well. */
bool ddp_findings_passed(const char *text);

/*
 * Print the findings, and change the text; where there are none, all of it is
 * the reason. passed: print only that.
 */
void ddp_findings_print(char *text, bool passed);

/* The nodes that are named as unfit, the caller's; NULL: none are. */
struct ddp_hostlist *ddp_findings_unfit(const char *text);

/*
 * Whether a node may not answer: until Slurm gives it up, the check's step there
 * holds what it has on all nodes.
 */
bool ddp_findings_may_hold(const char *text);

#endif
