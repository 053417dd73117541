/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Signals before a job's end: --ddp-signal, and Slurm's --signal, which goes to
 * more processes than its user thinks of.
 */
#include "host.h"

#define STEP "--nodes=2 --gres=gpu:2 a.out"
#define ASK " --ddp --ntasks-per-node=2 --cpus-per-task=2 --gres=gpu:2 "
#define TOO_MANY(value, better) ": slurm-ddp: --signal=" value " goes to " \
	"every process of the ranks, data loaders too; use --ddp-signal=" \
	better ", which goes to the ranks alone\n"
#define LAUNCHER "srun: slurm-ddp: --ddp-signal goes to torchrun, not to the " \
	"ranks that it starts; leave torchrun out, and srun starts one task " \
	"a rank\n"

static const struct spank_case cases[] = {
	{ .name = "sbatch --ddp-signal", .err = "",
	  .command = "sbatch" ASK "--ddp-signal=USR1@90 s.sh" },
	{ .name = "--signal for every process",
	  .command = "sbatch" ASK "--signal=USR1@90 s.sh",
	  .err = "sbatch" TOO_MANY("USR1@90", "USR1@90") },
	{ .name = "--signal at Slurm's own time",
	  .command = "salloc" ASK "--signal=USR1",
	  .err = "salloc" TOO_MANY("USR1", "USR1@60") },
	{ .name = "--signal with R:",
	  .command = "sbatch" ASK "--signal=R:USR2@9 s.sh",
	  .err = "sbatch" TOO_MANY("R:USR2@9", "USR2@9") },
	{ .name = "--signal for the script", .err = "",
	  .command = "sbatch" ASK "--signal=B:USR1@90 s.sh" },
	{ .name = "--signal for the script, with R", .err = "",
	  .command = "sbatch" ASK "--signal=RB:USR1@90 s.sh" },
	{ .name = "--signal without --ddp", .err = "",
	  .command = "sbatch --signal=USR1@90 s.sh" },
	{ .name = "srun's --signal, told once",
	  .command = "srun --ddp --signal=USR1@90 " STEP,
	  .err = "srun" TOO_MANY("USR1@90", "USR1@90") },
	{ .name = "which does nothing in a job", .err = "",
	  .command = "srun --ddp --signal=USR1@90 " STEP,
	  .env = "SLURM_JOB_ID=13" },
	{ .name = "--ddp-signal for torchrun's ranks", .err = LAUNCHER,
	  .command = "srun --ddp --ddp-signal=USR1@90 --nodes=2 --gres=gpu:2 "
	  "torchrun a.py" },
	{ .name = "--ddp-signal without its time",
	  .command = "srun --ddp --ddp-signal=USR1 " STEP,
	  .refusal = "--ddp-signal=USR1: not SIGNAL@SECONDS; give a signal "
	  "that a program can handle and a time from 1 to 65535, such as "
	  "USR1@90" },
	{ .name = "Slurm's B:", .refusal = "--ddp-signal=B:USR1@90: not ",
	  .command = "sbatch --ddp --ddp-signal=B:USR1@90 s.sh" },
	{ .name = "a signal that nobody can handle",
	  .command = "srun --ddp --ddp-signal=KILL@90 " STEP,
	  .refusal = "--ddp-signal=KILL@90: not " },
	{ .name = "--ddp-signal without --ddp",
	  .command = "srun --ddp-signal=USR1@90 " STEP,
	  .refusal = "--ddp-signal: given without --ddp; add --ddp" },
	{ .name = "--ddp-signal without who sends it",
	  .command = "srun --ddp --ddp-signal=USR1@90 --ddp-supervise=off "
	  STEP, .refusal = "--ddp-signal: needs the supervisor; leave "
	  "out --ddp-supervise=off" },
};

void test_signal(void)
{
	cases_run(cases, COUNT(cases));
}
