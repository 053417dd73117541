/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * In slurmstepd: the variables of one task, which is rank 1 of 4 on two nodes
 * unless a case says otherwise; whose value wins; and what is refused. Its
 * siblings are not there, so that nothing is placed: see test_siblings.c for
 * that. Derived ports were worked out by port_range.h's rule: job 12's steps
 * begin at 24331 by default, and at 30416 in 30000 to 30999; second ports are
 * half the range further, 28331 and 30916.
 */
#define _GNU_SOURCE
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "host.h"

#define POISON "slurm-ddp-plugin-missing-on-this-node"
#define OFF " --ddp-gpus=off --ddp-cpus=off "
#define STEP(numbers) "slurmstepd 0 " numbers " --ddp" OFF "train"
#define COMMAND STEP("0 2 4")
#define PORT(option) \
	"slurmstepd 0 0 2 4 --ddp" OFF "--ddp-port=" option " train"
#define TF "--ddp-env=tf train"
#define STEP_TF "slurmstepd 0 0 2 4 --ddp" OFF TF
#define WORKERS(first, second) "TF_CONFIG={\"cluster\":{\"worker\":[" \
	"\"n1:" first "\",\"n1:" second "\",\"n2:" first "\",\"n2:" second \
	"\"]},\"task\":{\"type\":\"worker\",\"index\":1}}"
#define BASE "SLURM_JOB_ID=12|SLURM_STEP_NUM_TASKS=4|SLURM_PROCID=1|" \
	"SLURM_LOCALID=1|SLURM_STEP_NODELIST=n[1-2]|SLURMD_NODENAME=n1|" \
	"SLURM_STEP_TASKS_PER_NODE=2(x2)|SLURM_DISTRIBUTION=block"
#define RANK0 BASE "|SLURM_PROCID=0|SLURM_LOCALID=0"
#define RANKS "RANK=1|LOCAL_RANK=1|WORLD_SIZE=4|LOCAL_WORLD_SIZE=2|" \
	"NODE_RANK=0|GROUP_RANK=0|GROUP_WORLD_SIZE=2|ROLE_RANK=1|" \
	"ROLE_WORLD_SIZE=4|SLURM_NTASKS_PER_NODE=2"
#define REST "MASTER_ADDR=n1|MASTER_PORT=24331|OMP_NUM_THREADS=1|" \
	"JAX_COORDINATOR_ADDRESS=n1:28331|-JAX_LOCAL_DEVICE_IDS|" \
	"GLOO_SOCKET_IFNAME=eth7|ACCELERATE_USE_CPU=true"
#define SEVERAL "PET_NNODES=torchrun-needs-srun---ddp=torchrun"
#define RECORD_SEVERAL " " SEVERAL
#define RECORD_OTHERS "DDP_SET=job=12.0 RANK=1 LOCAL_RANK=1 WORLD_SIZE=4 " \
	"LOCAL_WORLD_SIZE=2 NODE_RANK=0 GROUP_RANK=0 GROUP_WORLD_SIZE=2 " \
	"ROLE_RANK=1 ROLE_WORLD_SIZE=4"
#define RECORD_RANKS RECORD_OTHERS " SLURM_NTASKS_PER_NODE=2"
#define RECORD_REST "MASTER_PORT=24331 " \
	"JAX_COORDINATOR_ADDRESS=n1:28331 OMP_NUM_THREADS=1 " \
	"GLOO_SOCKET_IFNAME=eth7 ACCELERATE_USE_CPU=true" RECORD_SEVERAL
#define RECORD RECORD_RANKS " MASTER_ADDR=n1 " RECORD_REST
#define LINE "optional spank_ddp.so"

static const struct spank_case none_cases[] = {
	{ .name = "a task without --ddp", .env = BASE "|A=b", .want = "same",
	  .command = "slurmstepd 0 0 2 4 train" },
	{ .name = "a task without --ddp, bad keys", .env = BASE,
	  .want = "same", .command = "slurmstepd 0 0 2 4 train",
	  .conf = LINE " speed=9 mpi" },
	{ .name = "Slurm is asked nothing", .env = BASE,
	  .command = "slurmstepd 0 0 2 4 train", .want = "#calls=17" },
	{ .name = "a task with --ddp=off", .env = BASE, .want = "same",
	  .command = "slurmstepd 0 0 2 4 --ddp=off train" },
	{ .name = "off as the later word", .env = BASE, .want = "same",
	  .command = "slurmstepd 0 0 2 4 --ddp --ddp=off train" },
	{ .name = "the batch step", .want = "A=b|-RANK|-DDP_SET", .env = "A=b",
	  .command = "slurmstepd 0 0xfffffffb 1 2 --ddp script" },
	{ .name = "the interactive step", .want = "A=b|-RANK", .env = "A=b",
	  .command = "slurmstepd 0 0xfffffffa 1 2 --ddp bash" },
	{ .name = "the extern step", .want = "A=b|-RANK", .env = "A=b",
	  .command = "slurmstepd 0 0xfffffffc 1 2 --ddp sleep" },
	{ .name = "orted", .want = "-RANK|-DDP_SET", .env = BASE,
	  .command = "slurmstepd 0 0 1 2 --ddp orted --x" },
	{ .name = "prted with a path", .want = "-RANK", .env = BASE,
	  .command = "slurmstepd 0 0 1 2 --ddp /opt/bin/prted" },
};

static const struct spank_case value_cases[] = {
	{ .name = "--ddp, every variable", .env = BASE, .command = COMMAND,
	  .want = RANKS "|" REST "|" RECORD "|-NCCL_SOCKET_IFNAME" },
	{ .name = "--ddp=", .env = BASE, .want = RANKS "|" REST,
	  .command = "slurmstepd 0 0 2 4 --ddp=" OFF "train" },
	{ .name = "--ddp=(null)", .env = BASE, .want = RANKS "|" REST,
	  .command = "slurmstepd 0 0 2 4 --ddp=(null)" OFF "train" },
	{ .name = "on as the later word", .env = BASE, .want = RANKS "|" REST,
	  .command = STEP("0 2 4 --ddp=off") },
	{ .name = "two lines in plugstack.conf", .env = BASE,
	  .command = COMMAND, .conf = LINE "\n" LINE,
	  .want = RANKS "|" REST "|" RECORD },
	{ .name = "the last step before the special ones", .env = BASE,
	  .want = RANKS, .command = STEP("0xfffffff9 2 4") },
	{ .name = "a stale RANK never wins", .command = COMMAND,
	  .env = BASE "|RANK=7|LOCAL_RANK=7|WORLD_SIZE=9|LOCAL_WORLD_SIZE=9|"
		 "NODE_RANK=7|GROUP_RANK=7|GROUP_WORLD_SIZE=9|ROLE_RANK=7|"
		 "ROLE_WORLD_SIZE=9", .want = RANKS },
	{ .name = "nor what a missing plugin leaves", .command = COMMAND,
	  .env = BASE "|RANK=" POISON "|LOCAL_RANK=" POISON
		 "|WORLD_SIZE=" POISON, .want = RANKS },
	{ .name = "the user's values win", .command = COMMAND,
	  .env = BASE "|MASTER_ADDR=elsewhere|MASTER_PORT=29500|"
		 "OMP_NUM_THREADS=3|GLOO_SOCKET_IFNAME=ib0|"
		 "NCCL_SOCKET_IFNAME=ib|ACCELERATE_USE_CPU=0",
	  .want = RANKS "|ACCELERATE_USE_CPU=0|MASTER_ADDR="
	  "elsewhere|MASTER_PORT=29500|OMP_NUM_THREADS=3|GLOO_SOCKET_IFNAME="
	  "ib0|NCCL_SOCKET_IFNAME=ib|" RECORD_RANKS
	  " JAX_COORDINATOR_ADDRESS=elsewhere:28331" RECORD_SEVERAL },
	{ .name = "empty ones do not", .command = COMMAND,
	  .env = BASE "|MASTER_ADDR=|MASTER_PORT=|OMP_NUM_THREADS=|"
		 "GLOO_SOCKET_IFNAME=", .want = RANKS "|" REST },
	{ .name = "what srun was given is taken out", .command = COMMAND,
	  .env = BASE "|A=b|SLURM_MPI_TYPE=none|SLURM_X=1|SLURM_DDP_ADDED="
		 "SLURM_MPI_TYPE SLURM_X SLURM_GONE", .want = RANKS
	  "|A=b|-SLURM_MPI_TYPE|-SLURM_X|-SLURM_GONE|-SLURM_DDP_ADDED" },
	{ .name = "options of the job that Slurm has left are taken out",
	  .env = BASE "|_SLURM_SPANK_OPTION_ddp_ddp_grace=5|"
	  "_SLURM_SPANK_OPTION_ddp_ddp_show=0|_SLURM_SPANK_OPTION_x_y=1|A=b|"
	  "_SLURM_SPANK_OPTION_ddp_ddp_logs=l|SLURM_SPANK__SLURM_SPANK_OPTION_"
	  "ddp_ddp=", .command = COMMAND,
	  .want = RANKS "|A=b|_SLURM_SPANK_OPTION_x_y=1|"
	  "SLURM_SPANK__SLURM_SPANK_OPTION_ddp_ddp=|"
	  "-_SLURM_SPANK_OPTION_ddp_ddp_grace|"
	  "-_SLURM_SPANK_OPTION_ddp_ddp_show|"
	  "-_SLURM_SPANK_OPTION_ddp_ddp_logs" },
	{ .name = "a number of tasks that srun was given, and tasks are told",
	  .env = BASE "|SLURM_NTASKS_PER_NODE_HET_GROUP_0=2|SLURM_DDP_ADDED="
	  "SLURM_NTASKS_PER_NODE_HET_GROUP_0 SLURM_NTASKS_PER_NODE|"
	  "SLURM_NTASKS_PER_NODE=2", .command = COMMAND,
	  .want = RANKS "|-SLURM_NTASKS_PER_NODE_HET_GROUP_0|" RECORD },
	{ .name = "one that was given by the user", .command = COMMAND,
	  .env = BASE "|SLURM_NTASKS_PER_NODE=3",
	  .want = "SLURM_NTASKS_PER_NODE=3|" RECORD_OTHERS
	  " MASTER_ADDR=n1 " RECORD_REST },
	{ .name = "nodes with different numbers of ranks", .env = BASE
	  "|SLURM_STEP_NUM_TASKS=5|SLURM_STEP_TASKS_PER_NODE=2,3|"
	  "SLURM_NTASKS_PER_NODE=3|SLURM_DDP_ADDED=SLURM_NTASKS_PER_NODE",
	  .want = "WORLD_SIZE=5|-SLURM_NTASKS_PER_NODE",
	  .command = STEP("0 2 5") },
	{ .name = "interface=", .env = BASE, .command = COMMAND,
	  .conf = LINE " interface=ib0", .want = "GLOO_SOCKET_IFNAME=ib0|"
	  "NCCL_SOCKET_IFNAME==ib0" },
	{ .name = "a name that NCCL alone knows", .env = BASE "|"
	  "NCCL_SOCKET_IFNAME=^lo", .command = COMMAND, .conf = LINE
	  " interface=ib0", .want = "NCCL_SOCKET_IFNAME=^lo" },
	{ .name = "the user's names, where the node has no such interface",
	  .env = BASE "|GLOO_SOCKET_IFNAME=a|NCCL_SOCKET_IFNAME=b",
	  .command = COMMAND, .conf = LINE " interface=ib7",
	  .want = "GLOO_SOCKET_IFNAME=a|NCCL_SOCKET_IFNAME=b" },
};

/* Task 1 of 2, one on each node, which sees two GPUs */
#define SINGLE BASE "|SLURM_STEP_NUM_TASKS=2|SLURM_LOCALID=0|" \
	"SLURM_STEP_TASKS_PER_NODE=1(x2)|SLURMD_NODENAME=n2|" \
	"CUDA_VISIBLE_DEVICES=0,1"
#define EIGHT "#cpus=0-7"
#define PET "PET_NNODES=2|PET_NODE_RANK=1|PET_MASTER_ADDR=n1|" \
	"PET_MASTER_PORT=24331|PET_RDZV_ENDPOINT=n1:24331|PET_RDZV_ID=12.0"
#define NO_PET "-PET_NODE_RANK|-PET_NPROC_PER_NODE|-PET_MASTER_ADDR|" \
	"-PET_MASTER_PORT|-PET_RDZV_ENDPOINT|-PET_RDZV_ID"
#define ALONE "slurmstepd 0 0 1 2 --ddp" OFF "train"
#define TOLD(ranks) "|SLURM_DDP_LAUNCHER=" ranks \
	"|SLURM_DDP_ADDED=SLURM_DDP_LAUNCHER"

static const struct spank_case launcher_cases[] = {
	{ .name = "several tasks a node are no place for torchrun",
	  .env = BASE, .command = COMMAND, .want = SEVERAL "|" NO_PET },
	{ .name = "unless the user says so", .env = BASE "|PET_NNODES=4",
	  .command = COMMAND, .want = "PET_NNODES=4|" NO_PET },
	{ .name = "one task a node is", .env = SINGLE, .command = ALONE,
	  .want = PET "|PET_NPROC_PER_NODE=2" },
	{ .name = "a program there may start ranks for its GPUs", .env = SINGLE,
	  .command = ALONE, .tasks = EIGHT, .want = "-0:OMP_NUM_THREADS" },
	{ .name = "with one GPU it has all CPUs", .tasks = EIGHT,
	  .env = SINGLE "|CUDA_VISIBLE_DEVICES=0", .command = ALONE,
	  .want = "0:OMP_NUM_THREADS=8" },
	{ .name = "a launcher's WORLD_SIZE is the user's", .command = ALONE,
	  .env = SINGLE TOLD("0") "|WORLD_SIZE=4", .want = "WORLD_SIZE=4" },
	{ .name = "a rank's is not", .command = ALONE,
	  .env = SINGLE "|WORLD_SIZE=4", .want = "WORLD_SIZE=2" },
	{ .name = "one of several sruns gets no PET_ variables",
	  .env = SINGLE TOLD("0") "|SLURM_DDP_PET=none", .command = ALONE,
	  .want = NO_PET "|-PET_NNODES|-PET_NPROC_PER_NODE" },
	{ .name = "a rendezvous that ranks nodes is told no rank",
	  .env = SINGLE TOLD("0") "|SLURM_DDP_PET=no-rank", .command = ALONE,
	  .want = "-PET_NODE_RANK|PET_NNODES=2" },
	{ .name = "without GPUs", .command = ALONE,
	  .env = SINGLE "|-CUDA_VISIBLE_DEVICES",
	  .want = PET "|-PET_NPROC_PER_NODE" },
	{ .name = "where the master is another", .command = ALONE,
	  .env = SINGLE "|MASTER_ADDR=elsewhere|MASTER_PORT=29500",
	  .want = "PET_MASTER_ADDR=elsewhere|PET_MASTER_PORT=29500|"
	  "PET_RDZV_ENDPOINT=elsewhere:29500" },
	{ .name = "where the user knows better", .command = ALONE,
	  .env = SINGLE "|PET_NPROC_PER_NODE=8|PET_RDZV_ID=mine",
	  .want = "PET_NPROC_PER_NODE=8|PET_RDZV_ID=mine|PET_NNODES=2" },
	{ .name = "a launcher's ranks share the CPUs",
	  .command = ALONE, .tasks = EIGHT, .env = SINGLE TOLD("0"),
	  .want = "0:OMP_NUM_THREADS=4|-0:SLURM_DDP_LAUNCHER|"
	  "-0:SLURM_DDP_ADDED" },
	{ .name = "as many as it was told to start",
	  .command = ALONE, .tasks = EIGHT, .env = SINGLE TOLD("3"),
	  .want = "0:OMP_NUM_THREADS=2" },
	{ .name = "by the environment",
	  .command = ALONE, .tasks = EIGHT,
	  .env = SINGLE TOLD("0") "|PET_NPROC_PER_NODE=8",
	  .want = "0:OMP_NUM_THREADS=1" },
	{ .name = "each has one at least",
	  .command = ALONE, .tasks = EIGHT, .env = SINGLE TOLD("9"),
	  .want = "0:OMP_NUM_THREADS=1" },
	{ .name = "where nobody knows how many, it decides",
	  .command = ALONE, .tasks = EIGHT,
	  .env = SINGLE TOLD("0") "|-CUDA_VISIBLE_DEVICES",
	  .want = "-0:OMP_NUM_THREADS" },
	{ .name = "the user's number of threads stays",
	  .command = ALONE, .tasks = EIGHT,
	  .env = SINGLE TOLD("0") "|OMP_NUM_THREADS=7",
	  .want = "0:OMP_NUM_THREADS=7" },
};

static const struct spank_case port_cases[] = {
	{ .name = "a derived port", .env = RANK0, .command = COMMAND,
	  .want = "MASTER_PORT=24331" },
	{ .name = "of another step", .env = BASE, .want = "MASTER_PORT=24338",
	  .command = STEP("7 2 4") },
	{ .name = "in port-range=", .env = RANK0, .command = COMMAND,
	  .conf = LINE " port-range=30000-30999",
	  .want = "MASTER_PORT=30416" },
	{ .name = "Slurm's reservation before that", .command = COMMAND,
	  .env = BASE "|SLURM_STEP_RESV_PORTS=12005-12007",
	  .want = "MASTER_PORT=12005" },
	{ .name = "the user's before that", .command = COMMAND, .env = BASE
	  "|SLURM_STEP_RESV_PORTS=12005-12007|MASTER_PORT=29500",
	  .want = "MASTER_PORT=29500" },
	{ .name = "--ddp-port before that", .command = PORT("25000"),
	  .env = BASE "|SLURM_STEP_RESV_PORTS=12005-12007|MASTER_PORT=29500",
	  .want = "MASTER_PORT=25000|" RECORD_RANKS " MASTER_ADDR=n1 "
		  "MASTER_PORT=25000 JAX_COORDINATOR_ADDRESS=n1:12006 "
		  "OMP_NUM_THREADS=1 GLOO_SOCKET_IFNAME=eth7 "
		  "ACCELERATE_USE_CPU=true" RECORD_SEVERAL },
	{ .name = "the later --ddp-port", .env = BASE,
	  .command = PORT("25000 --ddp-port=26000"),
	  .want = "MASTER_PORT=26000" },
	{ .name = "a reservation of all components", .env = BASE
	  "|SLURM_STEP_RESV_PORTS=12005|SLURM_MPI_TYPE=pmix|"
	  "SLURM_PMIX_MAPPING_SERV=(vector,(0,2,2))",
	  .command = STEP("0 2 2"),
	  .want = "MASTER_PORT=12005" },
};

/* JAX's, beside the master's */
static const struct spank_case second_cases[] = {
	{ .name = "a second port, derived", .env = RANK0, .command = COMMAND,
	  .conf = LINE " port-range=30000-30999",
	  .want = "JAX_COORDINATOR_ADDRESS=n1:30916" },
	{ .name = "the second that Slurm reserves", .command = COMMAND,
	  .env = BASE "|SLURM_STEP_RESV_PORTS=12005,12008-12009",
	  .want = "JAX_COORDINATOR_ADDRESS=n1:12008" },
	{ .name = "where that is the user's MASTER_PORT", .command = COMMAND,
	  .env = BASE "|SLURM_STEP_RESV_PORTS=12005-12007|MASTER_PORT=12006",
	  .want = "JAX_COORDINATOR_ADDRESS=n1:12005|MASTER_PORT=12006" },
	{ .name = "where the derived one is that", .command = COMMAND,
	  .env = BASE "|MASTER_PORT=28331",
	  .want = "JAX_COORDINATOR_ADDRESS=n1:24331|MASTER_PORT=28331" },
	{ .name = "where the derived one is --ddp-port", .env = BASE,
	  .command = PORT("28331"),
	  .want = "JAX_COORDINATOR_ADDRESS=n1:24331|MASTER_PORT=28331" },
	{ .name = "where Slurm has reserved but one", .command = COMMAND,
	  .env = BASE "|SLURM_STEP_RESV_PORTS=12005",
	  .want = "JAX_COORDINATOR_ADDRESS=n1:28331|MASTER_PORT=12005" },
	{ .name = "where that is the only one that is reserved",
	  .env = BASE "|SLURM_STEP_RESV_PORTS=28331", .command = COMMAND,
	  .want = "JAX_COORDINATOR_ADDRESS=n1:24331|MASTER_PORT=28331" },
	{ .name = "on the user's master", .command = COMMAND,
	  .env = BASE "|MASTER_ADDR=fd00::9",
	  .want = "JAX_COORDINATOR_ADDRESS=[fd00::9]:28331" },
	{ .name = "the user's own coordinator", .command = COMMAND,
	  .env = BASE "|JAX_COORDINATOR_ADDRESS=a:1|JAX_LOCAL_DEVICE_IDS=0",
	  .want = "JAX_COORDINATOR_ADDRESS=a:1|JAX_LOCAL_DEVICE_IDS=0" },
	{ .name = "the user's port for it", .command = COMMAND,
	  .env = BASE "|JAX_COORDINATOR_PORT=7",
	  .want = "JAX_COORDINATOR_ADDRESS=n1:7|JAX_COORDINATOR_PORT=7" },
	{ .name = "which is none", .command = COMMAND, .env = RANK0
	  "|JAX_COORDINATOR_PORT=x", .refusal = "JAX_COORDINATOR_PORT=x is "
	  "not a port; export one" },
};

/* TensorFlow's: a port for each rank of a node */
static const struct spank_case tf_cases[] = {
	{ .name = "--ddp-env=tf", .env = BASE, .command = STEP_TF,
	  .want = WORKERS("24331", "28331") "|" RECORD_RANKS " MASTER_ADDR=n1 "
	  "MASTER_PORT=24331 JAX_COORDINATOR_ADDRESS=n1:28331 "
	  WORKERS("24331", "28331") " OMP_NUM_THREADS=1 GLOO_SOCKET_IFNAME="
	  "eth7 ACCELERATE_USE_CPU=true" RECORD_SEVERAL },
	{ .name = "without it", .env = BASE, .command = COMMAND,
	  .want = "-TF_CONFIG" },
	{ .name = "--ddp-env=tf, reserved ports", .command = STEP_TF,
	  .env = BASE "|SLURM_STEP_RESV_PORTS=12005,12008-12009",
	  .want = WORKERS("12005", "12008") },
	{ .name = "--ddp-env=tf, MASTER_PORT is another rank's",
	  .env = BASE "|SLURM_STEP_RESV_PORTS=12005-12007|MASTER_PORT=12006",
	  .command = STEP_TF, .want = WORKERS("12006", "12005") },
	{ .name = "--ddp-env=tf and the user's own", .command = STEP_TF,
	  .env = BASE "|TF_CONFIG={}", .want = "TF_CONFIG={}" },
	{ .name = "another word", .env = RANK0, .command = "slurmstepd 0 0 2 4 "
	  "--ddp" OFF "--ddp-env=jax train",
	  .refusal = "--ddp-env 'jax' is not one of tf" },
	{ .name = "more ranks on a node than half of the range",
	  .env = "SLURM_JOB_ID=12|SLURM_STEP_NUM_TASKS=33|SLURM_PROCID=0|"
	  "SLURM_LOCALID=0|SLURM_STEP_NODELIST=n1|SLURMD_NODENAME=n1|"
	  "SLURM_STEP_TASKS_PER_NODE=33|SLURM_DISTRIBUTION=block",
	  .command = "slurmstepd 0 0 33 33 --ddp" OFF TF,
	  .conf = LINE " port-range=30000-30063",
	  .refusal = "port-range=30000-30063 has no port for each rank" },
};

static const struct spank_case refused_cases[] = {
	{ .name = "a malformed reservation", .command = COMMAND,
	  .env = RANK0 "|SLURM_STEP_RESV_PORTS=x", .refusal = "rank 0 on n1: "
	  "reserved ports 'x'" },
	{ .name = "a MASTER_PORT that is no number", .command = COMMAND,
	  .env = RANK0 "|MASTER_PORT=http",
	  .refusal = "MASTER_PORT=http is not a port; export one from 1 to" },
	{ .name = "a MASTER_PORT of 0", .command = COMMAND, .env = RANK0
	  "|MASTER_PORT=0", .refusal = "MASTER_PORT=0 is not a port" },
	{ .name = "too large a MASTER_PORT", .command = COMMAND, .env = RANK0
	  "|MASTER_PORT=65536", .refusal = "MASTER_PORT=65536 is not" },
	{ .name = "a bad word", .env = RANK0,
	  .command = "slurmstepd 0 0 2 4 --ddp=x" OFF "train",
	  .refusal = "--ddp 'x' is not one of" },
	{ .name = "a bad --ddp-port", .env = RANK0, .command = PORT("80"),
	  .refusal = "--ddp-port=80" },
	{ .name = "an unknown key", .env = RANK0, .command = COMMAND,
	  .conf = LINE " speed=9", .refusal = "rank 0 on n1: plugstack.conf" },
	{ .name = "a master that does not resolve", .command = COMMAND,
	  .env = RANK0 "|SLURM_STEP_NODELIST=gone,n1|SLURM_PROCID=2",
	  .refusal = "rank 2 on n1: the master's name gone does not resolve" },
	{ .name = "a master that is loopback", .command = COMMAND,
	  .env = RANK0 "|SLURM_STEP_NODELIST=loop,n1|SLURM_PROCID=2",
	  .refusal = "loop resolves to loopback (127.0.1.1) on n1" },
	{ .name = "the user's master that does not resolve", .env = RANK0
	  "|MASTER_ADDR=gone", .command = COMMAND,
	  .refusal = "the master's name gone does not resolve" },
	{ .name = "the user's master that is loopback", .env = RANK0
	  "|MASTER_ADDR=loop", .command = COMMAND,
	  .refusal = "loop resolves to loopback" },
	{ .name = "an interface that the node has not got", .env = RANK0,
	  .command = COMMAND, .conf = LINE " interface=ib7",
	  .refusal = "rank 0 on n1: interface=ib7: n1 has no such network "
	  "interface with an address; " },
	{ .name = "which the user names for Gloo alone", .command = COMMAND,
	  .env = RANK0 "|GLOO_SOCKET_IFNAME=a", .conf = LINE " interface=ib7",
	  .refusal = "interface=ib7: n1 has no such" },
	{ .name = "an interface without an address", .env = RANK0,
	  .command = COMMAND, .conf = LINE " interface=dummy0",
	  .refusal = "interface=dummy0: n1 has no such" },
	{ .name = "one rank of a node that shares nothing speaks for all",
	  .env = BASE "|SLURM_STEP_NUM_TASKS=5000|SLURM_STEP_NODELIST=n1|"
	  "SLURM_STEP_TASKS_PER_NODE=5000|MASTER_PORT=0", .status = 1,
	  .command = STEP("0 5000 5000"), .want = "" },
	{ .name = "Slurm and the layout at odds, rank", .command = COMMAND,
	  .env = BASE "|SLURM_PROCID=2", .refusal = "local task 1 of 2 on n1, "
	  "and by the step's layout it is 0 of 2 on n2" },
	{ .name = "Slurm and the layout at odds, node", .command = COMMAND,
	  .env = BASE "|SLURMD_NODENAME=n2", .refusal = "1 of 2 on n1" },
	{ .name = "Slurm and the layout at odds, local tasks", .env = BASE,
	  .command = STEP("0 3 4"), .refusal = "1 of 3" },
	{ .name = "a rank beyond", .command = COMMAND, .env = BASE
	  "|SLURM_PROCID=4", .refusal = "rank 4 is not in a world of 4" },
	{ .name = "a world of another size", .env = BASE "|"
	  "SLURM_STEP_NUM_TASKS=5", .command = STEP("0 2 5"),
	  .refusal = "Slurm runs it as" },
};

#define ELSEWHERE(address) "slurm-ddp: MASTER_ADDR=" address ", which was " \
	"exported, is no address of n1, where rank 0 runs: ranks that look " \
	"for rank 0 there wait in vain; unset MASTER_ADDR\n"

/* Said by rank 0 alone, and only where ranks would look for it there. */
static const struct spank_case elsewhere_cases[] = {
	{ .name = "the user's master is another node", .command = COMMAND,
	  .env = RANK0 "|MASTER_ADDR=n2", .want = "MASTER_ADDR=n2",
	  .err = ELSEWHERE("n2"), .writes = 1 },
	{ .name = "of which another rank says nothing", .command = COMMAND,
	  .env = BASE "|MASTER_ADDR=n2", .want = "MASTER_ADDR=n2" },
	{ .name = "the user's master is rank 0's node", .command = COMMAND,
	  .env = RANK0 "|MASTER_ADDR=here", .want = "MASTER_ADDR=here" },
	{ .name = "the user's master is another node than a lone rank's",
	  .env = RANK0 "|SLURM_STEP_NODELIST=n1|SLURM_STEP_TASKS_PER_NODE=1|"
	  "SLURM_STEP_NUM_TASKS=1|MASTER_ADDR=n2", .command = STEP("0 1 1"),
	  .want = "MASTER_ADDR=n2" },
	{ .name = "the same where the lone task starts ranks",
	  .env = RANK0 "|SLURM_STEP_NODELIST=n1|SLURM_STEP_TASKS_PER_NODE=1|"
	  "SLURM_STEP_NUM_TASKS=1|MASTER_ADDR=n2|SLURM_DDP_LAUNCHER=2",
	  .command = STEP("0 1 1"), .want = "PET_MASTER_ADDR=n2",
	  .err = ELSEWHERE("n2") },
	{ .name = "the same where the rendezvous is the launcher's",
	  .env = RANK0 "|SLURM_STEP_TASKS_PER_NODE=1(x2)|SLURM_STEP_NUM_TASKS="
	  "2|MASTER_ADDR=n2|SLURM_DDP_LAUNCHER=2|SLURM_DDP_PET=no-rank",
	  .command = STEP("0 1 2"), .want = "PET_MASTER_ADDR=n2" },
};

/*
 * A MASTER_ADDR of the user's that is the address of no host, or cannot be
 * reached from other nodes.
 */
static void test_addresses(void)
{
	static const struct {
		const char *address, *what;
		bool alone;	/* good enough where there is one node */
	} rows[] = {
		{ "0.0.0.0", "the wildcard address (0.0.0.0)", true },
		{ "0", "the wildcard address (0.0.0.0)", true },
		{ "::", "the wildcard address (::)", true },
		{ "::ffff:0.0.0.0", "the wildcard address (0.0.0.0)", true },
		{ "127.0.0.1", "loopback (127.0.0.1)", true },
		{ "127.255.3.4", "loopback (127.255.3.4)", true },
		{ "::1", "loopback (::1)", true },
		{ "::ffff:127.0.0.1", "loopback (127.0.0.1)", true },
		{ "255.255.255.255", "the broadcast address (255.255.255.255)",
		  false },
		{ "::ffff:255.255.255.255", "the broadcast address (255.255."
		  "255.255)", false },
		{ "224.0.0.1", "a multicast address (224.0.0.1)", false },
		{ "239.255.255.250", "a multicast address", false },
		{ "::ffff:230.1.2.3", "a multicast address (230.1.2.3)",
		  false },
		{ "ff02::1", "a multicast address (ff02::1)", false },
		{ "0.0.0.1", "an address of no host (0.0.0.1)", false },
		{ "1", "an address of no host (0.0.0.1)", false },
		{ "192.0.2.9", NULL, true },
		{ "223.255.255.255", NULL, true },
		{ "::ffff:192.0.2.9", NULL, true },
		{ "fd00::9", NULL, true },
		{ "many", NULL, true },
	};
	char name[96], env[640], refusal[96], want[64], err[256];
	struct spank_case test = { .name = name, .env = env };
	bool alone;
	size_t i;

	for (i = 0; i < 2 * COUNT(rows); i++) {
		const char *what = rows[i / 2].what;

		alone = i % 2;
		snprintf(name, sizeof(name), "MASTER_ADDR=%s, %s",
			 rows[i / 2].address, alone ? "one node" : "two nodes");
		snprintf(env, sizeof(env), "%s%s|MASTER_ADDR=%s", RANK0,
			 alone ? "|SLURM_STEP_NODELIST=n1|"
			 "SLURM_STEP_TASKS_PER_NODE=2|SLURM_STEP_NUM_TASKS=2" :
			 "", rows[i / 2].address);
		snprintf(refusal, sizeof(refusal), "the master's name %s "
			 "resolves to %s", rows[i / 2].address,
			 what ? what : "");
		snprintf(want, sizeof(want), "MASTER_ADDR=%s",
			 rows[i / 2].address);
		test.command = alone ? STEP("0 2 2") : COMMAND;
		test.refusal = what && !(alone && rows[i / 2].alone) ?
			refusal : NULL;
		test.want = test.refusal ? NULL : want;
		/* No row has the address of this machine. */
		snprintf(err, sizeof(err), ELSEWHERE("%s"),
			 rows[i / 2].address);
		test.err = what ? NULL : err;
		case_run(&test);
	}
}

/* On one node the name need not resolve, and loopback is good enough. */
static const struct spank_case single_cases[] = {
	{ .name = "one node of no known name",
	  .env = BASE "|SLURM_STEP_NODELIST=gone|SLURMD_NODENAME=gone|"
	  "SLURM_STEP_TASKS_PER_NODE=2|"
	  "SLURM_STEP_NUM_TASKS=2", .want = "MASTER_ADDR=gone|WORLD_SIZE=2|"
	  "GROUP_WORLD_SIZE=1|-GLOO_SOCKET_IFNAME",
	  .command = STEP("0 2 2") },
	{ .name = "one node that is loopback",
	  .env = BASE "|SLURM_STEP_NODELIST=loop|SLURMD_NODENAME=loop|"
	  "SLURM_STEP_TASKS_PER_NODE=2|"
	  "SLURM_STEP_NUM_TASKS=2", .want = "MASTER_ADDR=loop|"
	  "-GLOO_SOCKET_IFNAME", .command = STEP("0 2 2") },
	{ .name = "one node, and a master of the user's that does not resolve",
	  .env = BASE "|SLURM_STEP_NODELIST=n1|SLURM_STEP_TASKS_PER_NODE=2|"
	  "SLURM_STEP_NUM_TASKS=2|SLURM_PROCID=0|SLURM_LOCALID=0|"
	  "MASTER_ADDR=gone", .command = STEP("0 2 2"),
	  .refusal = "the master's name gone does not resolve" },
	/* The same interface as for this address written as one of IPv4. */
	{ .name = "a master as an IPv4 address within IPv6", .env = BASE
	  "|MASTER_ADDR=::ffff:192.0.2.9", .command = COMMAND,
	  .want = "GLOO_SOCKET_IFNAME=eth7" },
};

/* What Slurm sets, removed or broken one at a time. */
static void test_broken(void)
{
	static const char *const names[] = {
		"SLURM_JOB_ID", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID",
		"SLURM_LOCALID", "SLURM_STEP_NODELIST",
		"SLURM_STEP_TASKS_PER_NODE", "SLURMD_NODENAME",
	};
	static const char *const bad[] = { "", "x[", "-1", "4294967296" };
	char name[96], env[512], refusal[96];
	struct spank_case test = { .name = name, .command = COMMAND,
		.env = env, .refusal = refusal };
	size_t i, j;

	for (i = 0; i < COUNT(names); i++) {
		snprintf(name, sizeof(name), "without %s", names[i]);
		snprintf(env, sizeof(env), "%s|-%s", BASE, names[i]);
		snprintf(refusal, sizeof(refusal), "Slurm has not set %s",
			 names[i]);
		case_run(&test);
		for (j = 0; j < COUNT(bad); j++) {
			snprintf(name, sizeof(name), "%s=%s", names[i],
				 bad[j]);
			snprintf(env, sizeof(env), "%s|%s=%s", BASE, names[i],
				 bad[j]);
			snprintf(refusal, sizeof(refusal), "on %s: ",
				 i == COUNT(names) - 1 ? bad[j] : "n1");
			case_run(&test);
		}
	}
}

/* A port that this process holds in the meantime. */
static void test_held(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	socklen_t length = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char command[96], refusal[96], users[512], ours[32];
	struct spank_case test = { .command = command, .env = RANK0 };
	unsigned int port = 25000;

	/* getsockname is a fake here: try until one is free. */
	do {
		address.sin_port = htons((uint16_t)++port);
	} while (bind(fd, (struct sockaddr *)&address, length) < 0);
	if (listen(fd, 1) < 0)
		abort();
	snprintf(command, sizeof(command), PORT("%u"), port);
	snprintf(refusal, sizeof(refusal), "rank 0 on n1: another process "
		 "holds port %u on n1", port);
	snprintf(ours, sizeof(ours), "MASTER_PORT=%u", port);

	test.name = "a port that is held";
	test.refusal = refusal;
	case_run(&test);
	test.name = "a held --ddp-port beside the user's MASTER_PORT";
	test.env = RANK0 "|MASTER_PORT=29500";
	case_run(&test);
	test.name = "another rank does not look";
	test.refusal = NULL;
	test.env = BASE;
	test.want = ours;
	case_run(&test);
	test.name = "nor rank 0 where the user names the master";
	test.env = RANK0 "|MASTER_ADDR=elsewhere";
	test.err = ELSEWHERE("elsewhere");
	case_run(&test);
	test.err = NULL;
	test.name = "the user's MASTER_PORT is looked at";
	snprintf(users, sizeof(users), "%s|%s", RANK0, ours);
	test.env = users;
	test.command = COMMAND;
	test.refusal = refusal;
	test.want = NULL;
	case_run(&test);
	test.name = "also where the user names this node";
	snprintf(users, sizeof(users), "%s|%s|MASTER_ADDR=here", RANK0, ours);
	case_run(&test);
	close(fd);
}

void test_task(void)
{
	cases_run(none_cases, COUNT(none_cases));
	cases_run(value_cases, COUNT(value_cases));
	cases_run(launcher_cases, COUNT(launcher_cases));
	cases_run(port_cases, COUNT(port_cases));
	cases_run(second_cases, COUNT(second_cases));
	cases_run(tf_cases, COUNT(tf_cases));
	cases_run(single_cases, COUNT(single_cases));
	cases_run(elsewhere_cases, COUNT(elsewhere_cases));
	cases_run(refused_cases, COUNT(refused_cases));
	test_addresses();
	test_broken();
	test_held();
}
