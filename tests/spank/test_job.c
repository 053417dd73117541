/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * In srun inside a job, whose environment has values that the user has not
 * typed for this step; and in sbatch and salloc, which make jobs. Job 13 has 2
 * GPUs on each node, 14 has different numbers, 15 is unknown, and 16 has none:
 * see tests/spank/run.
 */
#include "host.h"

#define JOB(id) "SLURM_JOB_ID=" id "|SLURM_JOB_NUM_NODES=2"
#define TASKS "SLURM_NTASKS_PER_NODE_HET_GROUP_0"
#define GPUS "SLURM_GPUS_PER_NODE_HET_GROUP_0"
#define CPUS "SRUN_CPUS_PER_TASK_HET_GROUP_0"
#define GIVEN "SLURM_CPUS_PER_TASK_HET_GROUP_0"
#define READS "FAKE_CPUS=SLURM_CPUS_PER_TASK|" \
	"SLURM_JOB_CPUS_PER_NODE=8(x2)|SLURM_CPUS_PER_TASK="
#define TIGHT_LINE ": slurm-ddp: one CPU a rank, and data loaders need " \
	"more; consider --cpus-per-task or --cpus-per-gpu\n"

#define ALL "SLURM_NTASKS_HET_GROUP_0"

/* A number of tasks that the job or an outer step has, and what is typed. */
static const struct spank_case inherited[] = {
	{ .name = "a typed --ntasks-per-node outranks the job's number",
	  .env = JOB("13") "|SLURM_NTASKS=4|SLURM_NTASKS_PER_NODE=2",
	  .command = "srun --ddp --ntasks-per-node=1 a",
	  .want = ALL "=2|-" TASKS },
	{ .name = "and an outer step's", .env = "SLURM_JOB_ID=13|"
	  "SLURM_JOB_NUM_NODES=1|SLURM_NTASKS=1|SLURM_STEP_ID=0",
	  .command = "srun --ddp --overlap --ntasks-per-node=2 a",
	  .want = ALL "=2|-" TASKS },
	{ .name = "a typed -N outranks an outer step's", .env = "SLURM_JOB_ID=13|"
	  "SLURM_JOB_NUM_NODES=1|SLURM_NTASKS=1|SLURM_STEP_ID=0",
	  .command = "srun --ddp --overlap -N2 --gres=gpu:2 a",
	  .want = ALL "=4|" TASKS "=2" },
	{ .name = "and a job's that has no room on its GPUs",
	  .env = "SLURM_JOB_ID=13|SLURM_JOB_NUM_NODES=3|SLURM_NTASKS=64",
	  .want = ALL "=4|" TASKS "=2", .command = "srun --ddp -N2 --gres=gpu:2 a" },
	{ .name = "but not without GPUs",
	  .env = "SLURM_JOB_ID=16|SLURM_JOB_NUM_NODES=3|SLURM_NTASKS=64",
	  .command = "srun --ddp -N2 a", .want = "-" ALL "|-" TASKS },
	{ .name = "nor does -w", .env = JOB("13") "|SLURM_NTASKS=4",
	  .command = "srun --ddp -wn1 a", .want = "-" ALL },
	{ .name = "--jobid alone: Slurm is asked for its nodes",
	  .command = "srun --ddp --jobid=17 a",
	  .want = TASKS "=2|SLURM_JOB_NUM_NODES_HET_GROUP_0=2" },
	{ .name = "too few CPUs for a rank on each GPU", .env = JOB("13")
	  "|SLURM_JOB_CPUS_PER_NODE=1(x2)", .command = "srun --ddp a",
	  .refusal = "2 GPUs a node make 2 ranks, and the job has CPUs for 1 "
	  "only; give salloc or sbatch --ddp, or --ntasks-per-node=2 or "
	  "--cpus-per-gpu=CPUS" },
	{ .name = "which may be shared", .env = JOB("13")
	  "|SLURM_JOB_CPUS_PER_NODE=1(x2)", .command = "srun --ddp -O a",
	  .want = TASKS "=2" },
	{ .name = "too few CPUs on some other node of the job",
	  .env = JOB("13") "|SLURM_JOB_CPUS_PER_NODE=1,8",
	  .command = "srun --ddp -N1 -wn2 a", .want = TASKS "=2" },
	{ .name = "--nodes=0 divides nothing",
	  .env = JOB("13") "|SLURM_CPUS_PER_TASK=2|SLURM_JOB_CPUS_PER_NODE=8(x2)",
	  .command = "srun --ddp --pty --nodes=0 --gres=gpu:1 a",
	  .want = ALL "=1" },
	{ .name = "the option behind a folder's is no folder",
	  .command = "srun --ddp --ddp-logs=-N2 a",
	  .refusal = "--ddp-logs=-N2: not a folder's path" },
	{ .name = "nor a report's file", .refusal = "--ddp-report=-N2: names no "
	  "file", .command = "srun --ddp --ddp-report=-N2 a" },
};

static const struct spank_case gpu_cases[] = {
	{ .name = "a job that says nothing is asked for", .env = JOB("13"),
	  .command = "srun --ddp a", .want = TASKS "=2" },
	{ .name = "and srun is started to ignore SIGCHLD", .env = JOB("13"),
	  .command = "srun --ddp a", .want = TASKS "=2", .childless = true },
	{ .name = "a job whose nodes differ", .env = JOB("14"),
	  .command = "srun --ddp a",
	  .refusal = "2 GPUs on one node and 1 on another" },
	{ .name = "a job that Slurm does not know", .env = JOB("15"),
	  .command = "srun --ddp a",
	  .refusal = "scontrol does not tell how many GPUs job 15 has" },
	{ .name = "a job without GPUs", .env = JOB("16"),
	  .command = "srun --ddp a", .want = "-" TASKS },
	{ .name = "-n needs no asking", .env = JOB("15"),
	  .command = "srun --ddp -n2 a", .want = "-" TASKS },
	{ .name = "--ntasks-per-node needs no asking",
	  .env = JOB("15") "|SLURM_NTASKS_PER_NODE=1",
	  .command = "srun --ddp a",
	  .want = "-" TASKS "|SLURM_NTASKS_PER_NODE=1" },
	{ .name = "--ntasks-per-gpu counts the GPUs of all nodes",
	  .env = JOB("13"), .command = "srun --ddp --ntasks-per-gpu=1 a",
	  .want = "SLURM_NTASKS_HET_GROUP_0=4|-" TASKS },
	{ .name = "--ntasks-per-gpu does without an answer", .env = JOB("15"),
	  .command = "srun --ddp --ntasks-per-gpu=1 a", .want = "-" TASKS },
	{ .name = "a host file needs no asking", .env = JOB("15"),
	  .command = "srun --ddp -marbitrary a", .want = "-" TASKS },
	{ .name = "the job's --gpus", .env = JOB("13") "|SLURM_GPUS=4",
	  .command = "srun --ddp a", .want = TASKS "=2|-" GPUS },
	{ .name = "the job's --gpus, of which one node has more",
	  .env = JOB("14") "|SLURM_GPUS=3", .command = "srun --ddp a",
	  .refusal = "2 GPUs on one node and 1 on another" },
	{ .name = "the job's --gpus-per-node", .command = "srun --ddp a",
	  .env = JOB("15") "|SLURM_GPUS_PER_NODE=2", .want = TASKS "=2" },
	{ .name = "a typed --gres replaces it", .want = TASKS "=1",
	  .env = JOB("15") "|SLURM_GPUS_PER_NODE=2",
	  .command = "srun --ddp --gres=gpu:1 a" },
	{ .name = "a typed --gpus replaces it", .want = TASKS "=1|" GPUS "=1",
	  .env = JOB("15") "|SLURM_GPUS_PER_NODE=2",
	  .command = "srun --ddp --gpus=2 a" },
	{ .name = "a typed --gpus-per-node replaces --gpus",
	  .env = JOB("15") "|SLURM_GPUS=4", .want = TASKS "=1",
	  .command = "srun --ddp --gpus-per-node=1 a" },
	{ .name = "--gres=nic does not replace --gpus", .want = TASKS "=2",
	  .env = JOB("13") "|SLURM_GPUS=4",
	  .command = "srun --ddp --gres=nic:1 a" },
	{ .name = "but alone it brings no GPUs", .want = "-" TASKS,
	  .env = JOB("13"), .command = "srun --ddp --gres=nic:1 a" },
	{ .name = "nor does it replace --gpus-per-node", .want = TASKS "=2",
	  .env = JOB("15") "|SLURM_GPUS_PER_NODE=2",
	  .command = "srun --ddp --gres=nic:1 a" },
	{ .name = "--gres=none does", .want = "-" TASKS,
	  .env = JOB("15") "|SLURM_GPUS=4",
	  .command = "srun --ddp --gres=none a" },
	{ .name = "-n on one of the job's nodes", .want = "-" TASKS,
	  .env = JOB("15") "|SLURM_GPUS_PER_NODE=2",
	  .command = "srun --ddp -n1 -wn1 hostname" },
	{ .name = "-n and GPUs that come out even", .want = TASKS "=2",
	  .command = "srun --ddp -n4 --gres=gpu:2 a" },
	{ .name = "-n and GPUs that do not", .want = "-" TASKS,
	  .command = "srun --ddp -n3 -N2 --gres=gpu:2 a" },
	{ .name = "more ranks than GPUs", .refusal = "8 ranks have 2 GPUs a "
	  "node on 2 nodes; ask for --gres=gpu:4, start 2 tasks a node, or "
	  "let ranks share with --ddp-gpus=share",
	  .command = "srun --ddp -n8 -N2 --gres=gpu:2 a" },
	{ .name = "which are to share them", .want = "-" TASKS,
	  .command = "srun --ddp --ddp-gpus=share -n8 -N2 --gres=gpu:2 a" },
	{ .name = "which do not matter", .want = "-" TASKS,
	  .command = "srun --ddp --ddp-gpus=off -n8 -N2 --gres=gpu:2 a" },
	{ .name = "which --gpu-bind may hide", .want = "-" TASKS,
	  .command = "srun --ddp --gpu-bind=none -n8 -N2 --gres=gpu:2 a" },
	{ .name = "--gpus is shared out to the nodes", .want = TASKS "=2|"
	  GPUS "=2|SLURM_DDP_ADDED=" TASKS " SLURM_NTASKS_PER_NODE " GPUS
	  " SLURM_GPUS_PER_NODE SLURM_MPI_TYPE SLURM_PMIX_FENCE "
	  "SLURM_KILL_BAD_EXIT SLURM_DDP_SUPERVISOR",
	  .command = "srun --ddp -N2 --gpus=4 a" },
	{ .name = "each type of --gpus", .want = TASKS "=3|" GPUS "=x:2,y:1",
	  .command = "srun --ddp -N2 --gpus=x:4,y:2 a" },
	{ .name = "but not each is even", .refusal = "does not divide evenly",
	  .command = "srun --ddp -N2 --gpus=x:3,y:1 a" },
	{ .name = "nodes by name", .want = TASKS "=2",
	  .command = "srun --ddp -wn1,n2 --gpus=4 a" },
	{ .name = "shard is no GPU", .want = "-" TASKS,
	  .command = "srun --ddp -N2 --gres=shard:2 a" },
	{ .name = "--pty", .env = JOB("15"), .command = "srun --ddp --pty sh",
	  .want = "SLURM_NTASKS_HET_GROUP_0=1|"
		  "SLURM_JOB_NUM_NODES_HET_GROUP_0=1|-" TASKS },
	{ .name = "--pty -N2", .env = "SLURM_JOB_ID=15|SLURM_JOB_NUM_NODES=3",
	  .command = "srun --ddp --pty -N2 sh",
	  .want = "SLURM_NTASKS_HET_GROUP_0=1|"
		  "-SLURM_JOB_NUM_NODES_HET_GROUP_0" },
	{ .name = "--pty -n2", .env = JOB("15"), .want = "-"
	  "SLURM_NTASKS_HET_GROUP_0", .command = "srun --ddp --pty -n2 sh" },
};

static const struct spank_case cpu_cases[] = {
	{ .name = "the job's CPUs reach the step", .want = CPUS "=4",
	  .command = "srun --ddp --gres=gpu:2 a", .env = JOB("15")
	  "|SLURM_CPUS_PER_TASK=4|SLURM_JOB_CPUS_PER_NODE=8(x2)" },
	{ .name = "shared by more tasks than the job had", .want = CPUS "=4",
	  .command = "srun --ddp --gres=gpu:2 a", .env = JOB("15")
	  "|SLURM_CPUS_PER_TASK=8|SLURM_JOB_CPUS_PER_NODE=8(x2)" },
	{ .name = "by -n tasks", .want = CPUS "=2",
	  .command = "srun --ddp -n8 a", .env = JOB("15")
	  "|SLURM_CPUS_PER_TASK=8|SLURM_JOB_CPUS_PER_NODE=8(x2)" },
	{ .name = "5 tasks on 2 nodes leave room for 3 on each", .want = CPUS
	  "=2", .command = "srun --ddp -n5 -N2 a", .env = JOB("15")
	  "|SLURM_CPUS_PER_TASK=8|SLURM_JOB_CPUS_PER_NODE=8(x2)" },
	{ .name = "but not over the user's own", .want = "-" CPUS,
	  .command = "srun --ddp -c1 --gres=gpu:2 a", .env = JOB("15")
	  "|SLURM_CPUS_PER_TASK=4|SLURM_JOB_CPUS_PER_NODE=8(x2)" },
	{ .name = "nor over --cpus-per-gpu", .want = "-" CPUS,
	  .command = "srun --ddp --gres=gpu:2 a", .env = JOB("15")
	  "|SLURM_CPUS_PER_TASK=4|SLURM_CPUS_PER_GPU=1" },
	{ .name = "the job's that srun reads itself", .want = GIVEN "=2|"
	  "SLURM_TRES_PER_TASK_HET_GROUP_0=cpu=2,gres/gpu:1",
	  .command = "srun --ddp -n8 a", .env = JOB("15") "|" READS
	  "8|SLURM_TRES_PER_TASK=cpu=8,gres/gpu:1" },
	{ .name = "with a colon, and not first", .want = GIVEN "=4|"
	  "SLURM_TRES_PER_TASK_HET_GROUP_0=gres/gpu:1,cpu:4",
	  .command = "srun --ddp --gres=gpu:2 a", .env = JOB("15") "|" READS
	  "8|SLURM_TRES_PER_TASK=gres/gpu:1,cpu:8" },
	{ .name = "where no TRES speak of CPUs", .want = GIVEN "=4|"
	  "-SLURM_TRES_PER_TASK_HET_GROUP_0",
	  .command = "srun --ddp --gres=gpu:2 a", .env = JOB("15") "|" READS
	  "8|SLURM_TRES_PER_TASK=gres/cpu:1,license/cpu=2" },
	{ .name = "not over the user's own there", .want = "-" GIVEN,
	  .command = "srun --ddp -c1 --gres=gpu:2 a", .env = JOB("15") "|"
	  READS "4" },
	{ .name = "those of one component of the job", .want = GIVEN "=4|"
	  "SLURM_TRES_PER_TASK_HET_GROUP_0=cpu=4", .command =
	  "srun --ddp --gres=gpu:2 a", .env = "SLURM_JOB_ID=15|FAKE_CPUS="
	  "SLURM_CPUS_PER_TASK|SLURM_CPUS_PER_TASK_HET_GROUP_0=8|"
	  "SLURM_TRES_PER_TASK_HET_GROUP_0=cpu=8|"
	  "SLURM_JOB_NUM_NODES_HET_GROUP_0=2|"
	  "SLURM_JOB_CPUS_PER_NODE_HET_GROUP_0=8(x2)" },
	{ .name = "of the whole job, for a terminal on one node of it",
	  .want = GIVEN "=8|SLURM_JOB_NUM_NODES_HET_GROUP_0=1",
	  .command = "srun --ddp --pty a", .env = JOB("15") "|" READS "8" },
};

#define NO_KILL "SLURM_DDP_NO_KILL"

static const struct spank_case allocator_cases[] = {
	{ .name = "sbatch without --ddp", .env = "A=b", .want = "same",
	  .command = "sbatch -N2 --gres=gpu:2 s.sh" },
	{ .name = "sbatch --ddp without CPUs", .refusal = "sbatch: error: "
	  "slurm-ddp: 2 GPUs a node make 2 ranks, and the request has CPUs "
	  "for 1 only; add --ntasks-per-node=2 or --cpus-per-gpu",
	  .command = "sbatch --ddp -N2 --gres=gpu:2 s.sh" },
	{ .name = "salloc --ddp without CPUs", .refusal = "salloc: error: ",
	  .command = "salloc --ddp -N2 --gpus=4" },
	{ .name = "tasks that Slurm may place unevenly", .want = "",
	  .command = "sbatch --ddp -N2 --gpus=4 -n4 -c2 s.sh",
	  .err = "sbatch: slurm-ddp: Slurm may give one node more tasks than "
	  "another, and more than it has GPUs; add --ntasks-per-node=2\n" },
	{ .name = "a --wrap without srun", .command = "sbatch --ddp --wrap=python3",
	  .err = "sbatch: slurm-ddp: --wrap: --ddp is for the srun commands of a "
	  "job, and this has none; wrap 'srun COMMAND'\n" },
	{ .name = "a --wrap with it", .command = "sbatch --ddp --wrap=srun",
	  .err = "" },
	{ .name = "a --wrap of a script, which may have it", .err = "",
	  .command = "sbatch --ddp --wrap=./s.sh" },
	{ .name = "one CPU a rank", .env = "A=b", .want = "same",
	  .command = "sbatch --ddp --ntasks-per-node=2 --gres=gpu:2 s.sh",
	  .err = "sbatch" TIGHT_LINE },
	{ .name = "one CPU a rank, two lines in plugstack.conf",
	  .conf = "optional spank_ddp.so\nrequired spank_ddp.so",
	  .command = "salloc --ddp --ntasks-per-node=2 --gres=gpu:2",
	  .err = "salloc" TIGHT_LINE },
	{ .name = "enough CPUs", .env = "A=b", .want = "same",
	  .command = "sbatch --ddp --gres=gpu:2 --cpus-per-gpu=4 s.sh" },
	{ .name = "whole nodes", .want = "same",
	  .command = "sbatch --ddp --gres=gpu:2 --exclusive s.sh" },
	{ .name = "a job that outlives its nodes", .want = NO_KILL "=1",
	  .command = "sbatch --ddp --no-kill --gres=gpu:2 --exclusive s.sh" },
	{ .name = "a job without --ddp in one that has it", .want = "-" NO_KILL,
	  .env = NO_KILL "=1", .command = "sbatch --no-kill s.sh" },
	{ .name = "spares in a job that its nodes' loss ends", .command =
	  "salloc --ddp --ddp-restarts=1 --ddp-spares=1 --gres=gpu:2 "
	  "--exclusive", .want = NO_KILL "=1", .err = "salloc: slurm-ddp: "
	  "--ddp-spares: when Slurm gives a lost node up, it ends the job; add "
	  "--no-kill\n" },
	{ .name = "or does not", .command = "salloc --ddp --ddp-restarts=1 "
	  "--ddp-spares=1 --no-kill --gres=gpu:2 --exclusive", .err = "",
	  .want = NO_KILL "=1" },
	{ .name = "cpus=trust", .conf = "optional spank_ddp.so cpus=trust",
	  .command = "sbatch --ddp -N2 --gres=gpu:2 s.sh", .want = "same" },
	{ .name = "an sbatch that hides its options", .dir = "bare",
	  .command = "sbatch --ddp -N2 --gres=gpu:2 s.sh", .want = "same" },
	{ .name = "sbatch --ddp=off", .want = "same",
	  .command = "sbatch --ddp=off -N2 --gres=gpu:2 s.sh" },
	{ .name = "sbatch with an unknown word", .refusal = "--ddp 'x' is not",
	  .command = "sbatch --ddp=x s.sh" },
	{ .name = "salloc with --ddp-port alone",
	  .refusal = "given without --ddp",
	  .command = "salloc --ddp-port=25000" },
	{ .name = "sbatch with an unknown key", .refusal = "speed=9",
	  .conf = "required spank_ddp.so speed=9",
	  .command = "sbatch --ddp s.sh" },
};

void test_job(void)
{
	cases_run(inherited, COUNT(inherited));
	cases_run(gpu_cases, COUNT(gpu_cases));
	cases_run(cpu_cases, COUNT(cpu_cases));
	cases_run(allocator_cases, COUNT(allocator_cases));
}
