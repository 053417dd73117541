/* SPDX-License-Identifier: BSD-3-Clause */
/* Examines an installation: asks Slurm and the nodes, and prints findings. */
#define _GNU_SOURCE
#include "doctor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config.h"
#include "info.h"
#include "tool/tool.h"

enum {
	ASK_MS = 20000,
	SPECIAL_STEP = -6	/* as 32 bits: from here on a step is a batch
				   script or a shell of salloc's */
};

/* Returns what scontrol says; NULL: why tells the cause. */
static char *ask(const char *const argv[], char *why, size_t size)
{
	struct doctor_program program;
	char *text = NULL;

	doctor_program_run(&program, argv, ASK_MS, NULL, NULL);
	if (program.failed) {
		doctor_program_why(&program, why, size);
	} else {
		text = program.out;
		program.out = NULL;
	}
	doctor_program_clear(&program);
	return text;
}

/* Returns whether srun has the option --ddp here. */
static bool check_srun(struct check *out)
{
	static const char *const argv[] = { "srun", "--help", NULL };
	struct doctor_program program;
	char why[512];
	bool has;

	doctor_program_run(&program, argv, ASK_MS, NULL, NULL);
	has = program.out && strstr(program.out, " --ddp");
	doctor_program_why(&program, why, sizeof(why));
	if (has)
		check_add(out, CHECK_OK, "srun", "has --ddp on this machine");
	else
		check_add(out, CHECK_WRONG, "srun", "has no --ddp on this "
			  "machine (%s); name a spank_ddp.so that is built for "
			  "this Slurm in plugstack.conf", why);
	doctor_program_clear(&program);
	return has;
}

/* srun of some releases prints the list on stderr. */
static void check_mpi(struct check *out)
{
	static const char *const argv[] = { "srun", "--mpi=list", NULL };
	struct doctor_program program;

	doctor_program_run(&program, argv, ASK_MS, NULL, NULL);
	if ((program.out && strstr(program.out, "pmix")) ||
	    (program.err && strstr(program.err, "\tpmix")))
		check_add(out, CHECK_OK, "srun --mpi=list", "has pmix");
	else
		check_add(out, CHECK_WRONG, "srun --mpi=list", "lacks pmix, "
			  "which srun --ddp needs; install PMIx and a Slurm "
			  "that was built with it, and restart slurmd");
	doctor_program_clear(&program);
}

static int check_machines(struct check *out, const char *config,
			  const char *partitions, struct ddp_error *error)
{
	const char *node = getenv("SLURMD_NODENAME");
	struct check_world world = {
		.config = config, .partitions = partitions,
		.version = DDP_VERSION
	};
	struct doctor_nodes nodes;
	bool has_ddp = check_srun(out);
	char host[256] = "";
	int rc;

	gethostname(host, sizeof(host) - 1);
	check_mpi(out);
	rc = doctor_nodes_ask(&nodes, config, node ? node : host, has_ddp,
			      error);
	world.nodes = nodes.nodes;
	world.count = nodes.count;
	if (rc == 0)
		check_nodes(out, &world);
	if (rc == 0 && !nodes.hosts)
		check_add(out, CHECK_UNKNOWN, "compute nodes", "not examined "
			  "outside of a job: run salloc -N2 ddp-info "
			  "--doctor");
	if (rc == 0 && getenv("SLURM_HET_SIZE"))
		check_add(out, CHECK_UNKNOWN, "compute nodes", "only those of "
			  "this heterogeneous job's first component were "
			  "examined");
	if (rc == 0 && nodes.hosts && !has_ddp)
		check_add(out, CHECK_UNKNOWN, "PMIx", "ranks could not be told "
			  "to meet, as srun has no --ddp");
	doctor_nodes_clear(&nodes);
	return rc;
}

static int check_all(struct check *out, struct ddp_error *error)
{
	static const char *const show_config[] = { "scontrol", "show", "config",
						   NULL };
	static const char *const show_nodes[] = { "scontrol", "-o", "show",
						  "nodes", NULL };
	/* -a: hidden ones, too */
	static const char *const show_partitions[] = {
		"scontrol", "-a", "-o", "show", "partition", NULL
	};
	char why[512], *config = ask(show_config, why, sizeof(why)), *nodes;
	char *partitions;
	int rc;

	if (!config) {
		check_add(out, CHECK_WRONG, "Slurm", "scontrol show config "
			  "fails (%s), so nothing is examined; run this where "
			  "jobs are submitted, while slurmctld is up", why);
		return 0;
	}
	nodes = ask(show_nodes, why, sizeof(why));
	check_config(out, config, nodes);
	partitions = ask(show_partitions, why, sizeof(why));
	rc = check_machines(out, config, partitions, error);
	free(partitions);
	free(nodes);
	free(config);
	return rc;
}

/* A task of srun's, and neither a batch script nor a shell of salloc's. */
static bool is_in_step(void)
{
	const char *step = getenv("SLURM_STEP_ID");

	return step && strtoul(step, NULL, 10) < (uint32_t)SPECIAL_STEP;
}

int doctor_print(bool *wrong, struct ddp_error *error)
{
	struct check out = { .colour = tool_has_colour(stdout) };
	const char *task = getenv(DOCTOR_VARIABLE);
	int rc;

	if (is_in_step() && task)
		return doctor_task(task, error);
	if (is_in_step())
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--doctor "
				     "starts srun itself: run it without srun, "
				     "as in: salloc -N2 ddp-info --doctor");
	rc = check_all(&out, error);
	check_end(&out);
	*wrong = out.counts[CHECK_WRONG] > 0;
	if (rc) {
		free(ddp_text_finish(&out.text));
		return -1;
	}
	return tool_print_text(ddp_text_finish(&out.text), error);
}
