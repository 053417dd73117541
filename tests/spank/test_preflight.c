/* SPDX-License-Identifier: BSD-3-Clause */
/* What --ddp-check refuses before it starts anything. */
#include "host.h"

#define STEP "--nodes=2 --gres=gpu:2 a.out"

static const struct spank_case cases[] = {
	{ .name = "a check in no job", .refusal = "--ddp-check: this srun makes "
	  "a job of its own, and the check would be another one",
	  .command = "srun --ddp --ddp-check " STEP },
	{ .name = "a check of a heterogeneous step", .env = "SLURM_JOB_ID=7",
	  .refusal = "--ddp-check: cannot check a heterogeneous step",
	  .command = "srun --ddp --ddp-check " STEP " : " STEP },
	{ .name = "a check without ddp-bench", .refusal = "--ddp-check: finds "
	  "no ddp-bench on PATH", .env = "SLURM_JOB_ID=7|PATH=/nowhere",
	  .command = "srun --ddp --ddp-check " STEP },
	{ .name = "a check that is taken back", .want = "SLURM_KILL_BAD_EXIT=1",
	  .command = "srun --ddp --ddp-check --ddp-check=off " STEP },
	{ .name = "an unknown --ddp-check", .refusal = "--ddp-check=of: not "
	  "on, off or a time; give seconds from 2 to 3600",
	  .command = "srun --ddp --ddp-check=of " STEP },
	{ .name = "a check of one second", .refusal = "--ddp-check=1: not on, "
	  "off or a time", .command = "srun --ddp --ddp-check=1 " STEP },
	{ .name = "a check for some seconds", .env = "SLURM_JOB_ID=7|"
	  "PATH=/nowhere", .refusal = "--ddp-check: finds no ddp-bench",
	  .command = "srun --ddp --ddp-check=3600 " STEP },
	{ .name = "--ddp-check without --ddp", .refusal = "--ddp-check: given "
	  "without --ddp; add --ddp", .command = "srun --ddp-check " STEP },
};

void test_preflight(void)
{
	cases_run(cases, sizeof(cases) / sizeof(cases[0]));
}
