/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads what the step of --ddp-check has found, from the lines that it printed.
 * A text that is NULL has no finding.
 */
#ifndef DDP_SRUN_FINDINGS_H
#define DDP_SRUN_FINDINGS_H

#include <stdbool.h>

#include "layout/hostlist.h"

/* Returns true if ddp-bench says that all is well. */
bool ddp_findings_passed(const char *text);

/*
 * Print the findings, and change the text; where there are none, all of it is
 * the reason. passed: print only that.
 */
void ddp_findings_print(char *text, bool passed);

/* The nodes that are named as unfit, the caller's; NULL: none are. */
struct ddp_hostlist *ddp_findings_unfit(const char *text);

/*
 * Returns true if a node may not answer. The check's step there then holds what
 * it has on all nodes until Slurm gives the node up.
 */
bool ddp_findings_may_hold(const char *text);

#endif
