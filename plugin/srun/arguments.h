/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DDP_SRUN_ARGUMENTS_H
#define DDP_SRUN_ARGUMENTS_H

#include <stddef.h>
#include <stdint.h>

/* The arguments of this process, NULL-terminated; NULL on error. */
char **ddp_arguments_read(void);
void ddp_arguments_free(char **argv);	/* NULL: nothing */

/*
 * The words of the command in the component that srun has just read, of those
 * arguments (NULL: none), up to a NULL that is put there. NULL if there is
 * none.
 */
char **ddp_arguments_command(char **argv, uint32_t component);

/*
 * Returns where the component after the one that srun has just read begins: the
 * index of its ":"; 0 if there is none. begin is where the component just read
 * begins (0: it is the first).
 */
uint32_t ddp_arguments_next(char **argv, uint32_t begin);

/*
 * Copy to value[size] what "NAME=value" or "NAME value" says, of the component
 * that begins at begin. Leaves value as it is where that is not there.
 */
void ddp_arguments_find(char *const *argv, uint32_t begin, const char *name,
			char *value, size_t size);

/* How many of them srun's own parser has passed, which stops at the command. */
int ddp_arguments_parsed(void);

#endif
