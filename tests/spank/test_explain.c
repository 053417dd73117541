/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * --ddp=explain and --ddp=dry-run: what srun says of the step, from scontrol's
 * answers in tests/spank/run; what each node says of its tasks; and the program
 * that a dry run starts. And what srun lets tasks know of --cpu-bind, which
 * the explanation names.
 *
 * Steps are 12.0 (block order, no reserved ports; the number of a job that srun
 * makes for itself), 13.0 (cyclic, ports from 12005) and 16.0 (arbitrary: rank
 * 0 is on n2); of 14.0 sattach knows nothing, of 15.0 scontrol neither, and
 * 17.0, 18.0 and 19.0 have a rank twice, one too few, and one that is none.
 * Without SLURM_JOB_ID the step is 12.0.
 */
#include <stdio.h>
#include <unistd.h>

#include "host.h"

#define LINE "optional spank_ddp.so"
#define ON(machine) LINE " topology=@/topo/" machine ".xml"
#define DDP "SLURM_SPANK__SLURM_SPANK_OPTION_ddp_ddp="
#define JOB(id) "SLURM_JOB_ID=" id "|SLURM_JOB_NUM_NODES=2"
#define OPEN "srun --ddp=explain --nodes=2 "
#define GIVEN OPEN "-n4 --mpi=pmix -K1 "
#define SAY "slurm-ddp: "
#define TASKS "tasks 4 on 2 nodes: "
#define MASTER "master n1: rank 0's node, the first of n[1-2]\n"
#define BELOW "master: rank 0's node, which says so below\n"
#define PORT "port 24331: from the job's and the step's number\n"
#define FAILS "a rank that fails ends the step: "
#define ASKED SAY TASKS "as asked for\n" SAY "MPI type pmix: as asked for\n"
#define UNLESS SAY FAILS "unless --kill-on-bad-exit says otherwise\n"

static const struct spank_case step_cases[] = {
	{ .name = "everything filled in", .command = OPEN "--gres=gpu:2 a",
	  .err = SAY TASKS "one a GPU, filled in\n" SAY "MPI type pmix: "
	  "filled in\n" SAY MASTER SAY PORT SAY FAILS "filled in\n" },
	{ .name = "everything as asked for", .command = GIVEN "a",
	  .err = ASKED SAY MASTER SAY PORT UNLESS },
	{ .name = "--ntasks-per-node, and SLURM_KILL_BAD_EXIT",
	  .command = OPEN "--ntasks-per-node=2 --mpi=pmix a",
	  .env = "SLURM_KILL_BAD_EXIT=0",
	  .err = ASKED SAY MASTER SAY PORT UNLESS },
	{ .name = "Slurm's number of tasks, the site's MPI type",
	  .command = OPEN "a", .env = "FAKE_MPI_DEFAULT=pmix_v4",
	  .err = SAY "tasks 2 on 2 nodes: Slurm's default\n" SAY "MPI type "
	  "pmix_v4: this site's default\n" SAY MASTER SAY PORT SAY FAILS
	  "filled in\n" },
	{ .name = "one task of a terminal", .env = JOB("12"),
	  .command = "srun --ddp=explain --pty --mpi=pmix -K1 a",
	  .err = SAY "tasks 1 on 1 node: filled in\n" SAY "MPI type pmix: as "
	  "asked for\n" SAY MASTER SAY PORT UNLESS },
	{ .name = "a Slurm without mpi/pmix", .dir = "nompi",
	  .command = OPEN "-n4 -K1 a", .env = "FAKE_MPI_DEFAULT=none|PATH=@/"
	  "full", .err = SAY TASKS "as asked for\n" SAY "MPI type none: this "
	  "site's default\n" SAY BELOW SAY PORT UNLESS },
	{ .name = "no MPI", .command = OPEN "-n4 -K1 --mpi=none a",
	  .err = SAY TASKS "as asked for\n" SAY "MPI type none: as asked "
	  "for\n" SAY MASTER SAY PORT UNLESS },
	{ .name = "no MPI, in an srun that then forgets it",
	  .command = OPEN "-n4 -K1 --mpi=none a", .env = "FAKE_FORGETS=none",
	  .err = SAY TASKS "as asked for\n" SAY "MPI type none: as asked "
	  "for\n" SAY MASTER SAY PORT UNLESS },
	{ .name = "an exported master and port", .command = GIVEN "a",
	  .env = "MASTER_ADDR=elsewhere|MASTER_PORT=29500", .err = ASKED
	  SAY "master elsewhere: MASTER_ADDR was exported\n"
	  SAY "port 29500: MASTER_PORT was exported\n" UNLESS },
	{ .name = "those of an outer step are not the user's",
	  .command = GIVEN "a", .env = "MASTER_ADDR=n9|MASTER_PORT=20000|"
	  "DDP_SET=job=12.3 RANK=1 MASTER_ADDR=n9 MASTER_PORT=20000",
	  .err = ASKED SAY MASTER SAY PORT UNLESS },
	{ .name = "--ddp-port", .command = GIVEN "--ddp-port=25000 a",
	  .env = "MASTER_PORT=29500",
	  .err = ASKED SAY MASTER SAY "port 25000: --ddp-port\n" UNLESS },
	/* See test_task.c for job 12's port in 30000 to 30999. */
	{ .name = "port-range=", .command = GIVEN "a",
	  .conf = LINE " port-range=30000-30999", .err = ASKED SAY MASTER
	  SAY "port 30416: from the job's and the step's number\n" UNLESS
	  SAY "port-range=30000-30999: this site's default\n" },
	{ .name = "reserved ports", .command = GIVEN "a", .env = JOB("13"),
	  .err = ASKED SAY MASTER
	  SAY "port 12005: reserved by Slurm for this step\n" UNLESS },
	/* 16 * 2654435769 mod 2^32 is 3816266640, which is 0.8885 of it. */
	{ .name = "arbitrary order", .command = GIVEN "a", .env = JOB("16"),
	  .err = ASKED SAY "master n2: rank 0's node, of n[1-2]\n"
	  SAY "port 28108: from the job's and the step's number\n" UNLESS },
	{ .name = "an sattach that does not answer", .command = GIVEN
	  "--ddp-port=25000 a", .env = JOB("14"), .err = ASKED
	  SAY BELOW SAY "port 25000: --ddp-port\n" UNLESS },
	{ .name = "an sattach that contradicts itself", .command = GIVEN
	  "--ddp-port=25000 a", .env = JOB("17"), .err = ASKED
	  SAY BELOW SAY "port 25000: --ddp-port\n" UNLESS },
	/* 15 * 2654435769 mod 2^32 is 1161830871, which is 0.2705 of it. */
	{ .name = "an scontrol that does not answer", .command = GIVEN "a",
	  .env = JOB("15"),
	  .err = ASKED SAY BELOW
	  SAY "port 23164: from the job's and the step's number\n" UNLESS },
	{ .name = "a heterogeneous step", .command = GIVEN "a : --nodes=1 -n1 "
	  "--mpi=pmix -K1 b",
	  .err = SAY "tasks of several components: the nodes' tables "
	  "show them\n"
	  SAY "MPI type pmix: as asked for\n"
	  SAY BELOW SAY PORT UNLESS },
	{ .name = "-n typed beside GPUs", .command = OPEN "-n4 --gres=gpu:2 "
	  "--mpi=pmix -K1 a", .err = ASKED SAY MASTER SAY PORT UNLESS },
	{ .name = "explain, two lines in plugstack.conf",
	  .command = GIVEN "a", .conf = LINE "\n" LINE " mpi=pmix",
	  .err = ASKED SAY MASTER SAY PORT UNLESS
	  SAY "mpi=pmix: this site's default\n" },
	{ .name = "explain among srun's own words", .command = GIVEN "--noise "
	  "a", .err = "srun: noise\n" ASKED SAY MASTER SAY PORT UNLESS },
	{ .name = "inherited explain", .env = DDP "explain",
	  .command = "srun --nodes=2 -n4 --mpi=pmix -K1 a",
	  .err = ASKED SAY MASTER SAY PORT UNLESS },
	{ .name = "--ddp typed over inherited explain", .env = DDP "explain",
	  .command = "srun --ddp --nodes=2 -n4 --mpi=pmix -K1 a" },
	{ .name = "a dry run explains as well", .env = "A=b",
	  .command = "srun --ddp=dry-run --nodes=2 -n4 --mpi=pmix -K1 a",
	  .err = ASKED SAY MASTER SAY PORT UNLESS },
	{ .name = "both words", .command = "srun --ddp=explain,dry-run "
	  "--nodes=2 -n4 --mpi=pmix -K1 a",
	  .err = ASKED SAY MASTER SAY PORT UNLESS },
	{ .name = "a dry run without PMIx", .refusal = "--ddp=dry-run: works "
	  "by PMIx only; use it with --mpi=pmix",
	  .command = "srun --ddp=dry-run --nodes=2 -n4 --mpi=none a" },
	{ .name = "a dry run with a program of the user's",
	  .refusal = "--ddp=dry-run: runs nothing of yours; leave out "
	  "--task-epilog", .command = "srun --ddp=dry-run --nodes=2 -n4 "
	  "--mpi=pmix --task-epilog=/bin/true a" },
	{ .name = "in a Slurm that has none", .dir = "nompi",
	  .refusal = "--ddp=dry-run: works by PMIx only",
	  .command = "srun --ddp=dry-run --nodes=2 -n4 a" },
	{ .name = "a dry run of a pmix of some version",
	  .command = "srun --ddp=dry-run --nodes=2 -n4 --mpi=pmix_v4 -K1 a",
	  .err = SAY TASKS "as asked for\n" SAY "MPI type pmix_v4: as asked "
	  "for\n" SAY MASTER SAY PORT UNLESS },
	{ .name = "sbatch explains nothing", .env = "A=b", .want = "same",
	  .command = "sbatch --ddp=explain --exclusive a" },
};

#define BOUND "SLURM_DDP_CPU_BIND=1"
#define FREE "-SLURM_DDP_CPU_BIND"
#define BIND(options) "srun --ddp --nodes=2 -n4 " options " a"

static const struct spank_case bind_cases[] = {
	{ .name = "no --cpu-bind", .command = BIND(""), .want = FREE },
	{ .name = "a --cpu-bind", .command = BIND("--cpu-bind=cores"),
	  .want = BOUND "|SLURM_DDP_ADDED=SLURM_MPI_TYPE SLURM_PMIX_FENCE "
	  "SLURM_KILL_BAD_EXIT SLURM_DDP_SUPERVISOR SLURM_DDP_CPU_BIND" },
	{ .name = "with nothing else added", .want = BOUND
	  "|SLURM_DDP_ADDED=SLURM_DDP_SUPERVISOR SLURM_DDP_CPU_BIND",
	  .env = "SLURM_PMIX_FENCE=tree",
	  .command = BIND("--mpi=pmix -K1 --cpu-bind=none") },
	{ .name = "a --cpu-bind that is \"verbose\" alone",
	  .command = BIND("--cpu-bind=verbose"),
	  .want = "SLURM_DDP_CPU_BIND=0" },
	{ .name = "a batch script's SLURM_CPU_BIND", .want = BOUND,
	  .command = BIND(""), .env = "SLURM_CPU_BIND=cores" },
	{ .name = "an outer step's", .command = BIND("--overlap"), .want = FREE,
	  .env = "SLURM_CPU_BIND=cores|SLURM_STEP_ID=0" },
	{ .name = "another than an outer step's", .want = BOUND,
	  .command = BIND("--overlap --cpu-bind=none"),
	  .env = "SLURM_CPU_BIND=cores|SLURM_STEP_ID=0" },
	{ .name = "in one component of two", .want = BOUND,
	  .command = BIND("--cpu-bind=none") " : --nodes=1 -n1 b" },
	{ .name = "in an outer step that had none", .want = BOUND,
	  .command = BIND("--overlap --cpu-bind=cores"), .env = "SLURM_STEP_ID=0" },
	{ .name = "a --wait-for-children", .want = "SLURM_DDP_CHILDREN=1",
	  .command = BIND("--wait-for-children") },
	{ .name = "no --wait-for-children", .want = "-SLURM_DDP_CHILDREN", .command = BIND("") },
	{ .name = "a --cpu-bind without --ddp", .want = FREE,
	  .command = "srun --cpu-bind=cores -n4 a" },
};

#define MAPPING "SLURM_DDP_MAPPING"
#define WITHOUT "srun --ddp --nodes=2 -n4 -K1 --mpi=none "

static const struct spank_case order_cases[] = {
	{ .name = "without PMIx tasks learn the block order",
	  .command = WITHOUT "a", .want = MAPPING "=(vector,(0,2,2))|"
	  "SLURM_DDP_ADDED=SLURM_DDP_SUPERVISOR " MAPPING },
	{ .name = "the cyclic order", .command = WITHOUT "a",
	  .env = JOB("13"), .want = MAPPING "=(vector,(0,2,1),(0,2,1))" },
	{ .name = "an arbitrary order", .command = WITHOUT "a",
	  .env = JOB("16"),
	  .want = MAPPING "=(vector,(1,1,1),(0,1,2),(1,1,1))" },
	{ .name = "by mpi/pmix they know", .want = "-" MAPPING,
	  .command = "srun --ddp --nodes=2 -n4 a" },
	{ .name = "on one node there is none", .want = "-" MAPPING,
	  .command = "srun --ddp --nodes=1 -n2 --mpi=none a" },
	{ .name = "of one component it says too little",
	  .command = WITHOUT "a : -n1 --mpi=none b", .want = "-" MAPPING },
	{ .name = "an sattach that fails", .command = WITHOUT "a",
	  .env = JOB("15"), .want = "-" MAPPING },
	{ .name = "that says a rank twice", .command = WITHOUT "a",
	  .env = JOB("17"), .want = "-" MAPPING },
	{ .name = "that leaves a rank out", .command = WITHOUT "a",
	  .env = JOB("18"), .want = "-" MAPPING },
	{ .name = "that names a rank too high", .command = WITHOUT "a",
	  .env = JOB("19"), .want = "-" MAPPING },
	{ .name = "what an outer step left does not stay",
	  .command = WITHOUT "a", .env = JOB("15") "|" MAPPING "=old",
	  .want = MAPPING "=" },
	{ .name = "without --ddp nobody asks", .env = "A=b",
	  .command = "srun --nodes=2 -n4 --mpi=none a", .want = "same" },
};

#define STEPD(words) "slurmstepd 0 0 2 4 " words
#define TWO "SLURM_JOB_ID=12|SLURM_STEP_NUM_TASKS=4|SLURM_PROCID=0|" \
	"SLURM_STEP_NODELIST=n[1-2]|SLURM_STEP_TASKS_PER_NODE=2(x2)|" \
	"SLURMD_NODENAME=n1|CUDA_VISIBLE_DEVICES=0,4"
#define SECOND "|SLURMD_NODENAME=n2|SLURM_PROCID=2"
#define HEAD "RANK NODE LOCAL GPU BUS-ID NUMA CPUS INTERFACE\n"
#define WHY(reason) "WHY all: " reason "\n"
#define MODEL "MODEL all: A100 SXM4 40GB\n"
#define REASONS MODEL WHY("1 of 2 GPUs, by local rank") WHY("18 of 18 cores near it")
#define ROW(rank, node, local, gpu, bus, numa, cpus) \
	rank " " node " " local " " gpu " 0000:" bus ":00.0 " \
	numa " " cpus " eth7\n"
#define ROWS HEAD ROW("0", "n1", "0", "0", "1a", "0", "0-17,36-53") \
	ROW("1", "n1", "1", "4", "8a", "1", "18-35,54-71") REASONS
#define MASTER_LINE "slurm-ddp: master n1 port 24331: from the job's and " \
	"the step's number\n"
#define RUNS "a program runs\n"

static const struct spank_case node_cases[] = {
	/* One write for all of it, then one for each program. */
	{ .name = "explain on rank 0's node", .command =
	  STEPD("--ddp=explain shout"), .env = TWO, .tasks = "#cpus=0-71",
	  .conf = ON("server8"), .err = MASTER_LINE ROWS RUNS RUNS,
	  .writes = 3, .want = "0:RANK=0|1:RANK=1|1:#status=0" },
	{ .name = "on another node", .command = STEPD("--ddp=explain shout"),
	  .env = TWO SECOND, .tasks = "#cpus=0-71", .conf = ON("server8"),
	  .err = HEAD ROW("2", "n2", "0", "0", "1a", "0", "0-17,36-53")
	  ROW("3", "n2", "1", "4", "8a", "1", "18-35,54-71") REASONS
	  RUNS RUNS,
	  .writes = 3, .want = "0:RANK=2" },
	{ .name = "two lines in plugstack.conf", .env = TWO,
	  .command = STEPD("--ddp=explain shout"), .tasks = "#cpus=0-71",
	  .conf = ON("server8") "\n" LINE " mpi=keep",
	  .err = MASTER_LINE ROWS RUNS RUNS, .writes = 3 },
	{ .name = "whatever task comes last", .env = TWO,
	  .command = STEPD("--ddp=explain shout"), .conf = ON("server8"),
	  .tasks = "#cpus=0-71|#late;#cpus=0-71",
	  .err = MASTER_LINE ROWS RUNS RUNS, .writes = 3 },
	{ .name = "an exported port and interface", .env = TWO
	  "|MASTER_PORT=29500|GLOO_SOCKET_IFNAME=ib7|CUDA_VISIBLE_DEVICES=0",
	  .command = "slurmstepd 0 0 1 2 --ddp=explain a",
	  .tasks = "#cpus=0-71|SLURM_STEP_TASKS_PER_NODE=1(x2)|"
	  "SLURM_STEP_NUM_TASKS=2", .conf = ON("server8"), .writes = 1,
	  .err = "slurm-ddp: master n1 port 29500: MASTER_PORT was exported\n"
	  "slurm-ddp: on n1: there is no network interface for your "
	  "GLOO_SOCKET_IFNAME=ib7: unset that, or name one that all nodes "
	  "have\n"
	  HEAD "0 n1 0 0 0000:1a:00.0 0 0-17,36-53 ib7\n"
	  MODEL WHY("1 of 1 GPUs, by local rank") WHY("18 of 18 cores near it") },
	{ .name = "where nothing is placed", .env = TWO, .writes = 1,
	  .command = STEPD("--ddp=explain --ddp-gpus=off --ddp-cpus=off "
	  "--ddp-port=25000 a"), .tasks = "#cpus=0-1;#cpus=2-3",
	  .conf = ON("server8"), .err = "slurm-ddp: master n1 port 25000: "
	  "--ddp-port\n" HEAD "0 n1 0 - - 0 0-1 eth7\n"
	  "1 n1 1 - - 0 2-3 eth7\n" WHY("GPUs left alone")
	  WHY("CPUs as Slurm gave them"), .want = "0:CUDA_VISIBLE_DEVICES=0,4|"
	  "0:#binds=0|-0:CUDA_DEVICE_ORDER|0:MASTER_PORT=25000" },
	{ .name = "a refusal instead", .env = TWO, .tasks = "#cpus=0-71",
	  .command = STEPD("--ddp=explain shout"), .conf = ON("missing"),
	  .refusal = "cannot open the topology file" },
	{ .name = "a task without explain says nothing", .env = TWO,
	  .tasks = "#cpus=0-71", .command = STEPD("--ddp shout"),
	  .conf = ON("server8"), .err = RUNS RUNS, .writes = 2 },
};

static const struct spank_case dry_cases[] = {
	{ .name = "a dry run", .env = TWO "|PATH=/nowhere:@/bin:/bin",
	  .tasks = "#cpus=0-71", .command = STEPD("--ddp=dry-run shout"),
	  .conf = ON("server8"), .want = "0:#arguments=--gather|"
	  "1:#arguments=--gather|0:RANK=0|1:RANK=1|-0:LOCAL_RANK|0:#status=0|"
	  "0:DDP_PLACEMENT=0\t0\t0\t0\tn1\t"
	  "CUDA_VISIBLE_DEVICES=0,4\t0-17,36-53\t"
	  "0\teth7\t1\t0\t0000:1a:00.0\tA100 SXM4 40GB\t2\t1 of 2 GPUs, by "
	  "local rank\t18 of 18 cores near it\t" },
	{ .name = "a dry run that explains", .env = TWO "|PATH=@/bin",
	  .tasks = "#cpus=0-71", .conf = ON("server8"),
	  .command = STEPD("--ddp=explain,dry-run shout"),
	  .want = "1:#arguments=--gather", .err = MASTER_LINE ROWS,
	  .writes = 1 },
	{ .name = "a dry run that places nothing", .env = TWO "|PATH=@/bin",
	  .tasks = "#cpus=0-1;#cpus=2-3", .conf = ON("server8"), .command =
	  STEPD("--ddp=dry-run --ddp-gpus=off --ddp-cpus=off shout"),
	  .want = "1:#arguments=--gather|0:DDP_PLACEMENT=0\t0\t0\t4294967295"
	  "\tn1\t\t0-1\t0\teth7\t0\t2\tGPUs left alone\tCPUs as Slurm gave "
	  "them\t" },
};

/* If ddp-info is installed already, it would be found there. */
static void test_missing(void)
{
	static const char path[] = DDP_BINDIR "/ddp-info";
	char refusal[sizeof(path) + 128];
	struct spank_case test = { .name = "a dry run without ddp-info",
		.env = TWO "|PATH=/nowhere:@/topo", .tasks = "#cpus=0-71",
		.command = STEPD("--ddp=dry-run shout"),
		.conf = ON("server8"), .refusal = refusal };

	snprintf(refusal, sizeof(refusal), "--ddp=dry-run: there is no "
		 "ddp-info in PATH or as %s (No such file", path);
	if (access(path, F_OK) == 0)
		case_report(true, "a dry run without ddp-info # SKIP it is "
			    "installed", "");
	else
		case_run(&test);
}

void test_explain(void)
{
	cases_run(step_cases, COUNT(step_cases));
	cases_run(order_cases, COUNT(order_cases));
	cases_run(bind_cases, COUNT(bind_cases));
	cases_run(node_cases, COUNT(node_cases));
	cases_run(dry_cases, COUNT(dry_cases));
	test_missing();
}
