/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The parts that the fake Slurm plays: srun and sbatch, slurmd; slurmstepd is
 * in walk_stepd.c. Each loads the plugin, calls its hooks in Slurm's order, and
 * prints the environment that the task would see, what was asked of spank.h,
 * and what the task is bound to.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host.h"

#define COMPONENTS_MAX 8

static void plugin_options_from_env(void)
{
	char variable[128], *dash;
	const char *value;
	size_t i;

	for (i = 0; i < fake.option_count; i++) {
		snprintf(variable, sizeof(variable),
			 "SLURM_SPANK__SLURM_SPANK_OPTION_ddp_%s",
			 fake.options[i]->name);
		while ((dash = strchr(variable, '-')))
			*dash = '_';
		value = getenv(variable);
		if (value)
			fake.options[i]->cb(fake.options[i]->val, value, 0);
	}
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

void walk_print(char **env)
{
	size_t count = 0, i;

	while (env[count])
		count++;
	qsort(env, count, sizeof(*env), compare);
	for (i = 0; i < count; i++)
		puts(env[i]);
	printf("#options=%u\n#items=%u\n#calls=%u\n", fake.option_count,
	       fake.items, fake.calls);
	fake_kernel_print();
}

/*
 * Read one component's words up to the command; returns the index behind its
 * end. --noise prints something on stderr, --quit ends, as srun's own checks
 * do.
 */
static int component_read(int argc, char **argv, int at)
{
	int begin = at - 1;

	for (; at < argc && argv[at][0] == '-'; at++) {
		if (strcmp(argv[at], "--noise") == 0)
			fprintf(stderr, "%s: noise\n", fake.program);
		else if (strcmp(argv[at], "--quit") == 0)
			exit(3);
		else if (strncmp(argv[at], "--fail=", 7) != 0 &&
			 !fake_options_set(argv[at]) &&
			 !walk_option(argv[at], 0)) {
			fprintf(stderr, "%s: unrecognized option '%s'\n",
				fake.program, argv[at]);
			exit(1);
		}
	}
	optind = at - begin;	/* as if it were a command line by itself */
	while (at < argc && strcmp(argv[at], ":") != 0)
		at++;
	return at + 1;
}

/* What srun does when the step exists: once, for one of its components. */
static void step_launch(const struct step *step)
{
	fake.launched = true;
	fake.job_id = getenv("SLURM_JOB_ID") ?
		(uint32_t)atol(getenv("SLURM_JOB_ID")) : 12;
	fake.nodes = step->nodes;
	fake.all_tasks = step->tasks;
	walk_hook("slurm_spank_local_user_init");
}

/* Run what --ddp-check starts; FAKE_ARGUMENTS tells it srun's arguments. */
static void bench_run(char **argv)
{
	char words[1024] = "";
	size_t used = 0, i;

	for (i = 1; argv[i] && used < sizeof(words); i++)
		used += (size_t)snprintf(words + used, sizeof(words) - used,
					 "%s%s", i > 1 ? " " : "", argv[i]);
	setenv("FAKE_ARGUMENTS", words, 1);
	execv(argv[optind], argv + optind);
	_exit(97);
}

int walk_launcher(int argc, char **argv, spank_context_t context)
{
	struct step steps[COMPONENTS_MAX];
	unsigned int component = 0;
	int at = 1;

	fake.context = context;
	if (argc > 1)
		sscanf(argv[1], "--fail=%u", &fake.fail);
	walk_load();
	walk_hook("slurm_spank_init");
	while (at < argc) {
		fake_options_reset();
		fake_options_from_env(component);
		plugin_options_from_env();
		at = component_read(argc, argv, at);
		walk_hook("slurm_spank_init_post_opt");
		fake_options_step(&steps[component]);
		if (++component == COMPONENTS_MAX)
			break;
	}
	if (context == S_CTX_LOCAL) {
		fake_options_export();
		step_launch(&steps[component - 1]);
		if (optind < argc && strstr(argv[optind], "/ddp-bench"))
			bench_run(argv);
	}
	walk_print(environ);
	walk_hook("slurm_spank_exit");
	return 0;
}

int walk_slurmd(void)
{
	static const spank_context_t contexts[] = {
		S_CTX_SLURMD, S_CTX_JOB_SCRIPT, S_CTX_ERROR,
	};
	size_t i;

	walk_load();
	for (i = 0; i < COUNT(contexts); i++) {
		fake.context = contexts[i];
		walk_hook("slurm_spank_init");
		walk_hook("slurm_spank_init_post_opt");
		walk_hook("slurm_spank_job_prolog");
		walk_hook("slurm_spank_job_epilog");
		walk_hook("slurm_spank_slurmd_exit");
		walk_hook("slurm_spank_exit");
	}
	walk_print(environ);
	return 0;
}
