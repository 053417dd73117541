/* SPDX-License-Identifier: BSD-3-Clause */
/* --ddp=help: the options in one screen of 24 lines and 80 columns. */
#define _GNU_SOURCE
#include "srun/help.h"

#include <stdio.h>
#include <stdlib.h>

#include "srun/rerun.h"

static const char text[] =
"srun --ddp [OPTION...] COMMAND: one data-parallel job, one task a GPU\n"
"  --ddp=explain            say what is chosen, and why\n"
"  --ddp=dry-run            show all ranks in a table, and run nothing\n"
"  --ddp=torchrun | srun    who starts a node's ranks: COMMAND, or srun\n"
"  --ddp=on | off           none of these words; as if --ddp was not given\n"
"  --ddp-gpus=all | own     a task sees the node's GPUs, or its own alone\n"
"  --ddp-gpus=share | off   several tasks a GPU; GPUs as Slurm gives them\n"
"  --ddp-cpus=near | spread | off    CPUs near the GPU; over the node; as given\n"
"  --ddp-port=PORT          MASTER_PORT\n"
"  --ddp-env=tf             TF_CONFIG, too\n"
"  --ddp-check[=SECONDS]    check the nodes first\n"
"  --ddp-logs=DIR           a file for the output of each rank\n"
"  --ddp-show=RANKS         print the output of these ranks alone: 0,3-5\n"
"  --ddp-report=FILE        how the step ended, as JSON\n"
"  --ddp-grace=SECONDS      time for the other ranks when one has failed\n"
"  --ddp-watchdog=SECONDS   end a step without progress\n"
"  --ddp-restarts=N         start a failed step again, so often\n"
"  --ddp-spares=K           nodes that replace lost ones then\n"
"  --ddp-signal=SIGNAL@SECONDS       a signal before the job's end\n"
"  --ddp-supervise=off      no supervisor\n"
"sbatch and salloc take them for the steps of a job. Manual: man slurm-ddp\n";

void ddp_help_print(void)
{
	ddp_output_release();
	fputs(text, stdout);
	exit(fflush(stdout) == 0 ? 0 : 1);
}
