/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The options of srun, sbatch or salloc, read through their own accessors: the
 * plugin's only use of Slurm beyond spank.h.
 */
#ifndef DDP_SRUN_CLI_H
#define DDP_SRUN_CLI_H

#include <stdbool.h>

/* Whether this Slurm has the accessors. */
bool ddp_cli_available(void);

/* Whether an option was given; of --cpu-bind this is all that is told. */
bool ddp_cli_isset(const char *option);

/* An option's value, borrowed for ever; NULL where it was not given. */
const char *ddp_cli_get(const char *option);

/*
 * Whether the option of this letter, such as 'N', is on the command line, and
 * not only in the environment; false where this Slurm does not tell.
 */
bool ddp_cli_typed(char letter);

/* Its value, or Slurm's own value where it was not given. */
const char *ddp_cli_get_default(const char *option);

/* Whether Slurm has an MPI plugin of this name, such as "pmix". */
bool ddp_cli_has_mpi(const char *type);

#endif
