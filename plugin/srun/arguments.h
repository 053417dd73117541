/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DDP_SRUN_ARGUMENTS_H
#define DDP_SRUN_ARGUMENTS_H

/* The arguments of this process, NULL-terminated; NULL on error. */
char **ddp_arguments_read(void);
void ddp_arguments_free(char **argv);	/* NULL: nothing */

/* How many of them srun's own parser has passed, which stops at the command. */
int ddp_arguments_parsed(void);

#endif
