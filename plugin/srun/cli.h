/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The plugin asks srun, sbatch and salloc themselves for their options, through
 * their own accessors, for their command line, and for short node lists. This is
 * its only use of Slurm beyond spank.h.
 */
#ifndef DDP_SRUN_CLI_H
#define DDP_SRUN_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns true if this Slurm has the accessors. */
bool ddp_cli_available(void);

/*
 * Returns true if an option was given; no more than this is told of --cpu-bind.
 */
bool ddp_cli_isset(const char *option);

/* An option's value, borrowed for ever; NULL where it was not given. */
const char *ddp_cli_get(const char *option);

/*
 * Returns true if the option of this letter, such as 'N', is on the command
 * line, and not only in the environment; false where this Slurm does not tell.
 */
bool ddp_cli_typed(char letter);

/* An option's value, or Slurm's own value where it was not given. */
const char *ddp_cli_get_default(const char *option);

/* Returns true if Slurm has an MPI plugin of this name, such as "pmix". */
bool ddp_cli_has_mpi(const char *type);

/*
 * The arguments of this process, NULL-terminated; NULL on error. Of them srun's
 * own parser, which stops at the command, has passed optind.
 */
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

/*
 * A list of host names as short as Slurm writes it, n[1-3] for n1,n2,n3: execve
 * takes no argument of more than 128 KiB. sorted: in Slurm's order, and each once.
 * The list as it is where srun does not export what this takes. The caller frees
 * it; NULL: out of memory.
 */
char *ddp_hosts_compress(const char *list, bool sorted);

#endif
