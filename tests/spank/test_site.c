/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the site says in plugstack.conf: defaults, variables, who may use --ddp,
 * and all of these by partition. Of the partitions that scontrol knows, "gpu"
 * is the default; job 17 is in "slow" (see tests/spank/run).
 */
#include "host.h"

#define LINE "optional spank_ddp.so "
#define ON "optional spank_ddp.so topology=@/topo/server8.xml "
#define STEP "--nodes=2 --gres=gpu:2 a.out"
#define DDP_GPUS "SLURM_SPANK__SLURM_SPANK_OPTION_ddp_ddp_gpus="
#define FILLED "SLURM_MPI_TYPE=pmix"
#define KEPT "RANK=slurm-ddp-plugin-missing-on-this-node|-SLURM_MPI_TYPE"
#define SAY "slurm-ddp: "
#define GIVEN "srun --ddp=explain --nodes=2 -n4 --mpi=pmix -K1 "
#define EXPLAINED SAY "tasks 4 on 2 nodes: as asked for\n" \
	SAY "MPI type pmix: as asked for\n" \
	SAY "master n1: rank 0's node, the first of n[1-2]\n" \
	SAY "port 24331: from the job's and the step's number\n" \
	SAY "a rank that fails ends the step: unless --kill-on-bad-exit says " \
	"otherwise\n"
#define STEPD(words) "slurmstepd 0 0 2 4 --ddp " words " train"
#define OFF "--ddp-gpus=off --ddp-cpus=off"
#define TWO "SLURM_JOB_ID=12|SLURM_STEP_NUM_TASKS=4|SLURM_PROCID=0|" \
	"SLURM_LOCALID=0|SLURM_STEP_NODELIST=n[1-2]|SLURMD_NODENAME=n1|" \
	"SLURM_STEP_TASKS_PER_NODE=2(x2)|SLURM_DISTRIBUTION=block"
#define GPUS TWO "|CUDA_VISIBLE_DEVICES=0,4"
#define IN(partition) "|SLURM_JOB_PARTITION=" partition
#define RANKS "RANK=0 LOCAL_RANK=0 WORLD_SIZE=4 LOCAL_WORLD_SIZE=2 " \
	"NODE_RANK=0 GROUP_RANK=0 GROUP_WORLD_SIZE=2 ROLE_RANK=0 " \
	"ROLE_WORLD_SIZE=4 SLURM_NTASKS_PER_NODE=2"
#define JAX "JAX_COORDINATOR_ADDRESS=n1:28331"
#define OWN SAY "--ddp-gpus=own: LOCAL_RANK is not a device number, and " \
	"programs that need to see both GPUs have no P2P between them; use " \
	"device 0, or --ddp-gpus=all\n"

/* Which partition counts, by whether the MPI type is left alone in it. */
static const struct spank_case partition_cases[] = {
	{ .name = "-p", .command = "srun --ddp -pslow " STEP, .want = KEPT,
	  .conf = LINE "partition=slow:mpi=keep" },
	{ .name = "-p of another", .command = "srun --ddp -pslower " STEP,
	  .conf = LINE "partition=slow,lower:mpi=keep", .want = FILLED },
	{ .name = "the second of a list", .command = "srun --ddp -plow " STEP,
	  .conf = LINE "partition=slow,low:mpi=keep", .want = KEPT },
	{ .name = "SLURM_PARTITION", .command = "srun --ddp " STEP,
	  .env = "SLURM_PARTITION=slow", .want = KEPT,
	  .conf = LINE "partition=slow:mpi=keep" },
	{ .name = "the default partition", .command = "srun --ddp " STEP,
	  .conf = LINE "partition=gpu:mpi=keep", .want = KEPT },
	{ .name = "none but the default", .command = "srun --ddp " STEP,
	  .conf = LINE "partition=debug:mpi=keep", .want = FILLED },
	{ .name = "several that are asked for are none of them",
	  .command = "srun --ddp -pslow,gpu " STEP, .want = FILLED,
	  .conf = LINE "partition=slow:mpi=keep partition=gpu:mpi=keep" },
	{ .name = "that of the job around, whatever -p says",
	  .command = "srun --ddp -pgpu --nodes=2 -n4 a",
	  .env = "SLURM_JOB_ID=12" IN("slow"), .want = KEPT,
	  .conf = LINE "partition=slow:mpi=keep" },
	{ .name = "that of a component of the job around",
	  .command = "srun --ddp --nodes=1 -n1 a : --nodes=1 -n1 b",
	  .env = "SLURM_JOB_ID=12" IN("gpu")
	  "|SLURM_JOB_PARTITION_HET_GROUP_0=slow"
	  "|SLURM_JOB_PARTITION_HET_GROUP_1=slow", .want = KEPT,
	  .conf = LINE "partition=slow:mpi=keep" },
	{ .name = "of several, that in which the job around runs",
	  .command = "srun --ddp --nodes=2 -n4 a", .want = KEPT,
	  .env = "SLURM_JOB_ID=17" IN("gpu,slow"),
	  .conf = LINE "partition=slow:mpi=keep" },
	{ .name = "and tasks are told, where Slurm does not",
	  .command = "srun --ddp --nodes=2 -n4 a",
	  .env = "SLURM_JOB_ID=17" IN("gpu,slow"),
	  .want = "SLURM_DDP_PARTITION=slow|SLURM_JOB_PARTITION=gpu,slow",
	  .conf = LINE "partition=slow:interface=ib0" },
	{ .name = "that of a job by --jobid",
	  .command = "srun --ddp --jobid=17 --nodes=2 -n4 a", .want = KEPT,
	  .conf = LINE "partition=slow:mpi=keep" },
	{ .name = "and not of the job around then",
	  .command = "srun --ddp --jobid=17 --nodes=2 -n4 a", .want = KEPT,
	  .env = "SLURM_JOB_ID=12" IN("gpu"),
	  .conf = LINE "partition=slow:mpi=keep" },
	{ .name = "a job of which squeue does not tell it",
	  .command = "srun --ddp --jobid=15 --nodes=2 -n4 a",
	  .conf = LINE "partition=slow:mpi=keep",
	  .refusal = "does not tell the partition of job 15" },
	{ .name = "no scontrol to ask for the default", .dir = "nompi",
	  .command = "srun --ddp " STEP, .env = "PATH=@/topo",
	  .conf = LINE "partition=slow:mpi=keep",
	  .refusal = "scontrol does not tell the default partition, on which "
	  "plugstack.conf depends; choose one with -p" },
	{ .name = "scontrol is not asked where nothing depends on it",
	  .dir = "nompi", .command = "srun --ddp " STEP, .env = "PATH=@/topo",
	  .conf = LINE "mpi=keep deny=@nobody,--ddp-port", .want = KEPT },
	{ .name = "an srun that hides -p", .dir = "bare",
	  .command = "srun --ddp -n4 a", .conf = LINE "partition=slow:mpi=keep",
	  .refusal = "this srun does not show -p to plugins" },
	{ .name = "an srun that hides -p, in a job", .dir = "bare",
	  .command = "srun --ddp -n4 a", .env = "SLURM_JOB_ID=12" IN("gpu"),
	  .conf = LINE "partition=slow:mpi=keep",
	  .want = "WORLD_SIZE=slurm-ddp-plugin-missing-on-this-node" },
	{ .name = "a partition's default over the site's that follows",
	  .command = "srun --ddp -pslow " STEP, .want = KEPT,
	  .conf = LINE "partition=slow:mpi=keep mpi=pmix" },
	{ .name = "the later of two", .command = "srun --ddp -pslow " STEP,
	  .conf = LINE "partition=slow:mpi=keep partition=slow:mpi=pmix",
	  .want = FILLED },
	{ .name = "the user's own choice over a partition's",
	  .command = "srun --ddp --mpi=none -pslow " STEP,
	  .conf = LINE "mpi=keep partition=slow:mpi=pmix", .want = KEPT },
	{ .name = "sbatch: cpus=trust in a partition",
	  .command = "sbatch --ddp -N2 --gres=gpu:2 -pslow s.sh",
	  .conf = LINE "partition=slow:cpus=trust" },
	{ .name = "sbatch: cpus=trust in another partition",
	  .command = "sbatch --ddp -N2 --gres=gpu:2 -pgpu s.sh",
	  .conf = LINE "partition=slow:cpus=trust", .refusal = "CPUs for" },
	{ .name = "ddp-gpus=share lets tasks exceed GPUs",
	  .command = "srun --ddp -n4 --gres=gpu:2 a",
	  .conf = LINE "ddp-gpus=share",
	  .want = "-SLURM_NTASKS_PER_NODE_HET_GROUP_0|" FILLED },
	{ .name = "and --ddp-gpus=all does not then",
	  .command = "srun --ddp --ddp-gpus=all -n4 --gres=gpu:2 a",
	  .conf = LINE "ddp-gpus=share",
	  .want = "SLURM_NTASKS_PER_NODE_HET_GROUP_0=2" },
};

static const struct spank_case allow_cases[] = {
	{ .name = "allow= of the partition", .want = FILLED,
	  .command = "srun --ddp -pslow " STEP, .conf = LINE "allow=gpu,slow" },
	{ .name = "allow= of another", .command = "srun --ddp -pslow " STEP,
	  .conf = LINE "allow=gpu", .refusal = "--ddp: this site does not "
	  "allow it in partition slow (allow=gpu in plugstack.conf); leave it "
	  "out, or choose another partition with -p" },
	{ .name = "allow= of a partition whose name begins like this one's",
	  .command = "srun --ddp -pslower " STEP, .conf = LINE "allow=slow",
	  .refusal = "does not allow it in partition slower" },
	{ .name = "allow= of one of several", .conf = LINE "allow=gpu",
	  .command = "srun --ddp -pgpu,slow " STEP,
	  .refusal = "allow it in partition slow" },
	{ .name = "allow= of the user's group",
	  .command = "srun --ddp -pslow " STEP, .want = FILLED,
	  .conf = LINE "allow=gpu,@root" },
	{ .name = "a group is sought where srun has threads",
	  .env = "IDLE_THREADS=2", .want = FILLED,
	  .command = "srun --ddp -pslow " STEP,
	  .conf = LINE "allow=gpu,@root" },
	{ .name = "allow= of another group", .command = "srun --ddp " STEP,
	  .conf = LINE "allow=@bin,@ddp-no-group", .refusal = "--ddp: this "
	  "site does not allow it (allow=@bin,@ddp-no-group in plugstack.conf)"
	  "; leave it out" },
	{ .name = "an empty allow= for a partition", .want = FILLED,
	  .command = "srun --ddp -pslow " STEP,
	  .conf = LINE "allow=gpu partition=slow:allow=" },
	{ .name = "deny= of the partition", .refusal = "(deny=debug,slow in ",
	  .command = "srun --ddp -pslow " STEP,
	  .conf = LINE "deny=debug,slow" },
	{ .name = "deny= of another", .command = "srun --ddp -pslow " STEP,
	  .conf = LINE "deny=debug", .want = FILLED },
	{ .name = "deny= of the user's group", .refusal = "(deny=@root in ",
	  .command = "srun --ddp " STEP, .conf = LINE "deny=@root" },
	{ .name = "deny= of the user's group, whatever the partition",
	  .command = "srun --ddp -pgpu " STEP, .conf = LINE "deny=slow,@root",
	  .refusal = "(deny=slow,@root in plugstack.conf); leave it out\n" },
	{ .name = "deny=--ddp of a partition", .command = "srun --ddp -pslow "
	  STEP, .conf = LINE "partition=slow:deny=--ddp",
	  .refusal = "; leave it out, or choose another partition with -p\n" },
	{ .name = "deny= over allow=", .command = "srun --ddp -pgpu " STEP,
	  .conf = LINE "allow=gpu deny=@root", .refusal = "(deny=@root" },
	{ .name = "a group in one partition alone, there",
	  .command = "srun --ddp -pslow " STEP, .refusal = "(deny=@root in ",
	  .conf = LINE "partition=slow:deny=@root" },
	{ .name = "a group in one partition alone, elsewhere",
	  .command = "srun --ddp -pgpu " STEP, .want = FILLED,
	  .conf = LINE "partition=slow:deny=@root" },
	{ .name = "one of several denies", .refusal = "in partition slow (",
	  .command = "srun --ddp -pgpu,slow " STEP,
	  .conf = LINE "partition=slow:deny=@root" },
	{ .name = "an option that is denied",
	  .command = "srun --ddp --ddp-port=25000 " STEP,
	  .conf = LINE "deny=--ddp-port", .refusal = "--ddp-port: this site "
	  "does not allow it (deny=--ddp-port in plugstack.conf); leave it "
	  "out" },
	{ .name = "an option that is not", .want = FILLED,
	  .command = "srun --ddp --ddp-gpus=own " STEP,
	  .conf = LINE "deny=--ddp-port,--ddp-gpus=share,--ddp-cpus" },
	{ .name = "a word that is denied", .refusal = "--ddp-gpus=share: this",
	  .command = "srun --ddp --ddp-gpus=share " STEP,
	  .conf = LINE "deny=--ddp-port,--ddp-gpus=share" },
	{ .name = "a word among others", .refusal = "--ddp=dry-run: this",
	  .command = "srun --ddp=explain,dry-run " STEP,
	  .conf = LINE "deny=--ddp=dry-run" },
	{ .name = "a word that is the site's own is not denied",
	  .command = "srun --ddp " STEP, .want = FILLED,
	  .conf = LINE "ddp-gpus=own deny=--ddp-gpus" },
	{ .name = "an inherited option", .refusal = "--ddp-gpus: this site",
	  .command = "srun --ddp " STEP, .env = DDP_GPUS "own",
	  .conf = LINE "deny=--ddp-gpus" },
	{ .name = "no --ddp in a partition", .refusal = "--ddp: this site",
	  .command = "srun --ddp -pslow " STEP,
	  .conf = LINE "partition=slow:deny=--ddp" },
	{ .name = "sbatch", .command = "sbatch --ddp -pslow s.sh",
	  .conf = LINE "deny=slow", .refusal = "sbatch: error: slurm-ddp: "
	  "--ddp: this site does not allow it in partition slow" },
	{ .name = "nothing is denied without --ddp", .want = "same",
	  .command = "srun -pslow " STEP,
	  .conf = LINE "deny=slow,@root,--ddp allow=gpu" },
	{ .name = "nor with --ddp=off", .want = "same",
	  .command = "srun --ddp=off -pslow " STEP,
	  .conf = LINE "deny=slow,@root,--ddp allow=gpu" },
};

/* Bad arguments: what is wrong, and what would be right. */
#define BAD(argument, words) { .name = argument, .conf = LINE argument, \
	.command = "srun --ddp " STEP, \
	.refusal = "plugstack.conf: spank_ddp.so: " argument ": " words }

static const struct spank_case bad_cases[] = {
	BAD("interfce=ib0", "key 'interfce' is not one of ddp, ddp-gpus, "
	    "ddp-cpus, ddp-order, ddp-watchdog, ddp-grace, ddp-restarts, "
	    "ddp-check, port-range, interface, master, env, mpi, cpus, topology, "
	    "allow, deny, partition; did you mean interface"),
	BAD("partiton=a:mpi=keep", "key 'partiton' is not one of ddp, ddp-gpus,"
	    " ddp-cpus, ddp-order, ddp-watchdog, ddp-grace, ddp-restarts, "
	    "ddp-check, port-range, interface, master, env, mpi, cpus, topology, "
	    "allow, deny, partition; did you mean partition"),
	BAD("mpi", "mpi has no value; write KEY=VALUE"),
	BAD("mpi=pmi", "mpi 'pmi' is not one of pmix, keep; did you mean pmix"),
	BAD("ddp=dry-run", "ddp 'dry-run' is not one of on, explain"),
	BAD("ddp-gpus=shared", "--ddp-gpus 'shared' is not one of all, own, "
	    "share, off; did you mean share"),
	BAD("ddp-cpus=", "--ddp-cpus '' is not one of near, spread, off"),
	BAD("ddp-watchdog=4", "--ddp-watchdog=4: not a time; give seconds from "
	    "5 to 86400, or off"),
	BAD("master=n1", "not a host's name with %n, the name of rank 0's "),
	BAD("master=%nx%n", "not a host's name"), BAD("master=", "not a host"),
	BAD("master=%n/x", "not a host's name"), BAD("master=%h%n", "not a"),
	BAD("ddp-port=29500", "steps on one node need different ports; give "
	    "port-range=FIRST-LAST"),
	BAD("env=NCCL_DEBUG", "not a variable; write env=NAME=VALUE"),
	BAD("env=1A=b", "not a variable"), BAD("env==b", "not a variable"),
	BAD("env=A-B=c", "not a variable"),
	BAD("env=RANK=1", "Slurm or --ddp sets RANK itself"),
	BAD("env=MASTER_ADDR=n1", "Slurm or --ddp sets MASTER_ADDR itself"),
	BAD("env=SLURM_X=1", "Slurm or --ddp sets SLURM_X itself"),
	BAD("env=DDP_SET=1", "Slurm or --ddp sets DDP_SET itself"),
	BAD("env=CUDA_VISIBLE_DEVICES=0", "Slurm or --ddp sets CUDA_VIS"),
	BAD("env=GLOO_SOCKET_IFNAME=ib0", "Slurm or --ddp sets GLOO_SOCK"),
	BAD("partition=slow", "not for a partition; write partition=NAME:KEY="
	    "VALUE"),
	BAD("partition=:mpi=keep", "not for a partition"),
	BAD("partition=a,,b:mpi=keep", "not for a partition"),
	BAD("partition=a:mpi", "mpi has no value"),
	BAD("partition=a:partition=b:mpi=keep", "partition has no value of "
	    "its own here; write KEY=VALUE, or partition=NAME:KEY=VALUE"),
	BAD("partition=a:mpi=pmi2", "mpi 'pmi2' is not one of"),
	BAD("allow=a,,b", "not names with commas between"),
	BAD("allow=,a", "not names"), BAD("deny=a,", "not names"),
	BAD("deny=a:b", "not names"),
	BAD("allow=--ddp-port", "every option is allowed; give partitions or "
	    "@groups"),
	BAD("deny=--ddp-gpu", "option '--ddp-gpu' is not one of --ddp, "
	    "--ddp-port, --ddp-gpus, --ddp-cpus, --ddp-order, --ddp-env, "
	    "--ddp-supervise, "
	    "--ddp-report, --ddp-grace, --ddp-logs, --ddp-show, "
	    "--ddp-signal, --ddp-restarts, --ddp-spares, --ddp-watchdog, "
	    "--ddp-check; did you mean "
	    "--ddp-gpus"),
	BAD("deny=--ddp-gpus=shared", "--ddp-gpus 'shared' is not one of"),
};

static const struct spank_case explain_cases[] = {
	{ .name = "every default is told, with its reason",
	  .command = GIVEN "-pslow a", .err = EXPLAINED
	  SAY "ddp-cpus=spread: this site's default\n"
	  SAY "ddp-gpus=own: this site's default\n"
	  SAY "interface=ib0: this site's default\n"
	  SAY "env=NCCL_DEBUG=WARN: this site's default, unless you export "
	  "another\n"
	  SAY "env=NCCL_IB_HCA=mlx5_0: this site's default, unless you export "
	  "another\n",
	  .env = IN("slow"), .conf = LINE "partition=slow:ddp-cpus=spread "
	  "ddp-gpus=own interface=ib0 env=NCCL_DEBUG=INFO env=NCCL_DEBUG=WARN "
	  "env=NCCL_IB_HCA=mlx5_0 ddp-cpus=off partition=gpu:ddp-cpus=near" },
	{ .name = "in which of several a job runs, if nobody tells",
	  .command = GIVEN "a", .env = IN("slow,gpu"), .err = "srun: error: "
	  SAY "squeue does not tell in which of its partitions the job "
	  "runs; no default for one of them holds\n" EXPLAINED
	  SAY "ddp-cpus=off: this site's default\n",
	  .conf = LINE "ddp-cpus=off partition=slow:ddp-cpus=spread" },
	{ .name = "a watchdog is the site's",
	  .command = GIVEN "a", .err = EXPLAINED
	  SAY "ddp-watchdog=7200: this site's default\n",
	  .conf = LINE "ddp-watchdog=7200" },
	{ .name = "which the user undoes",
	  .command = GIVEN "--ddp-watchdog=off a", .err = EXPLAINED,
	  .conf = LINE "ddp-watchdog=7200" },
	{ .name = "and which goes where nobody watches",
	  .command = "srun --ddp=explain --ddp-supervise=off --nodes=2 -n4 "
	  "--mpi=pmix -K1 a", .err = EXPLAINED
	  SAY "ddp-watchdog=7200: this site's default\n",
	  .conf = LINE "ddp-watchdog=7200" },
	{ .name = "what the user chose is not the site's",
	  .command = GIVEN "--ddp-gpus=own a", .err = EXPLAINED,
	  .conf = LINE "ddp-gpus=own ddp=on" },
	{ .name = "ddp=explain explains a bare --ddp",
	  .conf = LINE "ddp=explain",
	  .command = "srun --ddp --nodes=2 -n4 --mpi=pmix -K1 a",
	  .err = EXPLAINED SAY "ddp=explain: this site's default; --ddp=on "
	  "goes without\n" },
	{ .name = "and not --ddp=on", .conf = LINE "ddp=explain", .err = "",
	  .command = "srun --ddp=on --nodes=2 -n4 --mpi=pmix -K1 a",
	  .want = "RANK=slurm-ddp-plugin-missing-on-this-node" },
	{ .name = "nor a step without --ddp", .conf = LINE "ddp=explain",
	  .command = "srun " STEP, .want = "same" },
	{ .name = "nor --ddp in a partition with ddp=on", .err = "",
	  .conf = LINE "ddp=explain partition=slow:ddp=on", .env = IN("slow"),
	  .command = "srun --ddp --nodes=2 -n4 --mpi=pmix -K1 -pslow a" },
};

static const struct spank_case task_cases[] = {
	{ .name = "env=", .env = TWO, .command = STEPD(OFF),
	  .conf = LINE "env=NCCL_DEBUG=WARN env=A=", .want = "NCCL_DEBUG=WARN|"
	  "A=|RANK=0|DDP_SET=job=12.0 NCCL_DEBUG=WARN A= " RANKS " MASTER_ADDR="
	  "n1 MASTER_PORT=24331 " JAX " OMP_NUM_THREADS=1 "
	  "GLOO_SOCKET_IFNAME=eth7 ACCELERATE_USE_CPU=true "
	  "PET_NNODES=torchrun-needs-srun---ddp=torchrun" },
	{ .name = "% words of env=, and those of programs", .env = TWO,
	  .command = STEPD(OFF), .conf = LINE "env=A=%j-%n-%t-%h%p%",
	  .want = "A=12-n1-0-%h%p%" },
	{ .name = "master=", .env = TWO, .command = STEPD(OFF),
	  .conf = LINE "master=%nib.site",
	  .want = "MASTER_ADDR=n1ib.site|JAX_COORDINATOR_ADDRESS=n1ib.site:"
	  "28331" },
	{ .name = "a MASTER_ADDR of the user's over it", .command = STEPD(OFF),
	  .env = TWO "|MASTER_ADDR=here", .conf = LINE "master=%nib",
	  .want = "MASTER_ADDR=here" },
	{ .name = "the user's own before that", .command = STEPD(OFF),
	  .env = TWO "|NCCL_DEBUG=INFO|A=", .want = "NCCL_DEBUG=INFO|A=|"
	  "DDP_SET=job=12.0 " RANKS " MASTER_ADDR=n1 MASTER_PORT=24331 "
	  JAX " OMP_NUM_THREADS=1 GLOO_SOCKET_IFNAME=eth7 "
	  "ACCELERATE_USE_CPU=true "
	  "PET_NNODES=torchrun-needs-srun---ddp=torchrun",
	  .conf = LINE "env=NCCL_DEBUG=WARN env=A=b" },
	{ .name = "env= has nothing for a task without --ddp", .env = TWO,
	  .command = "slurmstepd 0 0 2 4 train", .want = "same",
	  .conf = LINE "env=NCCL_DEBUG=WARN" },
	{ .name = "env=OMP_NUM_THREADS over what is worked out", .env = TWO,
	  .command = STEPD(OFF), .conf = LINE "env=OMP_NUM_THREADS=7",
	  .want = "OMP_NUM_THREADS=7" },
	{ .name = "env=NCCL_SOCKET_IFNAME over interface=", .env = TWO,
	  .command = STEPD(OFF), .conf = LINE "interface=ib0 "
	  "env=NCCL_SOCKET_IFNAME=^docker0", .want = "NCCL_SOCKET_IFNAME="
	  "^docker0|GLOO_SOCKET_IFNAME=ib0" },
	{ .name = "a partition's env= over the site's, by name",
	  .env = TWO IN("slow"), .command = STEPD(OFF), .conf = LINE
	  "partition=slow:env=A=1 env=A=2 env=B=2 partition=gpu:env=B=3 "
	  "partition=slow:interface=ib1 interface=ib0",
	  .want = "A=1|B=2|GLOO_SOCKET_IFNAME=ib1" },
	{ .name = "what srun tells of several", .command = STEPD(OFF),
	  .env = TWO IN("gpu,slow") "|SLURM_DDP_PARTITION=slow|"
	  "SLURM_DDP_ADDED=SLURM_DDP_PARTITION",
	  .want = "A=1|-SLURM_DDP_PARTITION|-SLURM_DDP_ADDED",
	  .conf = LINE "partition=slow:env=A=1 env=A=2" },
	{ .name = "several, of which srun does not tell",
	  .env = TWO IN("gpu,slow"), .command = STEPD(OFF), .want = "A=2",
	  .conf = LINE "partition=slow:env=A=1 partition=gpu:env=A=3 env=A=2" },
	{ .name = "port-range= of a partition", .env = TWO IN("slow"),
	  .command = STEPD(OFF), .want = "MASTER_PORT=30416",
	  .conf = LINE "partition=slow:port-range=30000-30999" },
	{ .name = "ddp-gpus=own", .env = GPUS, .tasks = "#cpus=0-71",
	  .command = STEPD(""), .conf = ON "ddp-gpus=own", .err = OWN,
	  .want = "0:CUDA_VISIBLE_DEVICES=0|1:CUDA_VISIBLE_DEVICES=4" },
	{ .name = "an option over ddp-gpus=", .env = GPUS,
	  .tasks = "#cpus=0-71", .command = STEPD("--ddp-gpus=all"),
	  .conf = ON "ddp-gpus=own partition=slow:ddp-gpus=off",
	  .want = "0:CUDA_VISIBLE_DEVICES=0,4|1:CUDA_VISIBLE_DEVICES=0,4" },
	{ .name = "placement in one partition alone, there",
	  .env = GPUS IN("slow"), .tasks = "#cpus=0-71", .command = STEPD(""),
	  .err = OWN,
	  .conf = ON "ddp-gpus=off ddp-cpus=off partition=slow:ddp-gpus=own",
	  .want = "0:CUDA_VISIBLE_DEVICES=0|1:CUDA_VISIBLE_DEVICES=4|"
	  "0:#cpus=0-71" },
	{ .name = "placement in one partition alone, elsewhere",
	  .env = GPUS IN("gpu"), .tasks = "#cpus=0-71", .command = STEPD(""),
	  .conf = ON "ddp-gpus=off ddp-cpus=off partition=slow:ddp-gpus=own",
	  .want = "0:CUDA_VISIBLE_DEVICES=0,4|0:#cpus=0-71|-0:DDP_PLACEMENT" },
	{ .name = "a bad argument is told by the task", .env = TWO,
	  .command = STEPD(OFF), .conf = LINE "partition=slow:interfce=ib0",
	  .refusal = "slurm-ddp: rank 0 on n1: plugstack.conf: spank_ddp.so: "
	  "partition=slow:interfce=ib0: key 'interfce' is not one of " },
	{ .name = "what is for srun alone does not matter to a task",
	  .env = TWO IN("slow"), .command = STEPD(OFF), .want = "RANK=0",
	  .conf = LINE "allow=gpu deny=slow,@root,--ddp" },
};

/* A step within a --ddp step does not see what the site set for that. */
static const struct spank_case outer_cases[] = {
	{ .name = "env= of an outer step", .command = "srun " STEP,
	  .env = "A=b|B=c|C=d|D=e|DDP_SET=job=12.3 A=b B=x D=e",
	  .conf = LINE "env=A=z env=B=c partition=slow:env=C=d",
	  .want = "-A|B=c|C=d|D=e" },
	{ .name = "env= of an outer step, by partition", .want = "-C",
	  .command = "srun " STEP, .env = "C=d|DDP_SET=job=12.3 C=d",
	  .conf = LINE "partition=slow:env=C=d" },
};

void test_site(void)
{
	cases_run(partition_cases, COUNT(partition_cases));
	cases_run(allow_cases, COUNT(allow_cases));
	cases_run(bad_cases, COUNT(bad_cases));
	cases_run(explain_cases, COUNT(explain_cases));
	cases_run(task_cases, COUNT(task_cases));
	cases_run(outer_cases, COUNT(outer_cases));
}
