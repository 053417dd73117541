/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Text that others wrote, in every kind of message: a newline in it must not
 * begin a line of its own, and no escape sequence may reach the terminal.
 * cases.c checks every case for unprintable bytes.
 */
#include <stdio.h>
#include <string.h>

#include "host.h"

#define FAKE "\n\033[31msrun:fake"
#define SEEN "??[31msrun:fake"
#define LINE "optional spank_ddp.so"
#define ON(machine) LINE " topology=@/topo/" machine ".xml"
#define SAY "slurm-ddp: "
#define OPEN "srun --ddp=explain --nodes=2 -n4 --mpi=pmix -K1 "
#define STEPD(words) "slurmstepd 0 0 2 4 --ddp " words " train"
#define TWO "SLURM_JOB_ID=12|SLURM_STEP_NUM_TASKS=4|SLURM_PROCID=0|" \
	"SLURM_STEP_NODELIST=n[1-2]|SLURM_STEP_TASKS_PER_NODE=2(x2)|" \
	"SLURMD_NODENAME=n1|CUDA_VISIBLE_DEVICES=0,4"
#define ALL "#cpus=0-71"

static const struct spank_case srun_cases[] = {
	{ .name = "a word of --ddp", .command = "srun --ddp=a" FAKE " b",
	  .refusal = "srun: error: slurm-ddp: --ddp 'a" SEEN "' is not" },
	{ .name = "a word of --ddp-gpus", .refusal = "'\?\?\?\?' is not one of",
	  .command = "srun --ddp --ddp-gpus=\302\233\177\001 b" },
	{ .name = "a port", .command = "srun --ddp --ddp-port=1" FAKE " b",
	  .refusal = "--ddp-port=1" SEEN ": " },
	{ .name = "a --gres", .refusal = SEEN,
	  .command = "srun --ddp --nodes=2 --gres=gpu:a" FAKE ":x b" },
	{ .name = "a number of GPUs", .refusal = SEEN,
	  .command = "srun --ddp --gpus=a" FAKE ":x --nodes=2 b" },
	{ .name = "a number of nodes", .refusal = "-N1-2x" SEEN " leaves",
	  .command = "srun --ddp --nodes=1-2x" FAKE " --gres=gpu:1 b" },
	{ .name = "the number of a job", .refusal = SEEN,
	  .command = "srun --ddp --jobid=1" FAKE " b" },
	{ .name = "a key of plugstack.conf", .command = "srun --ddp b",
	  .conf = LINE " a\033[31mb=c", .refusal = "a?[31mb=c: key '" },
	{ .name = "exported ones, in an explanation", .command = OPEN "a",
	  .env = "MASTER_ADDR=a" FAKE "|MASTER_PORT=\t9" FAKE,
	  .err = SAY "tasks 4 on 2 nodes: as asked for\n"
	  SAY "MPI type pmix: as asked for\n"
	  SAY "master a" SEEN ": MASTER_ADDR was exported\n"
	  SAY "port ?9" SEEN ": MASTER_PORT was exported\n"
	  SAY "a rank that fails ends the step: unless --kill-on-bad-exit "
	  "says otherwise\n" },
	{ .name = "an MPI type", .err = SAY "tasks 4 on 2 nodes: as asked "
	  "for\n" SAY "MPI type a" SEEN ": as asked for\n"
	  SAY "master n1: rank 0's node, the first of n[1-2]\n"
	  SAY "port 24331: from the job's and the step's number\n"
	  SAY "a rank that fails ends the step: unless --kill-on-bad-exit "
	  "says otherwise\n",
	  .command = "srun --ddp=explain --nodes=2 -n4 --mpi=a" FAKE " -K1 "
	  "b" },
};

static const struct spank_case stepd_cases[] = {
	{ .name = "a node's name", .env = TWO "|SLURMD_NODENAME=n1" FAKE,
	  .tasks = ALL, .command = STEPD(""), .conf = ON("server8"),
	  .refusal = " on n1" SEEN ": " },
	{ .name = "a list of nodes", .env = TWO "|SLURM_STEP_NODELIST=n1" FAKE,
	  .tasks = ALL, .command = STEPD(""), .conf = ON("server8"),
	  .refusal = " on n1: " },
	{ .name = "a master", .env = TWO "|MASTER_ADDR=a" FAKE, .tasks = ALL,
	  .command = STEPD(""), .conf = ON("server8"), .refusal = SEEN },
	{ .name = "a port of the user's", .env = TWO "|MASTER_PORT=1" FAKE,
	  .tasks = ALL, .command = STEPD(""), .conf = ON("server8"),
	  .refusal = "MASTER_PORT=1" SEEN " is not a port; " },
	{ .name = "a list of GPUs", .env = TWO "|CUDA_VISIBLE_DEVICES=0" FAKE,
	  .tasks = ALL, .command = STEPD(""), .conf = ON("server8"),
	  .refusal = "'0" SEEN "', byte 2: " },
	{ .name = "a distribution", .env = TWO "|SLURM_DISTRIBUTION=a" FAKE,
	  .tasks = ALL, .command = STEPD(""), .conf = ON("server8"),
	  .refusal = SEEN },
	{ .name = "an option that srun should have refused", .env = TWO,
	  .tasks = ALL, .command = STEPD("--ddp-cpus=a" FAKE),
	  .conf = ON("server8"), .refusal = "'a" SEEN "' is not one of" },
	{ .name = "an interface and a model, in the table",
	  .env = TWO "|GLOO_SOCKET_IFNAME=a\t" FAKE, .tasks = ALL,
	  .command = STEPD("--ddp=explain"), .conf = ON("odd"), .err =
	  SAY "master n1 port 24331: from the job's and the step's number\n"
	  SAY "on n1: there is no network interface for your "
	  "GLOO_SOCKET_IFNAME=a?" SEEN ": unset that, or name one that all "
	  "nodes have\n"
	  "RANK NODE LOCAL GPU BUS-ID NUMA CPUS INTERFACE\n"
	  "0 n1 0 0 0000:1a:00.0 0 0-17,36-53 "
	  "a?" SEEN "\n"
	  "1 n1 1 4 0000:8a:00.0 1 18-35,54-71 "
	  "a?" SEEN "\n" "MODEL all: A100?a?srun:fake 40GB\n" "WHY all: 1 of 2 GPUs, by local rank\n"
	  "WHY all: 18 of 18 cores near it\n" },
};

/* A value of 100,000 bytes stays, or one true sentence says why not. */
static void test_long(void)
{
	static char env[1 << 17], want[1 << 17], value[100001];
	static const struct {
		const char *name, *refusal;
	} rows[] = {
		{ "GLOO_SOCKET_IFNAME", NULL },
		{ "NCCL_SOCKET_IFNAME", NULL },
		{ "OMP_NUM_THREADS", NULL },
		{ "MASTER_ADDR", "does not resolve (Name or service not "
		  "known) on n1; " },
		{ "MASTER_PORT", "xxx is not a port; export one " },
		{ "SLURM_JOB_ID", "xxx is not a number" },
		{ "SLURMD_NODENAME", "xxx: Slurm runs it as local task" },
		{ "CUDA_VISIBLE_DEVICES", "expected a comma list" },
		{ "SLURM_DISTRIBUTION", "expected block, cyclic, " },
	};
	char name[64];
	struct spank_case test = { .name = name, .env = env, .tasks = ALL,
		.command = STEPD(""), .conf = ON("server8") };
	size_t i;

	memset(value, 'x', sizeof(value) - 1);
	for (i = 0; i < COUNT(rows); i++) {
		snprintf(name, sizeof(name), "a long %s", rows[i].name);
		snprintf(env, sizeof(env), TWO "|%s=%s", rows[i].name, value);
		snprintf(want, sizeof(want), "0:%s=%s", rows[i].name, value);
		test.refusal = rows[i].refusal;
		test.want = rows[i].refusal ? NULL : want;
		case_run(&test);
	}
}

void test_foreign(void)
{
	cases_run(srun_cases, COUNT(srun_cases));
	cases_run(stepd_cases, COUNT(stepd_cases));
	test_long();
}
