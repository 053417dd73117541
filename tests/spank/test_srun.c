/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * In srun, sbatch, salloc and slurmd: what is filled in, what is refused, and
 * that nothing happens without --ddp. Job 13 has 2 GPUs on each node, 14 has
 * different ones, 15 is unknown, and 16 has none: see tests/spank/run.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>

#include "host.h"

#define POISON "slurm-ddp-plugin-missing-on-this-node"
#define POISONED "RANK=" POISON "|LOCAL_RANK=" POISON "|WORLD_SIZE=" POISON
#define STEP "--nodes=2 --gres=gpu:2 a.out"
#define TASKS "SLURM_NTASKS_PER_NODE_HET_GROUP_0"
#define FILLED POISONED "|" TASKS "=2|SLURM_MPI_TYPE=pmix|" \
	"SLURM_KILL_BAD_EXIT=1|-SLURM_DDP_RERUN|SLURM_DDP_ADDED=" TASKS \
	" SLURM_NTASKS_PER_NODE SLURM_MPI_TYPE SLURM_PMIX_FENCE " \
	"SLURM_KILL_BAD_EXIT SLURM_DDP_SUPERVISOR"
#define UNFILLED POISONED "|-" TASKS "|-SLURM_DDP_RERUN"
#define DDP "SLURM_SPANK__SLURM_SPANK_OPTION_ddp_ddp="
#define DDP_PORT "SLURM_SPANK__SLURM_SPANK_OPTION_ddp_ddp_port="
#define LINE "optional spank_ddp.so"

static const struct spank_case off_cases[] = {
	{ .name = "without --ddp nothing changes",
	  .command = "srun " STEP, .env = "A=b|RANK=7|SLURM_MPI_TYPE=none",
	  .want = "same" },
	{ .name = "without --ddp Slurm is asked nothing",
	  .command = "srun " STEP, .want = "#options=16|#items=0|#calls=17" },
	{ .name = "nor does it without --ddp and with a bad plugstack.conf",
	  .command = "srun " STEP, .env = "A=b", .want = "same",
	  .conf = LINE " speed=9 mpi port-range=1 interface= =" },
	{ .name = "--ddp=off", .command = "srun --ddp=off " STEP,
	  .env = "A=b", .want = "same", .conf = LINE " speed=9" },
	{ .name = "--ddp=off undoes what is inherited",
	  .command = "srun --ddp=off " STEP, .env = DDP "|" DDP_PORT "1",
	  .want = "same" },
	{ .name = "inherited off", .command = "srun " STEP, .env = DDP "off",
	  .want = "same" },
	{ .name = "the later word stands, off",
	  .command = "srun --ddp --ddp=off " STEP, .want = "same" },
	{ .name = "--ddp of the user's own program",
	  .command = "srun --noise a.out --ddp", .env = "A=b", .want = "same",
	  .err = "srun: noise\n" },
	{ .name = "in slurmd and in job scripts", .command = "slurmd",
	  .env = "A=b|" DDP, .want = "same" },
	{ .name = "in slurmd and in job scripts, options", .command = "slurmd",
	  .want = "#options=0|#items=0" },
	{ .name = "orted of an mpirun", .env = "A=b|" DDP, .want = "same",
	  .command = "srun --ntasks=2 orted -mca a b" },
	{ .name = "prted with a path", .env = DDP, .want = "same",
	  .command = "srun --ntasks=2 /opt/ompi/bin/prted" },
	{ .name = "hydra_pmi_proxy", .env = DDP, .want = "same",
	  .command = "srun --nodes=2 hydra_pmi_proxy" },
	{ .name = "hydra_bstrap_proxy", .env = DDP, .want = "same",
	  .command = "srun --nodes=2 hydra_bstrap_proxy" },
	{ .name = "the shell of salloc", .env = DDP, .want = "same",
	  .command = "srun --interactive --pty bash" },
	{ .name = "without --ddp in an srun that hides its options",
	  .command = "srun " STEP, .dir = "bare", .env = "A=b",
	  .want = "same" },
};

/* What a --ddp step has set for its task. The record of it is in DDP_SET. */
#define OUTER_RANKS "RANK=3|LOCAL_RANK=1|WORLD_SIZE=4|LOCAL_WORLD_SIZE=2|" \
	"NODE_RANK=1|GROUP_RANK=1|GROUP_WORLD_SIZE=2|ROLE_RANK=3|" \
	"ROLE_WORLD_SIZE=4|SLURM_NTASKS_PER_NODE=2"
#define OUTER_REST "MASTER_ADDR=n9|MASTER_PORT=20000|OMP_NUM_THREADS=4|" \
	"GLOO_SOCKET_IFNAME=eth9|NCCL_SOCKET_IFNAME==eth9|" \
	"CUDA_DEVICE_ORDER=PCI_BUS_ID|ACCELERATE_USE_CPU=true|" \
	"JAX_COORDINATOR_ADDRESS=n9:20001|JAX_LOCAL_DEVICE_IDS=0,2|" \
	"TF_CONFIG={\"a\":1}|" \
	"DDP_PLACEMENT=3\t1"
#define OUTER_RECORD "DDP_SET=job=12.3 CUDA_DEVICE_ORDER=PCI_BUS_ID RANK=3 " \
	"LOCAL_RANK=1 WORLD_SIZE=4 LOCAL_WORLD_SIZE=2 NODE_RANK=1 " \
	"GROUP_RANK=1 GROUP_WORLD_SIZE=2 ROLE_RANK=3 ROLE_WORLD_SIZE=4 " \
	"SLURM_NTASKS_PER_NODE=2 " \
	"MASTER_ADDR=n9 MASTER_PORT=20000 OMP_NUM_THREADS=4 " \
	"GLOO_SOCKET_IFNAME=eth9 NCCL_SOCKET_IFNAME==eth9 " \
	"JAX_COORDINATOR_ADDRESS=n9:20001 JAX_LOCAL_DEVICE_IDS=0,2 " \
	"TF_CONFIG={\"a\":1} " \
	"ACCELERATE_USE_CPU=true"
#define OUTER OUTER_RANKS "|" OUTER_REST "|" OUTER_RECORD
#define NO_RANKS "-RANK|-LOCAL_RANK|-WORLD_SIZE|-LOCAL_WORLD_SIZE|" \
	"-NODE_RANK|-GROUP_RANK|-GROUP_WORLD_SIZE|-ROLE_RANK|" \
	"-ROLE_WORLD_SIZE|-SLURM_NTASKS_PER_NODE"
#define NO_REST "-MASTER_ADDR|-MASTER_PORT|-OMP_NUM_THREADS|" \
	"-GLOO_SOCKET_IFNAME|-NCCL_SOCKET_IFNAME|-CUDA_DEVICE_ORDER|" \
	"-ACCELERATE_USE_CPU|-JAX_COORDINATOR_ADDRESS|" \
	"-JAX_LOCAL_DEVICE_IDS|-TF_CONFIG|" \
	"-DDP_PLACEMENT|-DDP_SET"
#define NOTHING NO_RANKS "|" NO_REST "|A=b|CUDA_VISIBLE_DEVICES=1,0|#items=0"

static const struct spank_case outer_cases[] = {
	{ .name = "a step within a --ddp step sees nothing of it",
	  .command = "srun " STEP, .want = NOTHING "|#calls=17",
	  .env = "A=b|CUDA_VISIBLE_DEVICES=1,0|" OUTER },
	{ .name = "with --ddp=off", .command = "srun --ddp=off " STEP,
	  .env = "A=b|CUDA_VISIBLE_DEVICES=1,0|" OUTER, .want = NOTHING },
	{ .name = "with a bad plugstack.conf", .command = "srun " STEP,
	  .env = "A=b|CUDA_VISIBLE_DEVICES=1,0|" OUTER, .want = NOTHING,
	  .conf = LINE " speed=9\n" LINE },
	{ .name = "with several components", .command = "srun " STEP " : -n1 b",
	  .env = "A=b|CUDA_VISIBLE_DEVICES=1,0|" OUTER, .want = NOTHING },
	{ .name = "an sbatch within it", .command = "sbatch -N2 s.sh",
	  .env = "A=b|CUDA_VISIBLE_DEVICES=1,0|" OUTER, .want = NOTHING },
	{ .name = "an salloc within it", .command = "salloc -N2",
	  .env = "A=b|CUDA_VISIBLE_DEVICES=1,0|" OUTER, .want = NOTHING },
	{ .name = "a step with --ddp within it", .want = FILLED "|"
	  NO_REST, .command = "srun --ddp " STEP, .env = OUTER },
	{ .name = "what the user has changed since stays",
	  .command = "srun " STEP, .env = OUTER "|RANK=7|MASTER_PORT=20001|"
	  "OMP_NUM_THREADS=|CUDA_DEVICE_ORDER=FASTEST_FIRST",
	  .want = "RANK=7|MASTER_PORT=20001|OMP_NUM_THREADS=|"
	  "CUDA_DEVICE_ORDER=FASTEST_FIRST|-MASTER_ADDR|-DDP_SET|"
	  "-DDP_PLACEMENT" },
	{ .name = "and with --ddp it wins", .command = "srun --ddp " STEP,
	  .env = OUTER "|MASTER_PORT=20001", .want = "MASTER_PORT=20001|"
	  "-MASTER_ADDR|-DDP_SET" },
	{ .name = "a record that says what no step sets",
	  .command = "srun " STEP, .want = "A=b|PATH=/bin|-RANK",
	  .env = "A=b|PATH=/bin|RANK=1|DDP_SET=A=b PATH=/bin RANK=1" },
	{ .name = "without a record nothing is taken out",
	  .command = "srun " STEP, .env = OUTER "|-DDP_SET", .want = "same" },
};

#define PYXIS "PYXIS_CONTAINER_ENV="
#define KEPT PYXIS "MASTER_ADDR,MASTER_PORT,WORLD_SIZE,OMP_NUM_THREADS"

static const struct spank_case container_cases[] = {
	{ .name = "pyxis keeps what the plugin sets",
	  .command = "srun --ddp --container-image=a.sqsh " STEP,
	  .want = FILLED "|" KEPT },
	{ .name = "of an environment of Alps",
	  .command = "srun --ddp --environment=a.toml " STEP,
	  .want = FILLED "|" KEPT },
	{ .name = "of an image that the environment names",
	  .env = "PYXIS_CONTAINER_IMAGE=a.sqsh", .command = "srun --ddp " STEP,
	  .want = FILLED "|" KEPT },
	{ .name = "of an image of the job around",
	  .env = "SLURM_SPANK__SLURM_SPANK_OPTION_pyxis_container_image=a.sqsh",
	  .command = "srun --ddp " STEP, .want = FILLED "|" KEPT },
	{ .name = "a user's own list stays", .env = PYXIS "A",
	  .command = "srun --ddp --container-image=a.sqsh " STEP,
	  .want = PYXIS "A" },
	{ .name = "without a container it is told nothing",
	  .command = "srun --ddp " STEP,
	  .want = FILLED "|-PYXIS_CONTAINER_ENV|-PMIX_MCA_gds" },
	{ .name = "PMIx needs no folder in a container of pyxis",
	  .command = "srun --ddp --container-image=a.sqsh " STEP,
	  .want = FILLED "|PMIX_MCA_gds=hash" },
	{ .name = "or of a program",
	  .command = "srun --ddp --nodes=2 --gres=gpu:2 env A=b "
	  "apptainer exec a.sif a.out",
	  .want = FILLED "|PMIX_MCA_gds=hash|-PYXIS_CONTAINER_ENV" },
	{ .name = "unless the user chose otherwise", .env = "PMIX_MCA_gds=ds21",
	  .command = "srun --ddp --nodes=2 --gres=gpu:2 podman run a a.out",
	  .want = FILLED "|PMIX_MCA_gds=ds21" },
};

static const struct spank_case on_cases[] = {
	{ .name = "--ddp", .command = "srun --ddp " STEP, .env = "A=b",
	  .want = FILLED "|A=b" },
	{ .name = "a program with an argument that is a helper's name",
	  .command = "srun --ddp " STEP " orted", .env = "A=b",
	  .want = FILLED "|A=b" },
	{ .name = "the MPI type of the step around, which nobody chose",
	  .command = "srun --ddp --overlap " STEP,
	  .env = "SLURM_STEP_ID=0|SLURM_MPI_TYPE=none", .want = FILLED },
	{ .name = "an MPI type of the step around that somebody chose",
	  .command = "srun --ddp --overlap " STEP,
	  .env = "SLURM_STEP_ID=0|SLURM_MPI_TYPE=pmi2",
	  .want = "SLURM_MPI_TYPE=pmi2" },
	{ .name = "a step in a step",  .command = "srun --ddp " STEP,
	  .env = "SLURM_STEP_ID=0", .err = "srun: slurm-ddp: this srun is in "
	  "a task of a step, and waits if that has the CPUs it needs; with "
	  "--overlap it shares them\n", .want = FILLED },
	{ .name = "that shares what the other has", .err = "",
	  .command = "srun --ddp --overlap " STEP, .env = "SLURM_STEP_ID=0",
	  .want = FILLED },
	{ .name = "in salloc's shell", .command = "srun --ddp " STEP,
	  .env = "SLURM_STEP_ID=4294967290", .err = "", .want = FILLED },
	{ .name = "the user's SLURM_MPI_TYPE=none",
	  .command = "srun --ddp " STEP, .env = "SLURM_MPI_TYPE=none",
	  .want = "SLURM_MPI_TYPE=none" },
	{ .name = "--ddp=", .command = "srun --ddp= " STEP, .want = FILLED },
	{ .name = "--ddp=(null)", .command = "srun --ddp=(null) " STEP,
	  .want = FILLED },
	{ .name = "inherited, empty", .command = "srun " STEP, .env = DDP,
	  .want = FILLED },
	{ .name = "inherited, (null)", .command = "srun " STEP,
	  .env = DDP "(null)", .want = FILLED },
	{ .name = "typed over inherited off", .command = "srun --ddp " STEP,
	  .env = DDP "off", .want = FILLED },
	{ .name = "typed over an inherited bad word",
	  .command = "srun --ddp " STEP, .env = DDP "nonsense",
	  .want = FILLED },
	{ .name = "the later word stands, on",
	  .command = "srun --ddp=off --ddp " STEP, .want = FILLED },
	{ .name = "stale variables of ours",
	  .command = "srun --ddp " STEP,
	  .env = "SLURM_DDP_RERUN=1:1:0:0:0:0:0:0|SLURM_DDP_ADDED=OLD|RANK=7|"
		 "LOCAL_RANK=7|WORLD_SIZE=9", .want = FILLED },
	{ .name = "a malformed mark", .command = "srun --ddp " STEP,
	  .env = "SLURM_DDP_RERUN=x", .want = FILLED },
	{ .name = "the user's own values",
	  .command = "srun --ddp --mpi=none -n4 --ntasks-per-node=2 " STEP,
	  .env = "SLURM_KILL_BAD_EXIT=0", .want = UNFILLED
	  "|-SLURM_MPI_TYPE|SLURM_KILL_BAD_EXIT=0|"
	  "SLURM_DDP_ADDED=SLURM_DDP_SUPERVISOR SLURM_DDP_MAPPING" },
	{ .name = "a Slurm without mpi/pmix", .dir = "nompi",
	  .command = "srun --ddp " STEP, .want = POISONED "|" TASKS
	  "=2|-SLURM_MPI_TYPE|-SLURM_PMIX_FENCE|SLURM_KILL_BAD_EXIT=1" },
	{ .name = "a PMIx fence of the user's choice",
	  .command = "srun --ddp " STEP, .env = "SLURM_PMIX_FENCE=tree",
	  .want = "SLURM_PMIX_FENCE=tree|SLURM_MPI_TYPE=pmix" },
	{ .name = "a fence for a pmix of the user's choice",
	  .command = "srun --ddp --mpi=pmix " STEP,
	  .want = "SLURM_PMIX_FENCE=ring|-SLURM_MPI_TYPE" },
	{ .name = "good keys", .command = "srun --ddp " STEP,
	  .conf = LINE " mpi=keep port-range=20000-20063 interface=ib0.8001 "
		  "cpus=trust topology=/etc/%n.xml",
	  .want = POISONED "|" TASKS "=2|-SLURM_MPI_TYPE" },
	{ .name = "mpi=pmix, cpus=check", .command = "srun --ddp " STEP,
	  .conf = LINE " mpi=pmix cpus=check", .want = FILLED },
	{ .name = "a good --ddp-port",
	  .command = "srun --ddp-port=25000 --ddp " STEP, .want = FILLED },
	{ .name = "a good port over an inherited bad one",
	  .command = "srun --ddp --ddp-port=65535 " STEP, .env = DDP_PORT "x",
	  .want = FILLED },
	{ .name = "two lines in plugstack.conf",
	  .command = "srun --ddp --noise " STEP,
	  .conf = LINE "\n" LINE " mpi=pmix", .want = FILLED "|#options=16",
	  .err = "srun: noise\n" },
	{ .name = "srun hides its options, -n", .dir = "bare",
	  .command = "srun --ddp -n4 --nodes=2 a.out",
	  .want = UNFILLED "|SLURM_DDP_ADDED=SLURM_DDP_SUPERVISOR" },
	{ .name = "srun hides its options, --ntasks-per-node", .dir = "bare",
	  .command = "srun --ddp --ntasks-per-node=2 " STEP,
	  .want = UNFILLED },
	{ .name = "srun hides its options, SLURM_NTASKS", .dir = "bare",
	  .command = "srun --ddp " STEP, .env = "SLURM_NTASKS=4",
	  .want = UNFILLED },
};

/* What srun prints while it reads its command line. */
static const struct spank_case noise_cases[] = {
	{ .name = "srun's messages appear once", .want = FILLED,
	  .command = "srun --noise --ddp " STEP, .err = "srun: noise\n" },
	{ .name = "once where nothing is filled in", .want = UNFILLED,
	  .command = "srun --noise --ddp -n4 -K1 --mpi=none --ntasks-per-node"
		     "=2 " STEP, .err = "srun: noise\n" },
	{ .name = "and where srun ends by itself", .status = 3,
	  .command = "srun --ddp --noise --quit " STEP,
	  .err = "srun: noise\n" },
	{ .name = "and where it knows an option not", .status = 1,
	  .command = "srun --noise --ddp --wrong " STEP,
	  .err = "srun: noise\nsrun: unrecognized option '--wrong'\n" },
	{ .name = "and where the step is refused", .status = 1,
	  .command = "srun --noise --ddp=no " STEP,
	  .err = "srun: noise\nsrun: error: slurm-ddp: --ddp 'no' is not one "
		 "of explain, dry-run, torchrun, srun, on, off, help\n" },
	{ .name = "and without --ddp", .want = "same",
	  .command = "srun --noise " STEP, .err = "srun: noise\n" },
	{ .name = "once for each component", .want = POISONED,
	  .command = "srun --ddp --noise " STEP " : --noise " STEP,
	  .err = "srun: noise\nsrun: noise\n" },
};

static const struct spank_case het_cases[] = {
	{ .name = "two components", .command = "srun --ddp --nodes=1 "
	  "--gres=gpu:2 a : --nodes=2 --gres=gpu:1 b", .want = POISONED "|"
	  TASKS "=2|SLURM_NTASKS_PER_NODE_HET_GROUP_1=1|-SLURM_DDP_RERUN|"
	  "-SLURM_NTASKS_PER_NODE" },
	{ .name = "three, of which one is open", .want = POISONED "|-" TASKS
	  "|SLURM_NTASKS_PER_NODE_HET_GROUP_1=3|"
	  "-SLURM_NTASKS_PER_NODE_HET_GROUP_2",
	  .command = "srun --ddp -n1 a : --nodes=2 --gres=gpu:3 b : -n2 c" },
	{ .name = "two with two lines in plugstack.conf",
	  .conf = LINE "\n" LINE, .command = "srun --ddp --nodes=1 "
	  "--gres=gpu:2 a : --nodes=2 --gres=gpu:1 b", .want = POISONED "|"
	  TASKS "=2|SLURM_NTASKS_PER_NODE_HET_GROUP_1=1|-SLURM_DDP_RERUN" },
	{ .name = "--ddp in the second only", .command = "srun --nodes=1 "
	  "--gres=gpu:2 a : --ddp --nodes=2 --gres=gpu:1 b", .want = POISONED
	  "|" TASKS "=2|SLURM_NTASKS_PER_NODE_HET_GROUP_1=1" },
	{ .name = "inherited", .env = DDP, .command = "srun --nodes=1 "
	  "--gres=gpu:2 a : --nodes=2 --gres=gpu:1 b", .want = POISONED
	  "|" TASKS "=2|SLURM_NTASKS_PER_NODE_HET_GROUP_1=1" },
	{ .name = "off in all", .env = DDP, .want = "same",
	  .command = "srun --ddp=off -n1 a : --ddp=off -n1 b" },
	{ .name = "off in the second only",
	  .command = "srun --ddp -n1 a : --ddp=off -n1 b",
	  .refusal = "--ddp=off: given for one component" },
	{ .name = "off in the first only",
	  .command = "srun --ddp=off -n1 a : --ddp -n1 b",
	  .refusal = "--ddp=off: given for one component" },
};

static const struct spank_case refused_cases[] = {
	{ .name = "an unknown word", .command = "srun --ddp=explian " STEP,
	  .refusal = "--ddp 'explian' is not one of explain, dry-run, "
	  "torchrun, srun, on, off, help; did you mean explain" },
	{ .name = "capitals", .command = "srun --ddp=Explain " STEP,
	  .refusal = "help; did you mean explain" },
	{ .name = "an inherited unknown word", .command = "srun " STEP,
	  .env = DDP "yes", .refusal = "--ddp 'yes' is not one of" },
	{ .name = "off among others",
	  .refusal = "--ddp: off is given with other words",
	  .command = "srun --ddp=explain,off " STEP },
	{ .name = "a bad word among others",
	  .command = "srun --ddp=explain,,dry-run " STEP,
	  .refusal = "--ddp '' is not one of" },
	{ .name = "--ddp-gpus alone", .command = "srun --ddp-gpus=own " STEP,
	  .refusal = "--ddp-gpus: given without --ddp" },
	{ .name = "--ddp-cpus alone", .command = "srun --ddp-cpus=off " STEP,
	  .refusal = "--ddp-cpus: given without --ddp" },
	{ .name = "a bad --ddp-gpus", .refusal = "--ddp-gpus 'mine' is not "
	  "one of all, own, share, off",
	  .command = "srun --ddp --ddp-gpus=mine " STEP },
	{ .name = "an empty --ddp-gpus", .refusal = "--ddp-gpus '' is not",
	  .command = "srun --ddp --ddp-gpus= " STEP },
	{ .name = "a bad --ddp-cpus", .refusal = "--ddp-cpus 'far' is not one "
	  "of near, spread, off",
	  .command = "srun --ddp --ddp-cpus=far " STEP },
	{ .name = "a topology= without a root", .command = "srun --ddp " STEP,
	  .conf = LINE " topology=etc/n1.xml", .refusal = "topology=etc/n1.xml:"
	  " not the whole path of a file; begin" },
	{ .name = "an empty topology=", .command = "srun --ddp " STEP,
	  .conf = LINE " topology=", .refusal = "the whole path" },
	{ .name = "--ddp-port alone", .command = "srun --ddp-port=25000 " STEP,
	  .refusal = "--ddp-port: given without --ddp" },
	{ .name = "a port that is none", .refusal = "--ddp-port=abc",
	  .command = "srun --ddp --ddp-port=abc " STEP },
	{ .name = "a port of root's", .refusal = "from 1024 to 65535",
	  .command = "srun --ddp --ddp-port=1023 " STEP },
	{ .name = "too large a port", .refusal = "--ddp-port=65536",
	  .command = "srun --ddp --ddp-port=65536 " STEP },
	{ .name = "a very large port", .refusal = "--ddp-port=9999999999999",
	  .command = "srun --ddp --ddp-port=99999999999999999999 " STEP },
	{ .name = "a negative port", .refusal = "--ddp-port=-1",
	  .command = "srun --ddp --ddp-port=-1 " STEP },
	{ .name = "an empty port", .refusal = "--ddp-port=",
	  .command = "srun --ddp --ddp-port= " STEP },
	{ .name = "text behind a port", .refusal = "--ddp-port=25000x",
	  .command = "srun --ddp --ddp-port=25000x " STEP },
	{ .name = "an unknown key", .command = "srun --ddp " STEP,
	  .conf = LINE " mpi=keep speed=9",
	  .refusal = "speed=9: key 'speed' is not one of ddp, ddp-gpus, " },
	{ .name = "an unknown key in a second line", .conf = LINE "\n" LINE
	  " speed=9", .command = "srun --ddp " STEP, .refusal = "speed=9" },
	{ .name = "a key without a value", .command = "srun --ddp " STEP,
	  .conf = LINE " mpi", .refusal = "plugstack.conf" },
	{ .name = "a bad mpi=", .command = "srun --ddp " STEP,
	  .conf = LINE " mpi=pmi2", .refusal = "mpi=pmi2" },
	{ .name = "a bad cpus=", .command = "srun --ddp " STEP,
	  .conf = LINE " cpus=many", .refusal = "cpus=many" },
	{ .name = "a bad port-range=", .command = "srun --ddp " STEP,
	  .conf = LINE " port-range=5000", .refusal = "port-range=5000" },
	{ .name = "too small a port-range=", .command = "srun --ddp " STEP,
	  .conf = LINE " port-range=5000-5010", .refusal = "at least 63" },
	{ .name = "an empty interface=", .command = "srun --ddp " STEP,
	  .conf = LINE " interface=", .refusal = "interface=" },
	{ .name = "two interfaces", .command = "srun --ddp " STEP,
	  .conf = LINE " interface=a,b", .refusal = "one interface" },
	{ .name = "an interface= that cannot be printed",
	  .command = "srun --ddp " STEP,
	  .conf = LINE " interface=a\033[2J", .refusal = "one interface" },
	{ .name = "a long interface", .command = "srun --ddp " STEP,
	  .conf = LINE " interface=abcdefghijklmnop", .refusal = "one inter" },
	{ .name = "an open number of nodes",
	  .command = "srun --ddp --nodes=1-2 --gres=gpu:2 a",
	  .refusal = "-N1-2 leaves it open" },
	{ .name = "--gpus without -N", .command = "srun --ddp --gpus=4 a",
	  .refusal = "add -N NODES, or give the number of tasks with -n" },
	{ .name = "uneven --gpus", .refusal = "does not divide",
	  .command = "srun --ddp --gpus=3 --nodes=2 a" },
	{ .name = "--jobid without -N", .refusal = "--jobid without -N",
	  .command = "srun --ddp --jobid=13 --gres=gpu:2 a" },
	{ .name = "--het-group", .command = "srun --ddp --het-group=1 " STEP,
	  .want = "SLURM_NTASKS_PER_NODE_HET_GROUP_1=2" },
	{ .name = "an srun that hides its options", .dir = "bare",
	  .command = "srun --ddp " STEP, .refusal = "give --ntasks-per-node" },
};

/*
 * Hooks that run as root, or before root is given up for good. spank_ddp(8)
 * says that the plugin has only those that it names.
 */
static void test_hooks(void)
{
	static const char *const roots[] = {
		"slurm_spank_job_prolog", "slurm_spank_job_epilog",
		"slurm_spank_slurmd_exit", "slurm_spank_user_init",
		"slurm_spank_task_init_privileged",
		"slurm_spank_task_post_fork",
	};
	char path[PATH_MAX], name[96];
	void *plugin;
	size_t i;

	snprintf(path, sizeof(path), "%s/full/spank_ddp.so", cases_dir);
	plugin = dlopen(path, RTLD_LAZY);
	case_report(plugin && dlsym(plugin, "slurm_spank_task_init"),
		    "the plugin has a hook in tasks", path);
	for (i = 0; i < COUNT(roots); i++) {
		snprintf(name, sizeof(name), "and no %s", roots[i]);
		case_report(plugin && !dlsym(plugin, roots[i]), name, "");
	}
	if (plugin)
		dlclose(plugin);
}

void test_srun(void)
{
	test_hooks();
	cases_run(off_cases, COUNT(off_cases));
	cases_run(outer_cases, COUNT(outer_cases));
	cases_run(container_cases, COUNT(container_cases));
	cases_run(on_cases, COUNT(on_cases));
	cases_run(noise_cases, COUNT(noise_cases));
	cases_run(het_cases, COUNT(het_cases));
	cases_run(refused_cases, COUNT(refused_cases));
}
