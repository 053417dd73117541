/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A fake Slurm, as much of it as the plugin can see. One program plays all
 * parts, by the name under which it is run: srun, sbatch, salloc, slurmstepd
 * and slurmd load the real plugin from their own directory and walk it
 * through its hooks in Slurm's order; any other name is the test program,
 * which runs these and looks at what they print.
 */
#ifndef DDP_TESTS_SPANK_HOST_H
#define DDP_TESTS_SPANK_HOST_H

#include <stdbool.h>
#include <stdint.h>

#include <slurm/spank.h>

/* fake_spank.c: what the functions of spank.h answer, and what was asked. */
struct fake {
	spank_context_t context;
	const char *program;
	uint32_t step_id, local_tasks, all_tasks;
	int argc;
	char **argv;
	char **env;			/* the task's, every string malloced */
	struct spank_option *options[8];
	unsigned int option_count;
	unsigned int calls;		/* of all functions */
	unsigned int items;		/* of those that tell or set */
	unsigned int fail;		/* the call that fails; 0: none */
};

extern struct fake fake;

/* fake_options.c: srun's options, and its own way to look at them. */
void fake_options_reset(void);
void fake_options_from_env(unsigned int component);

/* Take "--name", "--name=value", "-nVALUE"; false if there is no such one. */
bool fake_options_set(const char *word);

/* walk.c: play a part; returns the exit status. */
int walk_launcher(int argc, char **argv, spank_context_t context);
int walk_stepd(int argc, char **argv);
int walk_slurmd(void);

/*
 * A run of a part, and what it must lead to. Lists are separated by '|';
 * strings may be NULL, for nothing.
 */
struct spank_case {
	const char *name;
	const char *command;	/* words; the first names the part */
	const char *env;	/* "A=b|-C": the environment; -C takes C out of
				 * what came before */
	const char *conf;	/* plugstack.conf; NULL: one plain line */
	const char *dir;	/* "full" (NULL), "nompi" or "bare": where the
				 * program lives, and so what it finds there */
	const char *want;	/* "A=b|-C": what the task finds, and what it
				 * must not; "same": all of env, no more */
	const char *refusal;	/* exit status 1 and one line that has this */
	const char *err;	/* all of stderr, where it is not refused */
	int status;		/* where it is not refused */
};

/* cases.c: run one case or a list of them; report each as a TAP line. */
void case_run(const struct spank_case *test);
void cases_run(const struct spank_case *tests, unsigned int count);
int cases_end(void);		/* print the plan; the exit status */
extern const char *cases_dir;	/* has the directories full, nompi, bare */

/* Also without expectation: what a run left, until the next one. */
struct outcome {
	char out[32768], err[8192];
	int status;
};
const struct outcome *case_try(const struct spank_case *test);
void case_report(bool good, const char *name, const char *why);

/* An entry's value in what a run printed; NULL if it has none. */
const char *outcome_get(const struct outcome *outcome, const char *name);

void test_srun(void);		/* test_srun.c */
void test_job(void);		/* test_job.c */
void test_task(void);		/* test_task.c */
void test_place(void);		/* test_place.c */
void test_failures(void);	/* test_failures.c */

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#endif
