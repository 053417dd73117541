/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A fake Slurm, as far as the plugin can see it. One program plays all parts,
 * by the name under which it is run: srun, sbatch, salloc, slurmstepd and
 * slurmd load the real plugin from their own directory and call its hooks in
 * Slurm's order. By any other name it is the test program, which runs these and
 * looks at what they print.
 */
#ifndef DDP_TESTS_SPANK_HOST_H
#define DDP_TESTS_SPANK_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <slurm/spank.h>

/* fake_spank.c: what the functions of spank.h answer, and what was asked. */
struct fake {
	spank_context_t context;
	const char *program;
	uint32_t job_id, step_id, local_tasks, all_tasks, nodes;
	int task, exit_status;		/* of the task that has ended */
	uid_t uid;			/* of the job */
	gid_t gid;
	bool launched;			/* in srun: the step is there */
	int argc;
	char **argv;
	char **env;			/* the task's, every string malloced */
	struct spank_option *options[16];
	unsigned int option_count;
	unsigned int calls;		/* of all functions */
	unsigned int items;		/* of those that tell or set */
	unsigned int fail;		/* the call that fails; 0: none */
};

extern struct fake fake;

/* Give the task an entry, which is malloced, instead of name's. */
void fake_env_set(const char *name, char *entry);

/* fake_options.c: srun's options, and its own accessors for them. */
void fake_options_reset(void);
void fake_options_from_env(unsigned int component);

/* Take "--name", "--name=value", "-nVALUE"; false if there is no such one. */
bool fake_options_set(const char *word);

/* What srun makes of them: its step, and variables of its own. */
struct step {
	uint32_t nodes, tasks;
};
void fake_options_step(struct step *step);
void fake_options_export(void);

/*
 * fake_kernel.c: what a task is bound to. A case sets "#cpus=0-3" (default 0)
 * and "#membind" for a --mem-bind; "#blind" if the kernel does not tell,
 * "#fixed" if it does not change anything; "#lethal" if it kills whoever asks;
 * "#old" if it is Linux 4.18; "#device" for a GPU's device file, of which
 * there is none otherwise.
 * It prints #cpus, #binds and #memory=MODE:NODES. Its random bytes are always
 * the same.
 */
void fake_kernel_reset(void);
bool fake_kernel_set(const char *word);

/* Time-outs come in a tenth, once so many tasks wait or are about to die. */
void fake_kernel_hurry(unsigned int tasks);
void fake_kernel_come(void);	/* this one is about to die */
void fake_kernel_print(void);
unsigned int fake_kernel_naps(void);

/* fake_net.c: take a case's word for it; false if it is none. */
bool fake_net_set(const char *word);

/* hooks.c: load the plugin, call hooks, give options. */
void walk_load(void);
void walk_hook(const char *name);
bool walk_option(const char *word, int remote);

/* walk.c: print an environment. */
void walk_print(char **env);

/*
 * Play a part; returns the exit status. srun ends in place of its command, but
 * for ddp-bench, which --ddp-check starts.
 */
int walk_launcher(int argc, char **argv, spank_context_t context);
int walk_slurmd(void);

/*
 * walk_stepd.c: slurmstepd FAIL STEP LOCAL-TASKS ALL-TASKS [--option ...]
 * COMMAND. Without case.tasks there is one task, which the environment
 * describes, and all hooks run in one process.
 */
int walk_stepd(int argc, char **argv);

/*
 * A run of a part, and what it must lead to. Lists are separated by '|';
 * strings may be NULL, for nothing. In conf and env @/ is the directory of
 * tests/spank/run, which has topo, bin and errors. FAKE_FILES=FOLDER gets a link to
 * each file that is made for ranks.
 */
struct spank_case {
	const char *name;
	const char *command;	/* words; the first names the part */
	const char *env;	/* "A=b|-C": the environment; -C takes C out of
				 * what came before */
	const char *tasks;	/* slurmstepd: a process for each task, with
				 * "#cpus=0-3|A=b;#cpus=4-7": what each has of
				 * its own; one for all, or one for each. Also
				 * "#fail=N", "#late", "#dies", "#absent"; and
				 * for its program "#writes=SECONDS:TEXT", the
				 * error file as of that time, and "#exits=N" or
				 * "#killed=SIGNAL". "#children" is for one task
				 * alone: it has not ended while the agent has
				 * not, as with srun's --wait-for-children. A
				 * task's lines are printed with "LOCALID:" in
				 * front, "LOCALID:#status=" last */
	const char *conf;	/* plugstack.conf; NULL: one plain line */
	const char *dir;	/* "full" (NULL), "nompi" or "bare": where the
				 * program lives, and so what it finds there */
	bool childless;		/* started by one that ignores SIGCHLD */
	const char *want;	/* "A=b|-C": what the task finds, and what it
				 * must not; "same": all of env, no more */
	const char *refusal;	/* exit status 1, of every task, and one line
				 * that has this */
	const char *err;	/* all of stderr, where it is not refused;
				 * spaces come in any number */
	unsigned int writes;	/* in so many writes; 0: in any number */
	int status;		/* where it is not refused */
};

/*
 * The longest that a case may take. It is less than tasks wait for each other.
 */
#define TOOK_MAX_MS 8000

/* cases.c: run one case or a list of them; report each as a TAP line. */
void case_run(const struct spank_case *test);
void cases_run(const struct spank_case *tests, unsigned int count);
void case_report(bool good, const char *name, const char *why);
int cases_end(void);		/* print the plan; the exit status */
extern const char *cases_dir;	/* has full, nompi, bare, topo,
					 * bin and errors */

/* try.c: run a case without judging it; what it left, until the next run. */
struct outcome {
	char out[1 << 20], err[16384];
	unsigned int writes;		/* to stderr */
	uint64_t took_ms;
	int status;
};
const struct outcome *case_try(const struct spank_case *test);

/*
 * cases.c: report a run that may not take TOOK_MAX_MS. If that alone is wrong, it
 * is late, and tests/run tries it again on a quiet machine.
 */
void case_report_timed(bool good, const struct outcome *outcome,
		       const char *name, const char *why);

/* An entry's value in what a run printed; NULL if it has none. */
const char *outcome_get(const struct outcome *outcome, const char *name);

/*
 * The pieces of a text, with a NULL after the last, for words_free; and what a
 * case's env comes to, in which the later of two entries of one name counts.
 */
#define WORDS_MAX 64
size_t words_split(const char *text, const char *at, char **pieces);
void env_make(const char *text, char **env);
void words_free(char **pieces);

void test_srun(void);		/* test_srun.c */
void test_job(void);		/* test_job.c */
void test_supervise(void);	/* test_supervise.c */
void test_preflight(void);	/* test_preflight.c */
void test_launcher(void);	/* test_launcher.c */
void test_task(void);		/* test_task.c */
void test_rank(void);		/* test_rank.c */
void test_siblings(void);	/* test_siblings.c */
void test_views(void);		/* test_views.c */
void test_meeting(void);	/* test_meeting.c */
void test_explain(void);	/* test_explain.c */
void test_site(void);		/* test_site.c */
void test_foreign(void);	/* test_foreign.c */
void test_failures(void);	/* test_failures.c */
void test_agent(void);		/* test_agent.c */
void test_signal(void);	/* test_signal.c */

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#endif
