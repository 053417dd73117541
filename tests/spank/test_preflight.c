/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests what --ddp-check refuses before it starts anything, and how it reads the
 * output of its step. @/bin has a ddp-bench that does as FAKE_BENCH tells: see
 * tests/spank/run.
 */
#include "host.h"

#define STEP "--nodes=2 --gres=gpu:2 a.out"
#define BENCH "SLURM_JOB_ID=13|PATH=@/bin:/usr/bin:/bin|FAKE_BENCH="
#define PASSED "ddp-bench: preflight passed: "
#define SAYS "srun: error: slurm-ddp: --ddp-check: "
#define RUNS "SLURM_KILL_BAD_EXIT=1|-FAKE_ARGUMENTS"

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
	{ .name = "the command runs after a check that has passed",
	  .command = "srun --ddp --ddp-check " STEP, .env = BENCH "passed",
	  .want = RUNS, .err = PASSED "fit\n" },
	{ .name = "a check has srun's options, its own output and its limit",
	  .command = "srun --ddp --ddp-check=7 --ddp-logs=/tmp/x --noise "
	  "-N2 --gres=gpu:2 a.out", .env = BENCH "arguments", .want = RUNS,
	  .err = PASSED "--ddp --ddp-check=7 --noise -N2 --gres=gpu:2 "
	  "--output=all --error=all --input=none @ --preflight --limit 7\n"
	  "srun: noise\n" },
	{ .name = "a check that did not pass ends the command",
	  .command = "srun --ddp --ddp-check " STEP, .env = BENCH "failed",
	  .status = 1, .err = "ddp-bench: preflight failed: n2 --exclude=n2\n"
	  SAYS "did not pass, and so the command was not started\n" },
	{ .name = "a check that says nothing is shown with what it printed",
	  .command = "srun --ddp --ddp-check " STEP, .env = BENCH "silent",
	  .status = 1, .err = "something else\n" SAYS "did not pass, and so "
	  "the command was not started\n" },
	{ .name = "a step that fails after it has passed is no pass",
	  .command = "srun --ddp --ddp-check " STEP, .env = BENCH "lost",
	  .status = 1, .err = PASSED "fit\n" SAYS "its step failed, and so "
	  "the command was not started; to see why, run srun --ddp ddp-bench "
	  "--preflight\n" },
	{ .name = "a check runs on the spares, too",
	  .command = "srun --ddp --ddp-check --ddp-restarts=1 --ddp-spares=1 "
	  "-N2 -n4 a.out", .env = BENCH "arguments|SLURM_JOB_ID=19",
	  .want = RUNS, .err = PASSED "--ddp --ddp-check --ddp-restarts=1 "
	  "--ddp-spares=1 -N2 -n4 --output=all --error=all --input=none "
	  "--nodes=3 --nodelist=n1,n2,n3 --ddp-spares=0 --ntasks=6 @ "
	  "--preflight\nsrun: slurm-ddp: --ddp-spares: when Slurm gives a "
	  "lost node up, it ends job 19, unless that has --no-kill; give "
	  "sbatch or salloc that, with --ddp beside it, by which srun knows "
	  "of it\n" },
	{ .name = "a spare takes the place of a node that a check did not pass",
	  .command = "srun --ddp --ddp-check --ddp-restarts=1 --ddp-spares=1 "
	  "-N2 --gres=gpu:2 a.out", .env = BENCH "unfit|SLURM_JOB_ID=19",
	  .want = RUNS, .err = "ddp-bench: preflight failed: n2 --exclude=n2\n"
	  "slurm-ddp: --ddp-check: n3 in place of n2, which is not fit; no "
	  "spare is left\n" PASSED "--ddp --ddp-check --ddp-restarts=1 "
	  "--ddp-spares=1 -N2 --gres=gpu:2 --output=all --error=all "
	  "--input=none --nodes=2 --nodelist=n1,n3 --ddp-spares=0\n" },
	{ .name = "of the output of a check the last 2 MiB are kept",
	  .command = "srun --ddp --ddp-check " STEP, .env = BENCH "much",
	  .want = RUNS, .err = PASSED "last\n" },
	{ .name = "--ddp-check without --ddp", .refusal = "--ddp-check: given "
	  "without --ddp; add --ddp", .command = "srun --ddp-check " STEP },
};

void test_preflight(void)
{
	cases_run(cases, sizeof(cases) / sizeof(cases[0]));
}
