/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * In slurmstepd, tasks that cannot be placed: one of them says why, in one
 * line, and all of them end, at once if it is known that they must. If a
 * sibling just does not come, the fake clock is ten times too fast.
 */
#include "host.h"

#define LINE "optional spank_ddp.so"
#define ON(machine) LINE " topology=@/topo/" machine ".xml"
#define STEPD(tasks, all, options) \
	"slurmstepd 0 0 " tasks " " all " --ddp " options " train"
#define TWICE STEPD("2", "4", "")
#define NODE(tasks, all) "SLURM_JOB_ID=12|SLURM_STEP_NUM_TASKS=" all "|" \
	"SLURM_STEP_NODELIST=n[1-2]|SLURM_STEP_TASKS_PER_NODE=" tasks "(x2)|" \
	"SLURMD_NODENAME=n1|CUDA_VISIBLE_DEVICES=0,4"
#define TWO NODE("2", "4")
#define MANY "SLURM_JOB_ID=12|SLURM_STEP_NUM_TASKS=4097|SLURM_PROCID=0|" \
	"SLURM_LOCALID=0|SLURM_STEP_NODELIST=n1|SLURMD_NODENAME=n1|" \
	"SLURM_STEP_TASKS_PER_NODE=4097"
#define ALL "#cpus=0-71"

static const struct spank_case topology_cases[] = {
	{ .name = "a topology that is missing", .env = TWO, .tasks = ALL,
	  .command = TWICE, .conf = ON("missing"), .refusal = "on n1: cannot "
	  "open the topology file " },
	{ .name = "a topology cut short", .env = TWO, .tasks = ALL,
	  .command = TWICE, .conf = ON("truncated"), .refusal = "truncated" },
	{ .name = "a topology with entities", .env = TWO, .tasks = ALL,
	  .command = TWICE, .conf = ON("entities"),
	  .refusal = "entities.xml declares entities" },
	{ .name = "a topology without anything", .env = TWO, .tasks = ALL,
	  .command = TWICE, .conf = ON("empty"), .refusal = "empty.xml" },
	{ .name = "a topology that is a FIFO", .env = TWO, .tasks = ALL,
	  .command = TWICE, .conf = ON("fifo"),
	  .refusal = "fifo.xml is not a regular file" },
	{ .name = "another machine's", .env = TWO, .tasks = "#cpus=0-1;"
	  "#cpus=100-103", .command = TWICE, .conf = ON("server8"),
	  .refusal = "local rank 1 may run on CPU 100, and on none that this "
	  "topology has; is it another machine's?" },
	{ .name = "a relative path", .env = TWO, .tasks = ALL,
	  .command = TWICE, .conf = LINE " topology=n1.xml",
	  .refusal = "rank 0 on n1: plugstack.conf: spank_ddp.so: topology="
	  "n1.xml: not the whole path of a file; begin" },
	{ .name = "%n in its name", .env = TWO "|CUDA_VISIBLE_DEVICES=0,1",
	  .tasks = "#cpus=0-7", .command = TWICE, .conf = ON("of-%n"),
	  .want = "0:#cpus=0-3|1:#cpus=4-7" },
	{ .name = "%n of another node", .env = TWO "|SLURMD_NODENAME=n2|"
	  "SLURM_PROCID=2", .tasks = ALL, .command = TWICE,
	  .conf = ON("of-%n"), .refusal = "topo/of-n2.xml" },
	{ .name = "%n twice, and % otherwise", .env = TWO, .tasks = ALL,
	  .command = TWICE, .conf = ON("%n%m%n%"),
	  .refusal = "topo/n1%mn1%.xml" },
	{ .name = "it is not opened without --ddp", .env = TWO,
	  .tasks = ALL, .command = "slurmstepd 0 0 2 4 train",
	  .conf = ON("missing"), .want = "0:#items=0" },
};

static const struct spank_case refused_cases[] = {
	{ .name = "more tasks than GPUs", .env = NODE("4", "8"), .tasks = ALL,
	  .command = STEPD("4", "8", ""), .conf = ON("server8"),
	  .refusal = "4 ranks have 2 GPUs; ask for --gres=gpu:4, start 2 "
	  "tasks a node, or let ranks share with --ddp-gpus=share" },
	{ .name = "GPUs from a variable that Slurm has not set are told so",
	  .env = NODE("4", "8"), .tasks = ALL, .conf = ON("server8"),
	  .command = STEPD("4", "8", ""), .refusal = "--ddp-gpus=share "
	  "(CUDA_VISIBLE_DEVICES is not from Slurm here; unset it, or use "
	  "--ddp-gpus=off)\n" },
	{ .name = "a variable that Slurm has set is not blamed",
	  .env = NODE("4", "8") "|SLURM_STEP_GPUS=0,4", .tasks = ALL,
	  .conf = ON("server8"), .command = STEPD("4", "8", ""),
	  .refusal = "4 ranks have 2 GPUs; ask for --gres=gpu:4, start 2 "
	  "tasks a node, or let ranks share with --ddp-gpus=share\n" },
	{ .name = "with --ddp-gpus=own as well", .env = NODE("4", "8"),
	  .tasks = ALL, .command = STEPD("4", "8", "--ddp-gpus=own"),
	  .conf = ON("server8"), .refusal = "4 ranks have 2 GPUs" },
	{ .name = "a kernel that does not tell CPUs", .env = TWO,
	  .tasks = ALL "|#blind", .command = TWICE, .conf = ON("server8"),
	  .refusal = "the kernel does not tell this task's CPUs: Operation "
	  "not permitted" },
	{ .name = "of one task", .env = TWO, .tasks = ALL ";" ALL "|#blind",
	  .command = TWICE, .conf = ON("server8"),
	  .refusal = "rank 1 on n1: the kernel does not tell" },
	{ .name = "a kernel that does not bind", .env = TWO,
	  .tasks = ALL "|#fixed", .command = TWICE, .conf = ON("server8"),
	  .refusal = "the kernel does not bind the task to its CPUs: Operation "
	  "not" },
	{ .name = "a reason of one task's before they meet", .env = TWO,
	  .tasks = ALL "|#late;" ALL "|SLURM_JOB_ID=x", .command = TWICE,
	  .conf = ON("server8"),
	  .refusal = "rank 1 on n1: SLURM_JOB_ID=x is not a number" },
	{ .name = "after the other has come", .env = TWO,
	  .tasks = ALL ";" ALL "|#late|SLURM_JOB_ID=x", .command = TWICE,
	  .conf = ON("server8"),
	  .refusal = "rank 1 on n1: SLURM_JOB_ID=x is not a number" },
	{ .name = "a reason of each task's own", .env = NODE("3", "6"),
	  .tasks = ALL "|SLURM_JOB_ID=x;" ALL "|CUDA_VISIBLE_DEVICES=?;" ALL
	  "|#blind", .command = STEPD("3", "6", ""), .conf = ON("server8"),
	  .refusal = "slurm-ddp: rank " },
	{ .name = "a reason of all, before they meet", .env = TWO
	  "|MASTER_PORT=0", .tasks = ALL, .command = TWICE,
	  .conf = ON("server8"), .refusal = "MASTER_PORT=0 is not a port" },
	{ .name = "a reason of all that the last task sees alone", .env = TWO,
	  .tasks = ALL ";" ALL "|MASTER_PORT=0", .command = TWICE,
	  .conf = ON("server8"), .refusal = "MASTER_PORT=0 is not a port" },
	{ .name = "too many tasks for one node", .env = MANY,
	  .command = "slurmstepd 0 0 4097 4097 --ddp train",
	  .refusal = "rank 0 on n1: 4097 tasks on this node are more than the "
	  "4096 that can be placed; start fewer, or use --ddp-gpus=off" },
	{ .name = "of which one speaks", .status = 1,
	  .env = MANY "|SLURM_PROCID=9|SLURM_LOCALID=9",
	  .command = "slurmstepd 0 0 4097 4097 --ddp train" },
	{ .name = "a bad option", .env = TWO, .tasks = ALL,
	  .command = STEPD("2", "4", "--ddp-gpus=mine"),
	  .conf = ON("server8"), .refusal = "rank 0 on n1: --ddp-gpus 'mine'" },
	{ .name = "an option that srun should have refused", .env = TWO,
	  .tasks = ALL, .command = STEPD("2", "4", "--ddp-cpus="),
	  .conf = ON("server8"), .refusal = "rank 0 on n1: --ddp-cpus ''" },
};

static const struct spank_case absent_cases[] = {
	{ .name = "a sibling that never comes", .env = TWO,
	  .tasks = ALL ";#absent", .command = TWICE, .conf = ON("server8"),
	  .refusal = "rank 0 on n1: 1 of this node's 2 tasks have come and 1 "
	  "are ready, but waiting for all has taken longer than 10 s" },
	{ .name = "one that dies first", .env = NODE("3", "6"),
	  .tasks = ALL "|#dies;" ALL ";" ALL,
	  .command = STEPD("3", "6", ""), .conf = ON("server8"),
	  .refusal = " on n1: 2 of this node's 3 tasks have come and 0 are "
	  "ready, but hwloc's discovery of the node has taken longer" },
	{ .name = "one that dies while it is looked at", .env = TWO,
	  .tasks = ALL ";" ALL "|#late|#lethal", .command = TWICE,
	  .conf = ON("server8"), .refusal = "rank 0 on n1: 2 of this node's 2 "
	  "tasks have come and 1 are ready, but " },
	{ .name = "the one that chooses dies", .env = TWO,
	  .tasks = ALL "|#lethal;" ALL "|#late", .command = TWICE,
	  .conf = ON("server8"), .refusal = "rank 1 on n1: 2 of this node's 2 "
	  "tasks have come and 1 are ready, but " },
};

/*
 * Slurm loads the plugin once for all lines and calls each hook once a line.
 */
static const struct spank_case line_cases[] = {
	{ .name = "two lines in plugstack.conf", .env = TWO, .tasks = ALL,
	  .conf = ON("server8") "\n" LINE " mpi=keep",
	  .command = STEPD("2", "4", "--ddp-gpus=own"),
	  .want = "0:CUDA_VISIBLE_DEVICES=0|1:CUDA_VISIBLE_DEVICES=4|"
	  "0:#binds=1|1:#cpus=18-35,54-71|#naps=0", .writes = 1,
	  .err = "slurm-ddp: --ddp-gpus=own: LOCAL_RANK is not a device "
	  "number, and programs that need to see both GPUs have no P2P "
	  "between them; use device 0, or --ddp-gpus=all\n" },
	{ .name = "three, of which one is wrong", .env = TWO, .tasks = ALL,
	  .conf = LINE "\n" LINE " speed=9\n" LINE, .command = TWICE,
	  .refusal = "rank 0 on n1: plugstack.conf: spank_ddp.so: speed=9" },
};

/* Rank 0 tries its port in both families, as far as the kernel has them. */
static const struct spank_case family_cases[] = {
	{ .name = "rank 0 finds its port free on a kernel without IPv6",
	  .env = TWO, .tasks = ALL "|#no-inet6", .command = TWICE,
	  .conf = ON("server8"), .want = "0:RANK=0|1:RANK=1" },
	{ .name = "rank 0 finds its port free where IPv6 is switched off",
	  .env = TWO, .tasks = ALL "|#inet6-off", .command = TWICE,
	  .conf = ON("server8"), .want = "0:RANK=0|1:RANK=1" },
};

/* The last words of a task get a head start over the news of its failure. */
static void test_naps(void)
{
	const struct spank_case fails = { .env = TWO, .tasks = ALL,
		.command = TWICE, .conf = ON("missing") "\n" LINE };
	const struct outcome *outcome = case_try(&fails);
	const char *naps = outcome_get(outcome, "#naps");

	case_report(naps && naps[0] == '1' && !naps[1],
		    "one pause for all tasks that fail", outcome->out);
}

void test_meeting(void)
{
	cases_run(topology_cases, COUNT(topology_cases));
	cases_run(refused_cases, COUNT(refused_cases));
	cases_run(absent_cases, COUNT(absent_cases));
	cases_run(line_cases, COUNT(line_cases));
	cases_run(family_cases, COUNT(family_cases));
	test_naps();
}
