/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * In slurmstepd, the names by which a task sees GPUs: views that Slurm has cut
 * for each task, UUIDs, MIG instances, AMD's variable. mig has two A100 with
 * two instances each: GPU-1... at CPUs 0-3 with MIG-a... and MIG-b..., GPU-2...
 * at CPUs 4-7 with MIG-c... and MIG-d... . amd has two MI250X at 0-3 and at
 * 4-7. For server8 see test_siblings.c.
 */
#include "host.h"

#define ON(machine) "optional spank_ddp.so topology=@/topo/" machine ".xml"
#define STEPD(options) "slurmstepd 0 0 2 4 --ddp " options " train"
#define TWO "SLURM_JOB_ID=12|SLURM_STEP_NUM_TASKS=4|SLURM_PROCID=0|" \
	"SLURM_STEP_NODELIST=n[1-2]|SLURM_STEP_TASKS_PER_NODE=2(x2)|" \
	"SLURMD_NODENAME=n1|SLURM_DISTRIBUTION=block"
#define SECOND "|SLURMD_NODENAME=n2|SLURM_PROCID=2"
#define VIEW(visible, step) \
	"|CUDA_VISIBLE_DEVICES=" visible "|SLURM_STEP_GPUS=" step
#define CUT_BEGIN "slurm-ddp: Slurm has given each task GPUs of its own " \
	"(--gpus-per-task, --gpu-bind), so LOCAL_RANK is not a device " \
	"number and P2P between GPUs is lost"
#define CUT_END "; use device 0, or ask for --gres=gpu:N instead\n"
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(23, 11, 0)
#define CUT_LINE CUT_BEGIN " (unless with " \
	"--gres-flags=allow-task-sharing)" CUT_END
#else
#define CUT_LINE CUT_BEGIN CUT_END
#endif
#define GPU1 "GPU-11111111-0000-0000-0000-000000000000"
#define GPU2 "GPU-22222222-0000-0000-0000-000000000000"
#define MIG(letters) "MIG-" letters "-0000-0000-0000-000000000000"

static const struct spank_case cut_cases[] = {
	/* With ConstrainDevices each counts its own from 0. */
	{ .name = "a GPU for each task", .env = TWO,
	  .tasks = "#cpus=0-71" VIEW("0", "4") ";#cpus=0-71" VIEW("0", "0"),
	  .command = STEPD(""), .conf = ON("server8"), .err = CUT_LINE,
	  .writes = 1, .want = "0:CUDA_VISIBLE_DEVICES=0|"
	  "1:CUDA_VISIBLE_DEVICES=0|0:#cpus=18-35,54-71|1:#cpus=0-17,36-53|"
	  "-0:JAX_LOCAL_DEVICE_IDS|1:JAX_LOCAL_DEVICE_IDS=0" },
	{ .name = "of which rank 0's node alone warns", .env = TWO SECOND,
	  .tasks = "#cpus=0-71" VIEW("0", "4") ";#cpus=0-71" VIEW("0", "0"),
	  .command = STEPD(""), .conf = ON("server8"),
	  .want = "0:#cpus=18-35,54-71|1:#cpus=0-17,36-53" },
	/* --ddp-gpus=own is not the reason here: Slurm has cut the views. */
	{ .name = "and that whatever --ddp-gpus says", .env = TWO,
	  .tasks = "#cpus=0-71" VIEW("0", "4") ";#cpus=0-71" VIEW("0", "0"),
	  .command = STEPD("--ddp-gpus=own"), .conf = ON("server8"),
	  .err = CUT_LINE, .want = "0:#cpus=18-35,54-71" },
	/* Without ConstrainDevices numbers are the node's. */
	{ .name = "each with the node's numbers", .env = TWO,
	  .tasks = "#cpus=0-71" VIEW("5", "5") ";#cpus=0-71" VIEW("2", "2"),
	  .command = STEPD(""), .conf = ON("server8"), .err = CUT_LINE,
	  .want = "0:CUDA_VISIBLE_DEVICES=5|1:CUDA_VISIBLE_DEVICES=2|"
	  "0:#cpus=18-35,54-71|1:#cpus=0-17,36-53" },
	{ .name = "two for each", .env = TWO, .err = CUT_LINE,
	  .tasks = "#cpus=0-71" VIEW("6,7", "6,7") ";"
		   "#cpus=0-71" VIEW("0,1", "0,1"),
	  .command = STEPD(""), .conf = ON("server8"),
	  .want = "0:CUDA_VISIBLE_DEVICES=6,7|1:CUDA_VISIBLE_DEVICES=0,1|"
	  "0:JAX_LOCAL_DEVICE_IDS=0,1|1:JAX_LOCAL_DEVICE_IDS=0,1|"
	  "0:#cpus=18-35,54-71|1:#cpus=0-17,36-53" },
	{ .name = "overlapping ones", .env = TWO, .err = CUT_LINE,
	  .tasks = "#cpus=0-71" VIEW("1,0", "1,0") ";"
		   "#cpus=0-71" VIEW("1,2", "1,2"),
	  .command = STEPD(""), .conf = ON("server8"),
	  .want = "0:CUDA_VISIBLE_DEVICES=1,0|1:CUDA_VISIBLE_DEVICES=1,2|"
	  "0:#cpus=0-8,36-44|1:#cpus=9-17,45-53" },
	/*
	 * One rank is near its GPU, on half of the node at least; the other is
	 * anywhere.
	 */
	{ .name = "a GPU for one of them only", .env = TWO, .err = CUT_LINE,
	  .tasks = "#cpus=0-71" VIEW("4", "4") ";#cpus=0-71",
	  .command = STEPD(""), .conf = ON("server8"),
	  .want = "0:CUDA_VISIBLE_DEVICES=4|-1:CUDA_VISIBLE_DEVICES|"
	  "0:#cpus=18-35,54-71|1:#cpus=0-17,36-53|"
	  "-1:CUDA_DEVICE_ORDER" },
	/* What they see is the same: there is nothing to warn of. */
	{ .name = "in another order for each", .env = TWO,
	  .tasks = "#cpus=0-71" VIEW("4,0", "4,0") ";"
		   "#cpus=0-71" VIEW("0,4", "0,4"),
	  .command = STEPD(""), .conf = ON("server8"),
	  .want = "0:CUDA_VISIBLE_DEVICES=4,0|1:CUDA_VISIBLE_DEVICES=4,0|"
	  "0:#cpus=18-35,54-71|1:#cpus=0-17,36-53" },
	/* A step with GPUs 4 to 7: the k-th of both lists is one GPU. */
	{ .name = "numbers that count the step's own", .env = TWO
	  VIEW("0,1,2,3", "2,3,4,5"), .tasks = "#cpus=0-71",
	  .command = STEPD(""), .conf = ON("server8"),
	  .want = "0:CUDA_VISIBLE_DEVICES=0,2,1,3|"
	  "1:CUDA_VISIBLE_DEVICES=0,2,1,3|0:#cpus=0-17,36-53|"
	  "1:#cpus=18-35,54-71" },
};

#define ALONE "slurm-ddp: a process sees one MIG instance, here that of its " \
	"rank, so LOCAL_RANK is not a device number, and NCCL does not run " \
	"between instances of one GPU; use device 0, and Gloo or MPI\n"

static const struct spank_case name_cases[] = {
	{ .name = "UUIDs", .env = TWO "|CUDA_VISIBLE_DEVICES=" GPU2 "," GPU1,
	  .tasks = "#cpus=0-7", .command = STEPD(""), .conf = ON("mig"),
	  .want = "0:CUDA_VISIBLE_DEVICES=" GPU2 "," GPU1 "|"
	  "1:CUDA_VISIBLE_DEVICES=" GPU2 "," GPU1 "|0:#cpus=4-7|1:#cpus=0-3|"
	  "0:CUDA_DEVICE_ORDER=PCI_BUS_ID" },
	{ .name = "UUIDs cut short, and tasks at the other socket",
	  .env = TWO "|CUDA_VISIBLE_DEVICES=GPU-2,GPU-1",
	  .tasks = "#cpus=0-1;#cpus=4-5", .command = STEPD(""),
	  .conf = ON("mig"), .want = "0:CUDA_VISIBLE_DEVICES=GPU-1,GPU-2|"
	  "0:#cpus=0-1|0:#binds=0|1:#binds=0" },
	{ .name = "MIG instances", .env = TWO "|CUDA_VISIBLE_DEVICES="
	  MIG("dddddddd") "," MIG("aaaaaaaa"), .tasks = "#cpus=0-7",
	  .command = STEPD(""), .conf = ON("mig"),
	  .want = "0:#cpus=4-7|1:#cpus=0-3|0:CUDA_VISIBLE_DEVICES="
	  MIG("dddddddd") "|1:CUDA_VISIBLE_DEVICES=" MIG("aaaaaaaa") "|"
	  "1:JAX_LOCAL_DEVICE_IDS=0", .err = ALONE },
	{ .name = "MIG instances of a launcher", .env = TWO
	  "|SLURM_STEP_TASKS_PER_NODE=1(x2)|SLURM_STEP_NUM_TASKS=2"
	  "|SLURM_DDP_LAUNCHER=2"
	  "|CUDA_VISIBLE_DEVICES=" MIG("dddddddd") "," MIG("aaaaaaaa"),
	  .tasks = "#cpus=0-7", .command = "slurmstepd 0 0 1 2 --ddp train",
	  .conf = ON("mig"), .err = "slurm-ddp: a process sees one MIG "
	  "instance, so ranks that a launcher starts all have the first; "
	  "start one task an instance instead: srun --ddp python3 PROGRAM\n" },
	{ .name = "MIG instances of one rank", .env = TWO
	  "|SLURM_STEP_TASKS_PER_NODE=1(x2)|SLURM_STEP_NUM_TASKS=2"
	  "|CUDA_VISIBLE_DEVICES=" MIG("dddddddd") "," MIG("aaaaaaaa"),
	  .tasks = "#cpus=0-7", .command = "slurmstepd 0 0 1 2 --ddp train",
	  .conf = ON("mig"), .want = "0:CUDA_VISIBLE_DEVICES="
	  MIG("dddddddd") "," MIG("aaaaaaaa") },
	/* Both are of one GPU, whose 4 cores are half of all: 2 for each. */
	{ .name = "MIG instances of one GPU", .env = TWO
	  "|CUDA_VISIBLE_DEVICES=" MIG("cccccccc") "," MIG("dddddddd"),
	  .tasks = "#cpus=0-7", .command = STEPD("--ddp-gpus=own"),
	  .conf = ON("mig"), .want = "0:#cpus=4-5|1:#cpus=6-7|"
	  "0:CUDA_VISIBLE_DEVICES=" MIG("cccccccc") "|"
	  "1:CUDA_VISIBLE_DEVICES=" MIG("dddddddd"),
	  .err = ALONE },
	{ .name = "ROCR_VISIBLE_DEVICES alone", .env = TWO
	  "|ROCR_VISIBLE_DEVICES=1,0|SLURM_STEP_GPUS=1,0",
	  .tasks = "#cpus=0-7", .command = STEPD(""), .conf = ON("amd"),
	  .want = "0:ROCR_VISIBLE_DEVICES=1,0|1:ROCR_VISIBLE_DEVICES=1,0|"
	  "0:#cpus=4-7|1:#cpus=0-3|-0:CUDA_VISIBLE_DEVICES|"
	  "-0:CUDA_DEVICE_ORDER" },
	{ .name = "a choice of the user's among AMD's GPUs is told", .env = TWO
	  "|ROCR_VISIBLE_DEVICES=1,0|SLURM_STEP_GPUS=1,0|HIP_VISIBLE_DEVICES=1",
	  .tasks = "#cpus=0-7", .command = STEPD(""), .conf = ON("amd"),
	  .want = "0:ROCR_VISIBLE_DEVICES=1,0|0:HIP_VISIBLE_DEVICES=1",
	  .err = "slurm-ddp: HIP_VISIBLE_DEVICES counts what "
	  "ROCR_VISIBLE_DEVICES leaves, so LOCAL_RANK may be another GPU than "
	  "the rank's; unset HIP_VISIBLE_DEVICES\n", .writes = 1 },
	{ .name = "Intel's GPUs are left alone where that is asked for", .env = TWO
	  "|ZE_AFFINITY_MASK=0,1|SLURM_STEP_GPUS=0,1", .tasks = "#cpus=0-7",
	  .command = STEPD("--ddp-gpus=off"), .conf = ON("amd"),
	  .want = "0:ZE_AFFINITY_MASK=0,1|0:RANK=0" },
	/*
	 * HIP's CUDA_VISIBLE_DEVICES counts what AMD's variable has left: only
	 * one may be changed.
	 */
	{ .name = "both, where AMD's speaks", .env = TWO
	  "|ROCR_VISIBLE_DEVICES=0,1|CUDA_VISIBLE_DEVICES=0,1",
	  .tasks = "#cpus=4-5;#cpus=0-1", .command = STEPD(""),
	  .conf = ON("amd"), .want = "0:ROCR_VISIBLE_DEVICES=1,0|"
	  "0:CUDA_VISIBLE_DEVICES=0,1|-0:CUDA_DEVICE_ORDER|0:#cpus=4-5" },
	{ .name = "both, where it does not", .env = TWO
	  "|ROCR_VISIBLE_DEVICES=0,4|CUDA_VISIBLE_DEVICES=0,4",
	  .tasks = "#cpus=18-20;#cpus=0-2", .command = STEPD(""),
	  .conf = ON("server8"), .want = "0:CUDA_VISIBLE_DEVICES=4,0|"
	  "0:ROCR_VISIBLE_DEVICES=0,4" },
	/* As in a virtual machine: numbers alone tell which GPU a rank has. */
	{ .name = "GPUs that the node does not show", .env = TWO
	  VIEW("1,0", "1,0"), .tasks = "#cpus=0-7", .command = STEPD(""),
	  .conf = ON("bare"), .want = "0:CUDA_VISIBLE_DEVICES=1,0|"
	  "0:#cpus=0-3|1:#cpus=4-7" },
};

#define UNNAMED(count) TWO "|SLURM_GPUS_ON_NODE=" count
#define UNNAMED_REFUSAL "--gpu-bind=none: Slurm does not name the step's " \
	"GPUs here, and which they are cannot be told: it has "

/* Several tasks under --gpu-bind=none: Slurm tells only how many. */
static const struct spank_case unnamed_cases[] = {
	{ .name = "all GPUs of the node", .env = UNNAMED("8"),
	  .tasks = "#cpus=18-20;#cpus=0-2", .command = STEPD(""),
	  .conf = ON("server8"), .want = "0:CUDA_DEVICE_ORDER=PCI_BUS_ID|"
	  "0:CUDA_VISIBLE_DEVICES=4,0,1,2,3,5,6,7|"
	  "1:CUDA_VISIBLE_DEVICES=4,0,1,2,3,5,6,7" },
	{ .name = "each with its own", .env = UNNAMED("8"),
	  .tasks = "#cpus=18-20;#cpus=0-2", .conf = ON("server8"),
	  .command = STEPD("--ddp-gpus=own"), .err = "slurm-ddp: "
	  "--ddp-gpus=own: LOCAL_RANK is not a device number, and programs "
	  "that need to see both GPUs have no P2P between them; use device 0, "
	  "or --ddp-gpus=all\n", .want = "0:CUDA_VISIBLE_DEVICES=4,5,6,7|"
	  "1:CUDA_VISIBLE_DEVICES=0,1,2,3" },
	{ .name = "AMD's", .env = UNNAMED("2"), .tasks = "#cpus=0-7",
	  .command = STEPD(""), .conf = ON("amd"), .want =
	  "0:ROCR_VISIBLE_DEVICES=0,1|-0:CUDA_VISIBLE_DEVICES|"
	  "-0:CUDA_DEVICE_ORDER|0:#cpus=0-3|1:#cpus=4-7" },
	{ .name = "--ddp-gpus=off leaves all as it is", .env = UNNAMED("4"),
	  .tasks = "#cpus=0-71", .command = STEPD("--ddp-gpus=off"),
	  .conf = ON("server8"), .want = "-0:CUDA_VISIBLE_DEVICES|"
	  "-0:CUDA_DEVICE_ORDER" },
	{ .name = "4 of 8, as it seems", .env = UNNAMED("4"),
	  .tasks = "#cpus=0-71", .command = STEPD(""), .conf = ON("server8"),
	  .refusal = UNNAMED_REFUSAL "4, and 8 are in sight; leave "
	  "--gpu-bind out, or use --ddp-gpus=off" },
	{ .name = "in parts", .env = UNNAMED("2"), .tasks = "#cpus=0-7",
	  .command = STEPD(""), .conf = ON("mig"),
	  .refusal = UNNAMED_REFUSAL "2, and 2 are in sight, divided by MIG" },
	{ .name = "that the node does not show", .env = UNNAMED("2"),
	  .tasks = "#cpus=0-7", .command = STEPD(""), .conf = ON("bare"),
	  .refusal = UNNAMED_REFUSAL "2, and 0 are in sight" },
	/* It is not from the user's own variable. */
	{ .name = "too few", .env = UNNAMED("1"), .tasks = "#cpus=0-3",
	  .command = STEPD(""), .conf = ON("one"), .refusal = "2 ranks have "
	  "1 GPUs; ask for --gres=gpu:2, start 1 tasks a node, or let ranks "
	  "share with --ddp-gpus=share" },
};

static const struct spank_case refused_cases[] = {
	{ .name = "Intel's GPUs", .env = TWO
	  "|ZE_AFFINITY_MASK=0,1|SLURM_STEP_GPUS=0,1", .tasks = "#cpus=0-7",
	  .command = STEPD(""), .conf = ON("bare"),
	  .refusal = "ZE_AFFINITY_MASK=0,1 gives Intel's GPUs, which --ddp "
	  "cannot place; use --ddp-gpus=off" },
	{ .name = "a number that the node lacks", .env = TWO VIEW("0,8", "0,8"),
	  .tasks = "#cpus=0-71", .command = STEPD(""), .conf = ON("server8"),
	  .refusal = "GPU 8 is given and this node has 8, counted from 0" },
	{ .name = "a UUID that the node lacks", .conf = ON("mig"),
	  .env = TWO "|CUDA_VISIBLE_DEVICES=" GPU1 ",GPU-33",
	  .tasks = "#cpus=0-7", .command = STEPD(""),
	  .refusal = "has the UUID GPU-33" },
	{ .name = "one GPU twice", .env = TWO VIEW("0,0", "0,0"),
	  .tasks = "#cpus=0-71", .command = STEPD(""), .conf = ON("server8"),
	  .refusal = "CUDA_VISIBLE_DEVICES names GPU 0 twice" },
	{ .name = "a malformed list", .env = TWO "|CUDA_VISIBLE_DEVICES=0,?",
	  .tasks = "#cpus=0-71", .command = STEPD(""), .conf = ON("server8"),
	  .refusal = "CUDA_VISIBLE_DEVICES '0,?', byte 3: expected a comma "
	  "list of GPU numbers or UUIDs" },
	{ .name = "a malformed list of one task's", .conf = ON("server8"),
	  .env = TWO, .tasks = "#cpus=0-71" VIEW("0", "0")
	  ";#cpus=0-71|CUDA_VISIBLE_DEVICES=0,?", .command = STEPD(""),
	  .refusal = "rank 1 on n1: CUDA_VISIBLE_DEVICES '0,?'" },
	{ .name = "of the other's", .conf = ON("server8"),
	  .env = TWO, .tasks = "#cpus=0-71|CUDA_VISIBLE_DEVICES=,;"
	  "#cpus=0-71|#late" VIEW("0", "0"), .command = STEPD(""),
	  .refusal = "rank 0 on n1: CUDA_VISIBLE_DEVICES ','" },
	{ .name = "more tasks than GPUs of one view", .conf = ON("server8"),
	  .env = TWO VIEW("3", "3"), .tasks = "#cpus=0-71",
	  .command = STEPD(""), .refusal = "2 ranks have 1 GPUs; ask for "
	  "--gres=gpu:2, start 1 tasks a node, or let ranks share with "
	  "--ddp-gpus=share" },
};

void test_views(void)
{
	cases_run(cut_cases, COUNT(cut_cases));
	cases_run(name_cases, COUNT(name_cases));
	cases_run(unnamed_cases, COUNT(unnamed_cases));
	cases_run(refused_cases, COUNT(refused_cases));
}
