/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * In slurmstepd, all tasks of a node that see the same GPUs: where each is put.
 * The machines are those of tests/golden, where placements are reasoned more
 * fully; here is whether each task gets what was reasoned for it.
 *
 * server8 has 18 cores a socket with 2 threads, 36 apart (0-17,36-53 at NUMA
 * node 0, 18-35,54-71 at 1), GPUs 0 to 3 at socket 0, 4 to 7 at socket 1. nps4
 * has 8 NUMA nodes of 4 CPUs, GPUs 0 to 3 at NUMA nodes 3, 1, 7 and 5.
 */
#include "host.h"

#define ON(machine) "optional spank_ddp.so topology=@/topo/" machine ".xml"
#define STEPD(tasks, all, options) \
	"slurmstepd 0 0 " tasks " " all " --ddp " options " train"
#define NODE(tasks, all) "SLURM_JOB_ID=12|SLURM_STEP_NUM_TASKS=" all "|" \
	"SLURM_STEP_NODELIST=n[1-2]|SLURM_STEP_TASKS_PER_NODE=" tasks "(x2)|" \
	"SLURMD_NODENAME=n1|SLURM_DISTRIBUTION=block"
#define TWO NODE("2", "4")
#define SECOND "|SLURMD_NODENAME=n2|SLURM_PROCID=2"
#define GPUS(list) "|CUDA_VISIBLE_DEVICES=" list "|SLURM_STEP_GPUS=" list
#define WRONG "#cpus=18-20;#cpus=0-2"
#define OWN_LINE "slurm-ddp: --ddp-gpus=own: LOCAL_RANK is not a device " \
	"number, and programs that need to see both GPUs have no P2P " \
	"between them; use device 0, or --ddp-gpus=all\n"
#define SHARE_LINE "slurm-ddp: --ddp-gpus=share: there are more tasks " \
	"than GPUs, so LOCAL_RANK is not a device number and NCCL cannot be " \
	"used; use device 0, or ask for --gres=gpu:N\n"

static const struct spank_case even_cases[] = {
	/* 18 of 36 cores are near each, which is its even share. */
	{ .name = "a GPU at each socket", .env = TWO GPUS("0,4"),
	  .tasks = "#cpus=0-71", .command = STEPD("2", "4", ""),
	  .conf = ON("server8"), .want = "0:CUDA_VISIBLE_DEVICES=0,4|"
	  "1:CUDA_VISIBLE_DEVICES=0,4|0:CUDA_DEVICE_ORDER=PCI_BUS_ID|"
	  "1:CUDA_DEVICE_ORDER=PCI_BUS_ID|0:LOCAL_RANK=0|1:LOCAL_RANK=1|"
	  "0:#cpus=0-17,36-53|1:#cpus=18-35,54-71|0:OMP_NUM_THREADS=36|"
	  "1:OMP_NUM_THREADS=36|0:#memory=preferred:1|1:#memory=preferred:2|"
	  "0:RANK=0|1:RANK=1|#naps=0|"
	  "0:DDP_PLACEMENT=0\t0\t0\t0\tn1\t"
	  "CUDA_VISIBLE_DEVICES=0,4\t0-17,36-53\t"
	  "0\teth7\t1\t0\t0000:1a:00.0\tA100 SXM4 40GB\t2\t1 of 2 GPUs, by "
	  "local rank\t18 of 18 cores near it\t|"
	  "1:DDP_PLACEMENT=1\t0\t1\t1\tn1\t"
	  "CUDA_VISIBLE_DEVICES=0,4\t18-35,54-71\t"
	  "1\teth7\t1\t4\t0000:8a:00.0\tA100 SXM4 40GB\t2\t1 of 2 GPUs, by "
	  "local rank\t18 of 18 cores near it\t" },
	{ .name = "on another node", .env = TWO SECOND GPUS("0,4"),
	  .tasks = "#cpus=0-71", .command = STEPD("2", "4", ""),
	  .conf = ON("server8"), .want = "0:RANK=2|1:RANK=3|0:NODE_RANK=1|"
	  "0:#cpus=0-17,36-53|1:#cpus=18-35,54-71|"
	  "1:DDP_PLACEMENT=3\t1\t1\t1\tn2\t"
	  "CUDA_VISIBLE_DEVICES=0,4\t18-35,54-71\t"
	  "1\teth7\t1\t4\t0000:8a:00.0\tA100 SXM4 40GB\t2\t1 of 2 GPUs, by "
	  "local rank\t18 of 18 cores near it\t" },
	/* 18 cores for 4 ranks are 5, 5, 4 and 4. */
	{ .name = "eight", .env = NODE("8", "16") GPUS("0,1,2,3,4,5,6,7"),
	  .tasks = "#cpus=0-71", .command = STEPD("8", "16", ""),
	  .conf = ON("server8"), .want = "0:#cpus=0-4,36-40|1:#cpus=5-9,41-45|"
	  "2:#cpus=10-13,46-49|3:#cpus=14-17,50-53|4:#cpus=18-22,54-58|"
	  "5:#cpus=23-27,59-63|6:#cpus=28-31,64-67|7:#cpus=32-35,68-71|"
	  "0:OMP_NUM_THREADS=10|3:OMP_NUM_THREADS=8|3:#memory=preferred:1|"
	  "4:#memory=preferred:2|7:CUDA_VISIBLE_DEVICES=0,1,2,3,4,5,6,7|"
	  "7:#binds=1|7:#status=0" },
	/* Half of an even share is 4 cores: the near ones are enough. */
	{ .name = "GPUs that are not in the order of CPUs",
	  .env = NODE("4", "8") GPUS("0,1,2,3"), .tasks = "#cpus=0-31",
	  .command = STEPD("4", "8", ""), .conf = ON("nps4"),
	  .want = "0:#cpus=12-15|1:#cpus=4-7|2:#cpus=28-31|3:#cpus=20-23|"
	  "0:#memory=preferred:8|1:#memory=preferred:2|"
	  "2:#memory=preferred:80|3:#memory=preferred:20|"
	  "2:CUDA_VISIBLE_DEVICES=0,1,2,3|3:OMP_NUM_THREADS=4" },
	/* Rank 1 has GPUs 3, 4 and 5, at both sockets: no memory is nearer. */
	{ .name = "fewer tasks than GPUs", .env = NODE("3", "6")
	  GPUS("0,1,2,3,4,5,6,7"), .tasks = "#cpus=0-71",
	  .command = STEPD("3", "6", ""), .conf = ON("server8"),
	  .want = "0:CUDA_VISIBLE_DEVICES=0,3,6,1,2,4,5,7|"
	  "0:JAX_LOCAL_DEVICE_IDS=0,3,4|1:JAX_LOCAL_DEVICE_IDS=1,5,6|"
	  "2:JAX_LOCAL_DEVICE_IDS=2,7|"
	  "2:CUDA_VISIBLE_DEVICES=0,3,6,1,2,4,5,7|0:#cpus=0-11,36-47|"
	  "1:#cpus=12-23,48-59|2:#cpus=24-35,60-71|0:#memory=preferred:1|"
	  "1:#memory=default:0|2:#memory=preferred:2" },
	{ .name = "a user's OMP_NUM_THREADS, and other orders of devices",
	  .env = TWO GPUS("0,4") "|OMP_NUM_THREADS=3|CUDA_DEVICE_ORDER="
	  "FASTEST_FIRST|DDP_PLACEMENT=old", .tasks = "#cpus=0-71",
	  .command = STEPD("2", "4", ""), .conf = ON("server8"),
	  .want = "0:OMP_NUM_THREADS=3|0:#cpus=0-17,36-53|"
	  "0:CUDA_DEVICE_ORDER=PCI_BUS_ID" },
	/* 8 cores for 2 ranks, neighbours to each. */
	{ .name = "no GPU", .env = TWO, .tasks = "#cpus=0-7",
	  .command = STEPD("2", "4", ""), .conf = ON("bare"),
	  .want = "0:#cpus=0-3|1:#cpus=4-7|0:OMP_NUM_THREADS=4|"
	  "-0:CUDA_VISIBLE_DEVICES|-0:CUDA_DEVICE_ORDER|"
	  "0:#memory=preferred:1|1:#memory=preferred:2" },
	{ .name = "a GPU's device file in sight of one task", .env = TWO,
	  .tasks = "#cpus=0-7|#device;#cpus=0-7", .conf = ON("bare"),
	  .command = STEPD("2", "4", ""),
	  .want = "-0:ACCELERATE_USE_CPU|1:ACCELERATE_USE_CPU=true" },
	{ .name = "none of the node's GPUs", .env = TWO
	  "|CUDA_VISIBLE_DEVICES=NoDevFiles", .tasks = "#cpus=0-71",
	  .command = STEPD("2", "4", ""), .conf = ON("server8"),
	  .want = "0:CUDA_VISIBLE_DEVICES=NoDevFiles|-0:CUDA_DEVICE_ORDER|"
	  "1:#cpus=18-35,54-71" },
	{ .name = "one task", .env = NODE("1", "2") GPUS("4"),
	  .tasks = "#cpus=0-71", .command = STEPD("1", "2", ""),
	  .conf = ON("server8"), .want = "0:CUDA_VISIBLE_DEVICES=4|"
	  "0:#cpus=18-35,54-71|0:OMP_NUM_THREADS=36" },
	{ .name = "this machine, whatever it is", .env = TWO,
	  .tasks = "#cpus=0", .command = STEPD("2", "4", ""),
	  .want = "0:#cpus=0|1:#cpus=0|1:OMP_NUM_THREADS=1|1:RANK=1" },
};

static const struct spank_case pinned_cases[] = {
	{ .name = "tasks that Slurm has pinned to the wrong sockets",
	  .env = TWO GPUS("0,4"), .tasks = WRONG, .conf = ON("server8"),
	  .command = STEPD("2", "4", ""), .want =
	  "0:CUDA_VISIBLE_DEVICES=4,0|1:CUDA_VISIBLE_DEVICES=4,0|"
	  "0:#cpus=18-20|1:#cpus=0-2|0:#binds=0|1:#binds=0|"
	  "0:#memory=preferred:2|1:#memory=preferred:1|0:OMP_NUM_THREADS=3" },
	{ .name = "four of them", .env = NODE("4", "8") GPUS("0,1,2,3"),
	  .tasks = "#cpus=20-23;#cpus=28-31;#cpus=4-7;#cpus=12-15",
	  .command = STEPD("4", "8", ""), .conf = ON("nps4"),
	  .want = "0:CUDA_VISIBLE_DEVICES=3,2,1,0|"
	  "3:CUDA_VISIBLE_DEVICES=3,2,1,0|0:#cpus=20-23|3:#cpus=12-15|"
	  "0:#binds=0|3:#binds=0" },
	/* 3 of 4 are near, and enough; the fourth stays free. */
	{ .name = "masks over both sockets", .env = TWO GPUS("0,4"),
	  .tasks = "#cpus=17-20;#cpus=0-2,21", .conf = ON("server8"),
	  .command = STEPD("2", "4", ""), .want = "0:#cpus=18-20|"
	  "1:#cpus=0-2|0:CUDA_VISIBLE_DEVICES=4,0|0:#memory=preferred:2|"
	  "0:OMP_NUM_THREADS=3" },
	{ .name = "--cpu-bind", .env = TWO GPUS("0,4") "|SLURM_DDP_CPU_BIND=1|"
	  "SLURM_DDP_ADDED=SLURM_DDP_CPU_BIND", .conf = ON("server8"),
	  .tasks = "#cpus=17-20;#cpus=0-2,21",
	  .command = STEPD("2", "4", ""), .want = "0:#cpus=17-20|"
	  "1:#cpus=0-2,21|0:#binds=0|1:#binds=0|0:#memory=default:0|"
	  "0:CUDA_VISIBLE_DEVICES=4,0|0:OMP_NUM_THREADS=4|"
	  "-0:SLURM_DDP_CPU_BIND|-0:SLURM_DDP_ADDED" },
	{ .name = "--mem-bind", .env = TWO GPUS("0,4"), .conf = ON("server8"),
	  .tasks = "#cpus=0-71|#membind", .command = STEPD("2", "4", ""),
	  .want = "0:#memory=bind:1|1:#memory=bind:1|1:#cpus=18-35,54-71" },
	/* Memory is near anyway, because it comes from where the task runs. */
	{ .name = "a kernel that lets nothing be changed, and nothing need be",
	  .env = TWO GPUS("0,4"), .tasks = "#cpus=18-20|#fixed;"
	  "#cpus=0-2|#fixed", .command = STEPD("2", "4", ""),
	  .conf = ON("server8"), .want = "0:#cpus=18-20|0:#memory=default:0|"
	  "0:CUDA_VISIBLE_DEVICES=4,0" },
	{ .name = "CPUs that the topology lacks", .env = TWO GPUS("0,4"),
	  .tasks = "#cpus=70-80;#cpus=0-1", .command = STEPD("2", "4", ""),
	  .conf = ON("server8"), .want = "0:#cpus=70-71|1:#cpus=0-1|"
	  "0:CUDA_VISIBLE_DEVICES=4,0" },
};

static const struct spank_case option_cases[] = {
	{ .name = "--ddp-gpus=all", .env = TWO GPUS("0,4"), .tasks = WRONG,
	  .command = STEPD("2", "4", "--ddp-gpus=all"), .conf = ON("server8"),
	  .want = "0:CUDA_VISIBLE_DEVICES=4,0" },
	{ .name = "--ddp-gpus=own", .env = TWO GPUS("0,4"), .tasks = WRONG,
	  .command = STEPD("2", "4", "--ddp-gpus=own"), .conf = ON("server8"),
	  .want = "0:CUDA_VISIBLE_DEVICES=4|1:CUDA_VISIBLE_DEVICES=0|"
	  "0:CUDA_DEVICE_ORDER=PCI_BUS_ID", .err = OWN_LINE, .writes = 1 },
	{ .name = "--ddp-gpus=own, on another node", .conf = ON("server8"),
	  .env = TWO SECOND GPUS("0,4"), .tasks = WRONG,
	  .command = STEPD("2", "4", "--ddp-gpus=own"),
	  .want = "0:CUDA_VISIBLE_DEVICES=4|1:CUDA_VISIBLE_DEVICES=0" },
	/* 18 cores for 2 ranks. */
	{ .name = "--ddp-gpus=share", .env = NODE("4", "8") GPUS("0,4"),
	  .tasks = "#cpus=0-71", .conf = ON("server8"), .err = SHARE_LINE,
	  .writes = 1, .command = STEPD("4", "8", "--ddp-gpus=share"),
	  .want = "0:CUDA_VISIBLE_DEVICES=0|1:CUDA_VISIBLE_DEVICES=0|"
	  "2:CUDA_VISIBLE_DEVICES=4|3:CUDA_VISIBLE_DEVICES=4|"
	  "0:#cpus=0-8,36-44|1:#cpus=9-17,45-53|2:#cpus=18-26,54-62|"
	  "3:#cpus=27-35,63-71" },
	{ .name = "--ddp-gpus=share, and GPUs enough", .tasks = WRONG,
	  .env = TWO GPUS("0,4"), .conf = ON("server8"),
	  .command = STEPD("2", "4", "--ddp-gpus=share"),
	  .want = "0:CUDA_VISIBLE_DEVICES=4,0|1:CUDA_VISIBLE_DEVICES=4,0" },
	/* Their text is not even read. */
	{ .name = "--ddp-gpus=off", .env = TWO "|CUDA_VISIBLE_DEVICES=?",
	  .tasks = "#cpus=0-71", .conf = ON("server8"),
	  .command = STEPD("2", "4", "--ddp-gpus=off"),
	  .want = "0:CUDA_VISIBLE_DEVICES=?|-0:CUDA_DEVICE_ORDER|"
	  "0:#cpus=0-17,36-53|1:#cpus=18-35,54-71" },
	/* Two GPUs at socket 0, whose cores they share; half is enough. */
	{ .name = "--ddp-cpus=near", .env = TWO GPUS("0,1"),
	  .tasks = "#cpus=0-71", .conf = ON("server8"),
	  .command = STEPD("2", "4", "--ddp-cpus=near"),
	  .want = "0:#cpus=0-8,36-44|1:#cpus=9-17,45-53" },
	{ .name = "--ddp-cpus=spread", .env = TWO GPUS("0,1"),
	  .tasks = "#cpus=0-71", .conf = ON("server8"),
	  .command = STEPD("2", "4", "--ddp-cpus=spread"),
	  .want = "0:#cpus=0-17,36-53|1:#cpus=18-35,54-71|"
	  "1:CUDA_VISIBLE_DEVICES=0,1" },
	{ .name = "--ddp-cpus=off", .env = TWO GPUS("0,4"),
	  .tasks = "#cpus=0-71", .conf = ON("server8"),
	  .command = STEPD("2", "4", "--ddp-cpus=off"),
	  .want = "0:#cpus=0-71|0:#binds=0|0:#memory=default:0|"
	  "0:OMP_NUM_THREADS=72|0:CUDA_VISIBLE_DEVICES=0,4" },
	{ .name = "both off: no meeting, no topology", .conf = ON("missing"),
	  .env = TWO GPUS("0,4") "|DDP_PLACEMENT=old",
	  .tasks = "#cpus=0-3;#absent",
	  .command = STEPD("2", "4", "--ddp-gpus=off --ddp-cpus=off"),
	  .want = "0:#cpus=0-3|0:#binds=0|-0:DDP_PLACEMENT|0:RANK=0|"
	  "0:CUDA_VISIBLE_DEVICES=0,4|-0:CUDA_DEVICE_ORDER" },
	{ .name = "without --ddp there is none either", .conf = ON("missing"),
	  .env = TWO GPUS("0,4"), .tasks = "#cpus=0-3;#absent",
	  .command = "slurmstepd 0 0 2 4 train", .want = "0:#items=0|"
	  "0:#cpus=0-3|-0:RANK|0:#binds=0" },
	{ .name = "nor with --ddp=off", .conf = ON("missing"),
	  .env = TWO GPUS("0,4"), .tasks = "#cpus=0-3;#absent",
	  .command = STEPD("2", "4", "--ddp=explain --ddp=off"),
	  .want = "0:#items=0|-0:RANK" },
	{ .name = "nor for orted", .conf = ON("missing"), .env = TWO,
	  .tasks = "#cpus=0-3;#absent",
	  .command = "slurmstepd 0 0 2 4 --ddp orted", .want = "-0:RANK" },
};

void test_siblings(void)
{
	cases_run(even_cases, COUNT(even_cases));
	cases_run(pinned_cases, COUNT(pinned_cases));
	cases_run(option_cases, COUNT(option_cases));
}
