/* SPDX-License-Identifier: BSD-3-Clause */
/* Files of the user's that srun reads to learn what a command starts. */
#ifndef DDP_SRUN_SCRIPT_H
#define DDP_SRUN_SCRIPT_H

#include <stdbool.h>

/*
 * A shell script, as ddp_command_read_fn in request/command.h wants it: a regular
 * file of at most 64 KiB, and unless shell is true one whose first line names a
 * shell. A name without a folder is sought where a shell or Slurm would.
 */
char *ddp_script_read(const char *name, bool shell);

/*
 * The configuration that "accelerate launch" reads: the file that its command
 * names, or if that is "" its default file; NULL: there is none.
 */
char *ddp_script_read_config(const char *name);

#endif
