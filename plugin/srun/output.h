/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Holds back what srun prints while it reads its command line, where srun is
 * going to be run again, so that nobody sees it twice.
 */
#ifndef DDP_SRUN_OUTPUT_H
#define DDP_SRUN_OUTPUT_H

#include <stdio.h>

void ddp_output_hold(void);

/* Give srun its stderr back, and drop what was held back. */
void ddp_output_drop(void);

/* The same, but print it. Does nothing where nothing is held back. */
void ddp_output_release(void);

/* The user's stderr all the while, the caller's to close; NULL: it fails. */
FILE *ddp_output_open(void);

/*
 * Print one sentence the way srun does, made printable, and exit with 1. Does
 * not return. In sbatch and salloc too.
 */
void ddp_srun_refuse(const char *format, ...)
	__attribute__((format(printf, 1, 2), noreturn));

#endif
