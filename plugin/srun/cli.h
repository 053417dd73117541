/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The options of srun, sbatch or salloc, read through their own accessors: the
 * plugin's only use of Slurm beyond spank.h.
 */
#ifndef DDP_SRUN_CLI_H
#define DDP_SRUN_CLI_H

#include <stdbool.h>

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

#endif
