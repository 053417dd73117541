/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * In srun, commands that start the ranks of a node themselves: which are known,
 * what is filled in for them, and which cannot work. Job 13 has 2 GPUs on each
 * node: see tests/spank/run.
 */
#include "host.h"

#define TASKS "SLURM_NTASKS_PER_NODE_HET_GROUP_0"
#define ALL "SLURM_NTASKS_HET_GROUP_0"
#define CPUS "SRUN_CPUS_PER_TASK_HET_GROUP_0"
#define GIVEN "SLURM_CPUS_PER_TASK_HET_GROUP_0"
#define TOLD "SLURM_DDP_LAUNCHER"
#define DDP "SLURM_SPANK__SLURM_SPANK_OPTION_ddp_ddp="
#define GRES "--nodes=2 --gres=gpu:2 "
#define ONE TASKS "=1|" TOLD "=0"
#define JOB "SLURM_JOB_ID=13|SLURM_JOB_NUM_NODES=2|" \
	"SLURM_JOB_CPUS_PER_NODE=8,6"
#define SEVERAL " starts the ranks of a node itself, and the step has " \
	"several tasks a node; give -N NODES and no number of tasks, or " \
	"start the program itself: srun --ddp python3 PROGRAM"

static const struct spank_case filled[] = {
	{ .name = "torchrun gets one task a node, and CPUs for its ranks",
	  .command = "srun --ddp " GRES "torchrun a.py",
	  .want = ONE "|" CPUS "=2|" GIVEN "=2" },
	{ .name = "with a path", .want = ONE,
	  .command = "srun --ddp " GRES "/opt/bin/torchrun a.py" },
	{ .name = "as a module", .want = ONE,
	  .command = "srun --ddp " GRES "python3 -m torch.distributed.run a" },
	{ .name = "accelerate launch", .want = ONE,
	  .command = "srun --ddp " GRES "accelerate launch a.py" },
	{ .name = "behind env", .want = ONE,
	  .command = "srun --ddp " GRES "env A=b torchrun a.py" },
	{ .name = "by --ddp=torchrun", .want = ONE "|" CPUS "=2",
	  .command = "srun --ddp=torchrun " GRES "bash run.sh" },
	{ .name = "by an inherited --ddp=torchrun", .env = DDP "torchrun",
	  .command = "srun " GRES "bash run.sh", .want = ONE },
	{ .name = "with a number of ranks", .want = TASKS "=1|" TOLD "=4",
	  .command = "srun --ddp " GRES "torchrun --nproc-per-node=4 a.py" },
	{ .name = "without GPUs CPUs are left open",
	  .command = "srun --ddp --nodes=2 torchrun a.py",
	  .want = ONE "|-" CPUS },
	{ .name = "the user's -c stands", .want = ONE "|-" CPUS,
	  .command = "srun --ddp -c8 " GRES "torchrun a.py" },
	{ .name = "the user's --cpus-per-gpu stands", .want = ONE "|-" CPUS,
	  .command = "srun --ddp --cpus-per-gpu=4 " GRES "torchrun a.py" },
	{ .name = "-n that is one a node stands", .want = ONE,
	  .command = "srun --ddp -n2 " GRES "torchrun a.py" },
	{ .name = "--ntasks-per-node=1 stands", .want = TOLD "=0",
	  .command = "srun --ddp --ntasks-per-node=1 " GRES "torchrun a.py" },
	{ .name = "an argument of that name is none", .want = TASKS "=2|-" TOLD,
	  .command = "srun --ddp " GRES "python3 a.py torchrun" },
	{ .name = "accelerate launch --cpu starts one process",
	  .command = "srun --ddp " GRES "accelerate launch --cpu a.py",
	  .want = TASKS "=2|-" TOLD },
	{ .name = "but not with a config file", .want = ONE,
	  .command = "srun --ddp " GRES "accelerate launch --config_file c a" },
	{ .name = "--standalone on one node", .want = ONE,
	  .command = "srun --ddp --gres=gpu:2 torchrun --standalone a.py" },
	{ .name = "an elastic range", .want = ONE,
	  .command = "srun --ddp " GRES "torchrun --nnodes=1:4 a.py" },
	{ .name = "in one component of two", .want = TASKS "=1|" TOLD "=0|"
	  "SLURM_NTASKS_PER_NODE_HET_GROUP_1=1",
	  .command = "srun --ddp --gres=gpu:2 torchrun a.py : --gres=gpu:2 "
	  "--nodes=2 torchrun a.py" },
	{ .name = "without --ddp nothing is looked at", .want = "same",
	  .env = "A=b", .command = "srun " GRES "deepspeed a.py" },
	{ .name = "nor with --ddp=off", .want = "same", .env = DDP "torchrun",
	  .command = "srun --ddp=off " GRES "torchrun --nnodes=7 a.py" },
};

#define SCRIPTS "PATH=@/bin"
#define CHOSEN(file, line) "srun: slurm-ddp: " file " line " line " calls " \
	"torchrun, which starts the ranks: one task a node; --ddp=srun starts " \
	"one a rank\n"

static const struct spank_case scripts[] = {
	{ .name = "a script that calls torchrun", .env = SCRIPTS,
	  .command = "srun --ddp " GRES "many", .want = TASKS "=1|" TOLD "=2",
	  .err = CHOSEN("many", "3") },
	{ .name = "behind a shell", .env = SCRIPTS,
	  .command = "srun --ddp " GRES "bash -x many 1",
	  .want = TASKS "=1|" TOLD "=2", .err = CHOSEN("many", "3") },
	{ .name = "by --ddp=torchrun nothing is said", .env = SCRIPTS,
	  .command = "srun --ddp=torchrun " GRES "many", .err = "",
	  .want = TASKS "=1|" TOLD "=2" },
	{ .name = "with one task a node of the user's neither", .err = "",
	  .env = SCRIPTS, .want = TOLD "=2",
	  .command = "srun --ddp --ntasks-per-node=1 " GRES "many" },
	{ .name = "nor with the job's", .err = "",
	  .env = SCRIPTS "|" JOB "|SLURM_NTASKS=2|SLURM_NTASKS_PER_NODE=1",
	  .command = "srun --ddp many", .want = TOLD "=2|" CPUS "=6" },
	{ .name = "--ddp=srun reads none", .env = SCRIPTS, .err = "",
	  .command = "srun --ddp=srun " GRES "many",
	  .want = TASKS "=2|-" TOLD },
	{ .name = "nor does it look at the command", .err = "",
	  .command = "srun --ddp=srun " GRES "torchrun --nnodes=1 a.py",
	  .want = TASKS "=2|-" TOLD },
	{ .name = "tasks that are typed are meant so", .env = SCRIPTS,
	  .command = "srun --ddp -n4 " GRES "many", .err = "",
	  .want = "-" TOLD },
	{ .name = "and those of the job, but for a line", .env = SCRIPTS "|" JOB
	  "|SLURM_NTASKS=4", .command = "srun --ddp many", .want = "-" TOLD,
	  .err = "srun: slurm-ddp: many line 3 calls torchrun, and the job has "
	  "several tasks a node, each of which does: --ddp=torchrun starts one "
	  "a node\n" },
	{ .name = "which a farm does not get", .env = SCRIPTS "|" JOB
	  "|SLURM_NTASKS=4", .command = "srun --ddp farm", .err = "",
	  .want = "-" TOLD },
	{ .name = "a farm of torchruns is one a GPU, as before", .env = SCRIPTS,
	  .command = "srun --ddp " GRES "farm", .want = TASKS "=2|-" TOLD,
	  .err = "srun: slurm-ddp: farm line 2: torchrun --nnodes says 1, and "
	  "the step has 2 nodes; leave it out, or give -N1 to srun; as it is, "
	  "srun starts one task a GPU, and each of them calls it\n" },
	{ .name = "nothing is chosen where branches disagree", .env = SCRIPTS,
	  .command = "srun --ddp " GRES "bash either",
	  .want = TASKS "=2|-" TOLD,
	  .err = "srun: slurm-ddp: either line 2 calls torchrun, and another "
	  "branch does not: srun starts one task a rank; --ddp=torchrun leaves "
	  "the ranks to the script\n" },
	{ .name = "nor where those of the command itself do",
	  .command = "srun --ddp " GRES "bash -c if\ta;\tthen\ttorchrun\tb.py;"
	  "\telse\tpython3\tb.py;\tfi", .want = TASKS "=2|-" TOLD,
	  .err = "srun: slurm-ddp: the command calls torchrun, and another "
	  "branch does not: srun starts one task a rank; --ddp=torchrun leaves "
	  "the ranks to the script\n" },
	{ .name = "a rendezvous that gives nodes their ranks",
	  .command = "srun --ddp " GRES "bash c10d", .env = SCRIPTS,
	  .want = TASKS "=1|SLURM_DDP_PET=no-rank",
	  .err = CHOSEN("c10d", "1") },
	{ .name = "a script whose shell env splits off", .env = SCRIPTS,
	  .command = "srun --ddp " GRES "split", .want = TASKS "=1",
	  .err = CHOSEN("split", "2") },
	{ .name = "a script that is too long is not read", .env = SCRIPTS,
	  .command = "srun --ddp " GRES "long", .want = TASKS "=2|-" TOLD,
	  .err = "" },
	{ .name = "nor one with bytes that are no text", .env = SCRIPTS,
	  .command = "srun --ddp " GRES "binary", .want = "-" TOLD },
	{ .name = "nor one of Python's", .env = SCRIPTS,
	  .command = "srun --ddp " GRES "python", .want = "-" TOLD },
	{ .name = "nor a FIFO", .env = SCRIPTS,
	  .command = "srun --ddp " GRES "bash fifo", .want = "-" TOLD },
	{ .name = "deepspeed on one node", .want = TASKS "=1|" TOLD "=0",
	  .command = "srun --ddp --gres=gpu:2 deepspeed a.py" },
	{ .name = "one of several sruns, one a node",
	  .command = "srun --ddp --nodes=1 --gres=gpu:2 torchrun --nnodes=2 "
	  "--node_rank=1 a.py", .want = ONE "|SLURM_DDP_PET=none" },
};

static const struct spank_case job_cases[] = {
	{ .name = "in a job a node's task gets the fewest CPUs of a node",
	  .env = JOB, .command = "srun --ddp torchrun a.py",
	  .want = ONE "|" ALL "=2|" CPUS "=6|" GIVEN "=6" },
	{ .name = "the job's number of tasks is not the step's",
	  .env = JOB "|SLURM_NTASKS=4|SLURM_NTASKS_PER_NODE=2",
	  .command = "srun --ddp torchrun a.py",
	  .want = ONE "|" ALL "=2" },
	{ .name = "nor are the CPUs that these were to have",
	  .env = JOB "|SLURM_NTASKS=4|SLURM_CPUS_PER_TASK=3|"
	  "FAKE_CPUS=SLURM_CPUS_PER_TASK",
	  .command = "srun --ddp torchrun a.py", .want = ONE "|" GIVEN "=6" },
	{ .name = "the user's -c in a job stands", .env = JOB,
	  .command = "srun --ddp -c2 torchrun a.py", .want = ONE "|-" CPUS },
	{ .name = "a step on one node of the job", .env = JOB,
	  .command = "srun --ddp --nodes=1 torchrun --standalone a.py",
	  .want = ONE "|" ALL "=1" },
	{ .name = "several tasks that are typed for the step",
	  .env = JOB "|SLURM_NTASKS=2", .refusal = "torchrun" SEVERAL,
	  .command = "srun --ddp -n4 torchrun a.py" },
};

static const struct spank_case refused[] = {
	{ .name = "torchrun with several tasks a node",
	  .command = "srun --ddp -n4 " GRES "torchrun a.py",
	  .refusal = "torchrun" SEVERAL },
	{ .name = "by --ntasks-per-node", .refusal = "accelerate launch"
	  SEVERAL, .command = "srun --ddp --ntasks-per-node=2 " GRES
	  "accelerate launch a.py" },
	{ .name = "by --ntasks-per-gpu", .refusal = SEVERAL,
	  .command = "srun --ddp --ntasks-per-gpu=1 " GRES "torchrun a.py" },
	{ .name = "by --ddp=torchrun", .refusal = "torchrun" SEVERAL,
	  .command = "srun --ddp=torchrun -n4 " GRES "bash run.sh" },
	{ .name = "by -n without -N", .refusal = SEVERAL,
	  .command = "srun --ddp -n4 --gres=gpu:2 torchrun a.py" },
	{ .name = "torchrun on an open number of nodes",
	  .command = "srun --ddp --nodes=1-2 torchrun a.py",
	  .refusal = "one task a node needs a fixed number of nodes, and "
	  "-N1-2 leaves it open" },
	{ .name = "--standalone on two nodes",
	  .command = "srun --ddp " GRES "torchrun --standalone a.py",
	  .refusal = "torchrun --standalone makes a world of its own on each "
	  "of 2 nodes; leave it out, or use one node: -N1" },
	{ .name = "another number of nodes",
	  .command = "srun --ddp " GRES "torchrun --nnodes=1 a.py",
	  .refusal = "torchrun --nnodes says 1, and the step has 2 nodes; "
	  "leave it out, or give -N1 to srun" },
	{ .name = "the same of the job's nodes", .env = JOB,
	  .command = "srun --ddp torchrun --nnodes=4 a.py",
	  .refusal = "--nnodes says 4, and the step has 2 nodes" },
	{ .name = "--standalone in two components", .refusal = "--standalone "
	  "makes", .command = "srun --ddp --gres=gpu:2 torchrun --standalone "
	  "a.py : --gres=gpu:2 torchrun --standalone a.py" },
	{ .name = "in the second component", .refusal = "--nnodes says 1",
	  .command = "srun --ddp --gres=gpu:2 torchrun a.py : --gres=gpu:2 "
	  "torchrun --nnodes=1 a.py" },
	{ .name = "deepspeed", .command = "srun --ddp " GRES "deepspeed a.py",
	  .refusal = "deepspeed starts ranks on other nodes itself, by ssh or "
	  "mpirun, outside the step; start the program itself, one rank a GPU: "
	  "srun --ddp python3 PROGRAM" },
	{ .name = "a machine rank in Accelerate's default file", .env = "HF_HOME=@/bin/hf",
	  .command = "srun --ddp " GRES "accelerate launch a.py",
	  .refusal = "leave --num_machines and --machine_rank out" },
	{ .name = "torchrun and srun", .refusal = "--ddp: torchrun and srun are "
	  "who starts the ranks of a node; give one of them",
	  .command = "srun --ddp=torchrun,srun " GRES "bash run.sh" },
	{ .name = "a misspelt word", .refusal = "did you mean torchrun",
	  .command = "srun --ddp=torchrn " GRES "bash run.sh" },
	{ .name = "torchrun and off", .refusal = "--ddp: off is given with",
	  .command = "srun --ddp=torchrun,off " GRES "bash run.sh" },
};

#define ALONE(file, name) "sbatch: slurm-ddp: " file " calls " name " without " \
	"srun, so it runs on the first of 2 nodes alone, and --ddp does nothing " \
	"for it; write 'srun " name " ...'\n"

static const struct spank_case jobs[] = {
	{ .name = "a job's script that calls torchrun itself",
	  .command = "sbatch --ddp --nodes=2 bin/many",
	  .err = ALONE("bin/many", "torchrun") },
	{ .name = "one that runs python itself",
	  .command = "sbatch --ddp --nodes=2 bin/plain", .err = "sbatch: "
	  "slurm-ddp: bin/plain runs python without srun, on the first of 2 "
	  "nodes and without --ddp, unless it starts steps itself; write 'srun "
	  "python3 ...'\n" },
	{ .name = "and another script", .err = "",
	  .command = "sbatch --ddp --nodes=2 bin/other" },
	{ .name = "on one node", .command = "sbatch --ddp --nodes=1 bin/many",
	  .err = "" },
	{ .name = "as salloc's command", .err = "",
	  .command = "salloc --ddp --nodes=2 bin/many" },
	{ .name = "beside srun", .err = "",
	  .command = "sbatch --ddp --nodes=2 bin/job" },
	{ .name = "in a function that ssh calls", .err = "",
	  .command = "sbatch --ddp --nodes=2 bin/remote" },
	{ .name = "in one of two branches", .err = "",
	  .command = "sbatch --ddp --nodes=2 bin/branch" },
	{ .name = "one that goes to other nodes itself", .err = "",
	  .command = "sbatch --ddp --nodes=2 bin/speed" },
	{ .name = "one for one node", .err = "",
	  .command = "sbatch --ddp --nodes=2 bin/farm" },
	{ .name = "Accelerate's that is a rank", .err = "",
	  .command = "sbatch --ddp --nodes=2 bin/cpu" },
	{ .name = "a script of Python's", .err = "",
	  .command = "sbatch --ddp --nodes=2 bin/python" },
	{ .name = "a script that is not there", .err = "",
	  .command = "sbatch --ddp --nodes=2 many", .env = SCRIPTS },
};

void test_launcher(void)
{
	cases_run(filled, COUNT(filled));
	cases_run(scripts, COUNT(scripts));
	cases_run(job_cases, COUNT(job_cases));
	cases_run(refused, COUNT(refused));
	cases_run(jobs, COUNT(jobs));
}
