/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DDP_SRUN_HELP_H
#define DDP_SRUN_HELP_H

/* Print the options in one screen, and exit with 0. */
void ddp_help_print(void) __attribute__((noreturn));

#endif
