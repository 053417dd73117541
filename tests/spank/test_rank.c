/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * In slurmstepd: a task's rank, for each way in which Slurm distributes tasks
 * to nodes. The middle of a row is what Slurm says of the task, its end what
 * must come of it; both were worked out by hand.
 */
#include <stdio.h>

#include "host.h"

#define SRUN "SLURM_MPI_TYPE=none|SLURM_DDP_MAPPING="
#define PMIX "SLURM_MPI_TYPE=pmix|SLURM_PMIX_MAPPING_SERV="

static const struct place {
	const char *name, *nodes, *tasks, *more;
	uint32_t world, component;	/* tasks */
	uint32_t rank, local_rank, local_tasks;
	const char *node;
	uint32_t node_rank, node_count;
	const char *master;
} places[] = {
	{ "block", "n[1-2]", "2(x2)", "SLURM_DISTRIBUTION=block", 4, 4,
	  2, 0, 2, "n2", 1, 2, "n1" },
	{ "no distribution", "n[1-2]", "2(x2)", "A=b", 4, 4,
	  3, 1, 2, "n2", 1, 2, "n1" },
	{ "uneven", "n[1-3]", "2(x2),1", "SLURM_DISTRIBUTION=block", 5, 5,
	  4, 0, 1, "n3", 2, 3, "n1" },
	{ "uneven, more on the last", "n[1-2]", "1,3",
	  "SLURM_DISTRIBUTION=block", 4, 4, 3, 2, 3, "n2", 1, 2, "n1" },
	{ "a part of the job's nodes", "n[3,5]", "1(x2)",
	  "SLURM_JOB_NODELIST=n[1-5]", 2, 2, 1, 0, 1, "n5", 1, 2, "n3" },
	{ "cyclic", "n[1-2]", "2(x2)", "SLURM_DISTRIBUTION=cyclic", 4, 4,
	  2, 1, 2, "n1", 0, 2, "n1" },
	{ "cyclic, uneven", "n[1-2]", "3,1",
	  "SLURM_DISTRIBUTION=cyclic:block,pack", 4, 4,
	  3, 2, 3, "n1", 0, 2, "n1" },
	{ "plane", "n[1-2]", "4(x2)",
	  "SLURM_DISTRIBUTION=plane|SLURM_DIST_PLANESIZE=2", 8, 8,
	  4, 2, 4, "n1", 0, 2, "n1" },
	{ "plane=", "n[1-2]", "4(x2)",
	  "SLURM_DISTRIBUTION=plane=2|SLURM_DIST_PLANESIZE=2", 8, 8,
	  7, 3, 4, "n2", 1, 2, "n1" },
	{ "arbitrary, rank 0", "n[1-2]", "2(x2)", PMIX "(vector,(1,1,1),"
	  "(0,1,2),(1,1,1))|SLURM_DISTRIBUTION=arbitrary", 4, 4,
	  0, 0, 2, "n2", 0, 2, "n2" },
	{ "arbitrary, rank 1", "n[1-2]", "2(x2)", PMIX "(vector,(1,1,1),"
	  "(0,1,2),(1,1,1))|SLURM_DISTRIBUTION=arbitrary", 4, 4,
	  1, 0, 2, "n1", 1, 2, "n2" },
	{ "arbitrary, rank 3", "n[1-2]", "2(x2)", PMIX "(vector,(1,1,1),"
	  "(0,1,2),(1,1,1))|SLURM_DISTRIBUTION=arbitrary", 4, 4,
	  3, 1, 2, "n2", 0, 2, "n2" },
	{ "heterogeneous, first", "n[1-2]", "1,3", PMIX "(vector,(1,1,3),"
	  "(0,1,1))", 4, 3, 0, 0, 3, "n2", 0, 2, "n2" },
	{ "heterogeneous, second", "n[1-2]", "1,3", PMIX "(vector,(1,1,3),"
	  "(0,1,1))", 4, 1, 3, 0, 1, "n1", 1, 2, "n2" },
	{ "pmix_v4", "n[1-2]", "1(x2)", "SLURM_MPI_TYPE=pmix_v4|"
	  "SLURM_PMIX_MAPPING_SERV=(vector,(1,1,1),(0,1,1))", 2, 2,
	  1, 0, 1, "n1", 1, 2, "n2" },
	{ "a stale mapping, of another MPI type", "n[1-2]", "1(x2)",
	  "SLURM_MPI_TYPE=none|SLURM_PMIX_MAPPING_SERV=(vector,(1,1,1),"
	  "(0,1,1))", 2, 2, 1, 0, 1, "n2", 1, 2, "n1" },
	{ "a stale mapping, of no MPI type", "n[1-2]", "1(x2)",
	  "SLURM_PMIX_MAPPING_SERV=nonsense", 2, 2,
	  1, 0, 1, "n2", 1, 2, "n1" },
	{ "as srun tells", "n[1-2]", "2(x2)", SRUN "(vector,(1,1,2),(0,1,2))|"
	  "SLURM_DISTRIBUTION=block", 4, 4, 0, 0, 2, "n2", 0, 2, "n2" },
	{ "arbitrary, as srun tells", "n[1-2]", "2(x2)", SRUN "(vector,"
	  "(1,1,1),(0,1,2),(1,1,1))|SLURM_DISTRIBUTION=arbitrary", 4, 4,
	  3, 1, 2, "n2", 0, 2, "n2" },
	{ "srun does not know", "n[1-2]", "2(x2)", SRUN "|"
	  "SLURM_DISTRIBUTION=block", 4, 4, 2, 0, 2, "n2", 1, 2, "n1" },
	{ "pmix, which knows better", "n[1-2]", "1(x2)", PMIX "(vector,(1,1,1),"
	  "(0,1,1))|SLURM_DDP_MAPPING=(vector,(0,2,1))", 2, 2,
	  1, 0, 1, "n1", 1, 2, "n2" },
	{ "one task", "n1", "1", "A=b", 1, 1, 0, 0, 1, "n1", 0, 1, "n1" },
	{ "one node, arbitrary", "n1", "3", "SLURM_DISTRIBUTION=arbitrary",
	  3, 3, 2, 2, 3, "n1", 0, 1, "n1" },
};

static const struct {
	const char *name, *more, *refusal;
	uint32_t component;
} refused[] = {
	{ "arbitrary without pmix", "SLURM_DISTRIBUTION=arbitrary|"
	  "SLURM_MPI_TYPE=none", "an arbitrarily distributed step is known "
	  "with --mpi=pmix, or by sattach beside srun; use one of them", 4 },
	{ "another order than the list's, which nobody tells",
	  "SLURM_MPI_TYPE=none|SLURM_PROCID=3", "use --mpi=pmix, or install "
	  "sattach beside srun", 4 },
	{ "heterogeneous without pmix", "SLURM_MPI_TYPE=pmi2",
	  "a heterogeneous step is known with --mpi=pmix only", 2 },
	{ "a malformed mapping", PMIX "(vector,(0,2", "process mapping", 4 },
	{ "a mapping of too few", PMIX "(vector,(0,2,1))", "process mapping",
	  4 },
	{ "a mapping that disagrees", PMIX "(vector,(0,1,3),(1,1,1))",
	  "the mapping puts more ranks on n1 than its 2 tasks", 4 },
	{ "an unknown distribution", "SLURM_DISTRIBUTION=random",
	  "distribution 'random'", 4 },
	{ "plane without a size", "SLURM_DISTRIBUTION=plane",
	  "Slurm has not set SLURM_DIST_PLANESIZE", 4 },
	{ "plane of size 0", "SLURM_DISTRIBUTION=plane|SLURM_DIST_PLANESIZE=0",
	  "plane size", 4 },
};

static void place_run(const struct place *place)
{
	char command[128], env[1024], want[512];
	struct spank_case test = { .name = place->name, .command = command,
		.env = env, .want = want };

	snprintf(command, sizeof(command), "slurmstepd 0 0 %u %u --ddp "
		 "--ddp-gpus=off --ddp-cpus=off train",
		 place->local_tasks, place->component);
	snprintf(env, sizeof(env), "SLURM_JOB_ID=12|SLURM_STEP_NUM_TASKS=%u|"
		 "SLURM_PROCID=%u|SLURM_LOCALID=%u|SLURMD_NODENAME=%s|"
		 "SLURM_STEP_NODELIST=%s|SLURM_STEP_TASKS_PER_NODE=%s|%s",
		 place->world, place->rank, place->local_rank, place->node,
		 place->nodes, place->tasks, place->more);
	snprintf(want, sizeof(want), "RANK=%u|LOCAL_RANK=%u|WORLD_SIZE=%u|"
		 "LOCAL_WORLD_SIZE=%u|NODE_RANK=%u|GROUP_RANK=%u|"
		 "GROUP_WORLD_SIZE=%u|ROLE_RANK=%u|ROLE_WORLD_SIZE=%u|"
		 "MASTER_ADDR=%s", place->rank, place->local_rank,
		 place->world, place->local_tasks, place->node_rank,
		 place->node_rank, place->node_count, place->rank,
		 place->world, place->master);
	case_run(&test);
}

static void refused_run(size_t i)
{
	char command[128], env[1024];
	struct spank_case test = { .name = refused[i].name,
		.command = command, .env = env,
		.refusal = refused[i].refusal };

	snprintf(command, sizeof(command), "slurmstepd 0 0 2 %u --ddp "
		 "--ddp-gpus=off --ddp-cpus=off train",
		 refused[i].component);
	snprintf(env, sizeof(env), "SLURM_JOB_ID=12|SLURM_STEP_NUM_TASKS=4|"
		 "SLURM_PROCID=1|SLURM_LOCALID=1|SLURMD_NODENAME=n1|"
		 "SLURM_STEP_NODELIST=n[1-2]|SLURM_STEP_TASKS_PER_NODE=2(x2)|"
		 "%s", refused[i].more);
	case_run(&test);
}

void test_rank(void)
{
	size_t i;

	for (i = 0; i < COUNT(places); i++)
		place_run(&places[i]);
	for (i = 0; i < COUNT(refused); i++)
		refused_run(i);
}
