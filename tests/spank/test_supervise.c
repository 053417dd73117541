/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * When srun gets a supervisor, and what is refused. The fake kernel opens port
 * 0 only, and its random bytes are all 5a.
 */
#include <stdio.h>

#include "host.h"

#define STEP "--nodes=2 --gres=gpu:2 a.out"
#define TOLD "SLURM_DDP_SUPERVISOR=0:1:5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a" \
	"5a5a5a5a5a5a5a5a5a5a5a5a5a"
#define KILL "SLURM_KILL_BAD_EXIT"
#define JOB "SLURM_JOB_ID=7"
#define SITE "optional spank_ddp.so ddp-restarts=2 ddp-grace=30"
#define THREADS "IDLE_THREADS="
#define DEAF "a thread of srun (\"srun\") does not leave signals to it; take " \
	"the library that starts that thread out of LD_PRELOAD"
#define DDP "SLURM_SPANK__SLURM_SPANK_OPTION_ddp_ddp="

static const struct spank_case cases[] = {
	{ .name = "a --ddp step has a supervisor",
	  .command = "srun --ddp " STEP, .want = TOLD "|" KILL "=1" },
	{ .name = "also where nothing is filled in", .want = TOLD,
	  .command = "srun --ddp -n4 -K1 --mpi=none --ntasks-per-node=2 "
	  STEP },
	{ .name = "one for all components", .want = TOLD, .command = "srun "
	  "--ddp --nodes=1 --gres=gpu:2 a : --nodes=2 --gres=gpu:1 b" },
	{ .name = "where the second has --ddp", .want = TOLD, .command = "srun "
	  "--nodes=1 --gres=gpu:2 a : --ddp --nodes=2 --gres=gpu:1 b" },
	{ .name = "where srun's parent ignores SIGCHLD", .childless = true,
	  .command = "srun --ddp " STEP, .want = TOLD },
	{ .name = "srun's exit code is that of the supervisor", .status = 3,
	  .command = "srun --ddp " STEP " : --quit", .want = "" },
	{ .name = "an srun that has threads of its own has a supervisor",
	  .env = THREADS "2", .command = "srun --ddp " STEP,
	  .want = TOLD "|" KILL "=1" },
	{ .name = "so has one whose threads are slow to answer",
	  .env = THREADS "slow", .command = "srun --ddp " STEP,
	  .want = TOLD "|" KILL "=1" },
	{ .name = "the exit code of an srun that has threads is kept",
	  .env = THREADS "2", .status = 3, .want = "",
	  .command = "srun --ddp " STEP " : --quit" },
	{ .name = "a thread that cannot be asked to block signals leaves the "
	  "step without a supervisor, which is said once", .env = THREADS
	  "deaf", .command = "srun --ddp " STEP, .want =
	  "-SLURM_DDP_SUPERVISOR|" KILL "=1", .err = "srun: slurm-ddp: nobody "
	  "watches this step, as the supervisor cannot run here: " DEAF
	  "\n" },
	{ .name = "--ddp-report is refused where there can be no supervisor",
	  .env = THREADS "deaf", .refusal = "--ddp-report: needs the "
	  "supervisor, which cannot run here: " DEAF,
	  .command = "srun --ddp --ddp-report=/dev/shm/a " STEP },
	{ .name = "--ddp-restarts is refused where there can be no supervisor",
	  .env = THREADS "deaf|" JOB, .refusal = "--ddp-restarts: needs the "
	  "supervisor, which cannot run here: " DEAF,
	  .command = "srun --ddp --ddp-restarts=1 " STEP },
	{ .name = "a thread leaves alone a step that wants no supervisor",
	  .env = THREADS "deaf", .want = "-SLURM_DDP_SUPERVISOR",
	  .command = "srun --ddp --ddp-supervise=off " STEP },
	{ .name = "none with --ddp-supervise=off", .want = "-SLURM_DDP_"
	  "SUPERVISOR|" KILL "=1",
	  .command = "srun --ddp --ddp-supervise=off " STEP },
	{ .name = "what somebody has exported is no supervisor",
	  .env = "SLURM_DDP_SUPERVISOR=1:00", .want = "-SLURM_DDP_SUPERVISOR",
	  .command = "srun --ddp --ddp-supervise=off " STEP },
	{ .name = "--ddp-grace leaves the end to the supervisor",
	  .command = "srun --ddp --ddp-grace=5 " STEP,
	  .want = TOLD "|" KILL "=0" },
	{ .name = "and not to Slurm, too", .refusal = "--ddp-grace: is given "
	  "with --kill-on-bad-exit",
	  .command = "srun --ddp --ddp-grace=5 -K1 " STEP },
	{ .name = "which the environment may say",
	  .env = KILL "=1", .refusal = "--ddp-grace: is given with",
	  .command = "srun --ddp --ddp-grace=5 " STEP },
	{ .name = "--ddp-grace without a supervisor", .refusal = "--ddp-grace: "
	  "needs the supervisor; leave out --ddp-supervise=off", .command =
	  "srun --ddp --ddp-grace=5 --ddp-supervise=off " STEP },
	{ .name = "--ddp-report without one", .refusal = "--ddp-report: needs",
	  .command = "srun --ddp --ddp-report=a --ddp-supervise=off " STEP },
	{ .name = "a report where nothing can be written", .refusal =
	  "--ddp-report=/nowhere/a: cannot write it: No such file or "
	  "directory; give a file in a folder of yours",
	  .command = "srun --ddp --ddp-report=/nowhere/a " STEP },
	{ .name = "a report that is a folder", .refusal =
	  "--ddp-report=/: cannot write it: Is a directory; give",
	  .command = "srun --ddp --ddp-report=/ " STEP },
	{ .name = "a report without a name", .refusal = "--ddp-report: names "
	  "no file", .command = "srun --ddp --ddp-report= " STEP },
	{ .name = "--ddp-grace=0", .refusal = "--ddp-grace=0: not a time",
	  .command = "srun --ddp --ddp-grace=0 " STEP },
	{ .name = "--ddp-watchdog=4", .refusal = "--ddp-watchdog=4: not a "
	  "time; give seconds from 5 to 86400",
	  .command = "srun --ddp --ddp-watchdog=4 " STEP },
	{ .name = "--ddp-watchdog without a number", .refusal =
	  "--ddp-watchdog=1m: not a time",
	  .command = "srun --ddp --ddp-watchdog=1m " STEP },
	{ .name = "--ddp-watchdog without a supervisor", .refusal =
	  "--ddp-watchdog: needs the supervisor; leave out",
	  .command = "srun --ddp --ddp-watchdog=5 --ddp-supervise=off " STEP },
	{ .name = "an srun that waits for nothing has no supervisor",
	  .command = "srun --ddp --async " STEP, .want = "-SLURM_DDP_"
	  "SUPERVISOR|" KILL "=1" },
	{ .name = "--ddp-report of such an srun", .refusal =
	  "--ddp-report: needs the supervisor; leave out --async",
	  .command = "srun --ddp --async --ddp-report=/dev/shm/a " STEP },
	{ .name = "--ddp-check of such an srun", .refusal = "--ddp-check: "
	  "tells the result to an srun that waits; leave out it or --async",
	  .command = "srun --ddp --async --ddp-check " STEP },
	{ .name = "an unknown --ddp-supervise", .refusal = "--ddp-supervise "
	  "'of' is not one of on, off; did you mean o",
	  .command = "srun --ddp --ddp-supervise=of " STEP },
	{ .name = "restarts are told to the tasks", .env = JOB,
	  .command = "srun --ddp --ddp-restarts=3 " STEP,
	  .want = TOLD "|SLURM_DDP_RESTARTS=0:3" },
	{ .name = "not what somebody has exported", .env = JOB
	  "|SLURM_DDP_RESTARTS=1:2", .want = TOLD "|-SLURM_DDP_RESTARTS",
	  .command = "srun --ddp --ddp-restarts=0 " STEP },
	{ .name = "restarts are the site's", .env = JOB, .conf = SITE,
	  .command = "srun --ddp " STEP,
	  .want = TOLD "|SLURM_DDP_RESTARTS=0:2|" KILL "=0" },
	{ .name = "which the user undoes, and the grace with them", .env = JOB,
	  .command = "srun --ddp --ddp-restarts=0 --ddp-grace=off " STEP,
	  .conf = SITE, .want = TOLD "|-SLURM_DDP_RESTARTS|" KILL "=1" },
	{ .name = "a step without a job has none", .conf = SITE,
	  .command = "srun --ddp " STEP,
	  .want = TOLD "|-SLURM_DDP_RESTARTS|" KILL "=0" },
	{ .name = "nor one without a supervisor, which Slurm ends", .env = JOB,
	  .command = "srun --ddp --ddp-supervise=off " STEP, .conf = SITE,
	  .want = "-SLURM_DDP_SUPERVISOR|-SLURM_DDP_RESTARTS|" KILL "=1" },
	{ .name = "nor a heterogeneous one", .env = JOB, .conf = SITE,
	  .command = "srun --ddp " STEP " : " STEP,
	  .want = TOLD "|-SLURM_DDP_RESTARTS" },
	{ .name = "nor one that a failure does not end", .env = JOB,
	  .command = "srun --ddp -K0 " STEP, .conf = SITE,
	  .want = TOLD "|-SLURM_DDP_RESTARTS" },
	{ .name = "a site's check is for jobs alone", .conf = SITE
	  " ddp-check=on", .command = "srun --ddp " STEP, .want = TOLD },
	{ .name = "and for an srun that waits", .env = JOB, .conf = SITE
	  " ddp-check=on", .command = "srun --ddp --async " STEP,
	  .want = "-SLURM_DDP_SUPERVISOR" },
	{ .name = "where there can be no supervisor Slurm ends the step",
	  .env = THREADS "deaf", .command = "srun --ddp " STEP, .conf = SITE,
	  .want = "-SLURM_DDP_SUPERVISOR|" KILL "=1", .err = "srun: slurm-ddp: "
	  "nobody watches this step, as the supervisor cannot run here: " DEAF
	  "\n" },
	{ .name = "a site's check is for no container", .env = JOB, .conf = SITE
	  " ddp-check=on", .want = TOLD,
	  .command = "srun --ddp --container-image=a.sqsh " STEP },
	{ .name = "nor for who has no ddp-bench", .env = JOB "|PATH=/nowhere",
	  .conf = SITE " ddp-check=on", .command = "srun --ddp " STEP,
	  .want = TOLD, .err = "slurm-ddp: the site's ddp-check= is left "
	  "out: finds no ddp-bench on PATH; install it, on the nodes too, and "
	  "add its folder to PATH\n" },
	{ .name = "who types it is refused", .env = JOB, .conf = SITE,
	  .refusal = "--ddp-grace: needs the supervisor; leave out "
	  "--ddp-supervise=off",
	  .command = "srun --ddp --ddp-grace=9 --ddp-supervise=off " STEP },
	{ .name = "restarts without a job", .refusal = "--ddp-restarts: srun "
	  "gives its nodes back when a step fails, so this works within a job "
	  "only; use sbatch or salloc",
	  .command = "srun --ddp --ddp-restarts=3 " STEP },
	{ .name = "of a heterogeneous step", .env = JOB, .refusal =
	  "--ddp-restarts: is not for heterogeneous steps; leave it out",
	  .command = "srun --ddp --ddp-restarts=3 " STEP " : " STEP },
	{ .name = "without a supervisor", .env = JOB, .refusal =
	  "--ddp-restarts: needs the supervisor; leave out --ddp-supervise=off",
	  .command = "srun --ddp --ddp-restarts=3 --ddp-supervise=off " STEP },
	{ .name = "of a step that a failure does not end", .env = JOB,
	  .refusal = "--ddp-restarts: a step that a failure does not end, by "
	  "--kill-on-bad-exit=0, cannot be started again; leave that out, or "
	  "add --ddp-restarts=0",
	  .command = "srun --ddp --ddp-restarts=3 -K0 " STEP },
	{ .name = "too many of them", .env = JOB,
	  .refusal = "--ddp-restarts=1001: not a number from 0 to 1000",
	  .command = "srun --ddp --ddp-restarts=1001 " STEP },
	{ .name = "a number of them that is none", .env = JOB,
	  .refusal = "--ddp-restarts=: not a number from 0 to 1000",
	  .command = "srun --ddp --ddp-restarts= " STEP },
	{ .name = "spares without restarts", .env = JOB, .refusal =
	  "--ddp-spares: keeps nodes back for a restart; give "
	  "--ddp-restarts=N, too",
	  .command = "srun --ddp --ddp-spares=1 " STEP },
	{ .name = "restarts taken back, and a reason against them", .env = JOB
	  "|SLURM_SPANK__SLURM_SPANK_OPTION_ddp_ddp_spares=1", .want = "SLURM_JOB_ID=7",
	  .command = "srun --ddp --ddp-restarts=0 -K0 --relative=1 " STEP },
	{ .name = "spares where the user names the nodes", .env = JOB,
	  .refusal = "--ddp-spares: chooses the nodes of the step, as "
	  "--relative does; leave out one of them", .command =
	  "srun --ddp --ddp-restarts=1 --ddp-spares=1 --relative=1 " STEP },
	{ .name = "in a file", .env = JOB, .refusal = "--ddp-spares: chooses "
	  "the nodes of the step, as --nodefile does; leave out one of them",
	  .command = "srun --ddp --ddp-restarts=1 --ddp-spares=1 -Fa " STEP },
	{ .name = "by an order of ranks", .env = JOB, .refusal =
	  "--ddp-spares: chooses the nodes of the step, as "
	  "--distribution=arbitrary does; leave out one of them", .command =
	  "srun --ddp --ddp-restarts=1 --ddp-spares=1 -marbitrary " STEP },
	{ .name = "restarts where srun hides its options", .env = JOB,
	  .dir = "bare", .refusal = "--ddp-restarts: this srun does not show "
	  "its options to plugins; leave it out",
	  .command = "srun --ddp --ddp-restarts=1 " STEP },
	{ .name = "spares of which there are -1", .env = JOB,
	  .refusal = "--ddp-spares=-1: not a number from 0 to 1000",
	  .command = "srun --ddp --ddp-restarts=1 --ddp-spares=-1 " STEP },
	{ .name = "--ddp-grace without --ddp", .refusal = "--ddp-grace: given "
	  "without --ddp; add --ddp", .command = "srun --ddp-grace=5 " STEP },
};

void test_supervise(void)
{
	cases_run(cases, sizeof(cases) / sizeof(cases[0]));
}
