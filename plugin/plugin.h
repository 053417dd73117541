/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the plugin's files know of each other. The plugin has one context,
 * struct ddp_plugin, because Slurm gives its hooks no room for one.
 */
#ifndef DDP_PLUGIN_H
#define DDP_PLUGIN_H

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <slurm/spank.h>

#include "layout/error.h"
#include "layout/placement.h"

/* What the user and the admin said. */
struct ddp_plugin {
	bool seen;		/* --ddp was given in some form */
	bool on;		/* and is not --ddp=off */
	bool explain, dry_run;	/* words of --ddp */
	const char *stray;	/* a --ddp-... option that was given; NULL */
	uint16_t port;		/* --ddp-port; 0: not given */
	enum ddp_gpus_policy gpus;	/* --ddp-gpus */
	enum ddp_cpus_policy cpus;	/* --ddp-cpus */

	bool mpi_keep;		/* plugstack: mpi=keep */
	bool cpus_trust;	/* plugstack: cpus=trust */
	uint16_t port_first, port_last;	/* plugstack: port-range=a-b */
	char interface[IF_NAMESIZE];	/* plugstack: interface=; or "" */
	const char *topology;	/* plugstack: topology=, %n the node; NULL */
};

extern struct ddp_plugin ddp_plugin;

/*
 * options.c: read plugstack.conf's arguments, and register the options; in
 * any context, from slurm_spank_init. Errors are kept, since a step without
 * --ddp must not notice them.
 */
void ddp_options_read(int argc, char **argv);
void ddp_options_register(spank_t spank);

/* The first error that makes a --ddp step impossible; NULL if there is none. */
const char *ddp_options_error(void);

/*
 * srun.c: in srun, sbatch and salloc, as the user. ddp_srun_init and
 * ddp_srun_exit mark the time in which srun reads its command line.
 */
void ddp_srun_init(void);
void ddp_srun_post_opt(void);
void ddp_srun_launch(spank_t spank);
void ddp_srun_exit(void);
void ddp_allocator_post_opt(void);

/* Print one sentence the way srun does and exit with 1. Does not return. */
void ddp_srun_refuse(const char *format, ...)
	__attribute__((format(printf, 1, 2), noreturn));

/*
 * outer.c: in srun, sbatch and salloc, before they read their command line:
 * take out what an outer --ddp step has set in this environment, if there is
 * one, which its DDP_SET tells.
 */
void ddp_outer_remove(void);

/*
 * fill.c: what is filled in for what the user left open.
 */
void ddp_fill_init(void);	/* before srun writes its own choice down */
void ddp_fill_restore(void);	/* and take that back */

/* Fill in what is open for this component; whether there was any. */
bool ddp_fill_component(uint32_t component);

/* The MPI type is a pmix; the site may name a version, such as pmix_v4. */
bool ddp_fill_has_pmix(void);

/* In sbatch and salloc: refuse or warn where CPUs are too few. */
void ddp_fill_check(void);

/* explain.c: print what was chosen for the job, and why, before it runs. */
void ddp_explain(spank_t spank, bool heterogeneous);

/*
 * cli.c: the options of srun, sbatch or salloc, read through their own
 * accessors; the plugin's only use of Slurm beyond spank.h.
 */

/* Whether this Slurm has the accessors. */
bool ddp_cli_available(void);

/* Whether an option was given; of --cpu-bind this is all that is told. */
bool ddp_cli_isset(const char *option);

/* An option's value, borrowed for ever; NULL where it was not given. */
const char *ddp_cli_get(const char *option);

/* The same, or Slurm's own value where it was not given. */
const char *ddp_cli_get_default(const char *option);

/* Whether Slurm has an MPI plugin of this name, such as "pmix". */
bool ddp_cli_has_mpi(const char *type);

/*
 * rerun.c: run srun again with the same arguments and more environment, with
 * what the first reading of its command line printed held back.
 */

/* Components of this command that earlier runs have dealt with. */
uint32_t ddp_rerun_done(void);

/* Whether an earlier run of this very command has seen --ddp. */
bool ddp_rerun_on(void);

void ddp_rerun_init(void);	/* read the mark; begin to hold output back */
void ddp_rerun_release(void);	/* print what was held back, hold no more */

/* A component's options are read; release once it is the last, it seems. */
void ddp_rerun_component_read(uint32_t component);

/* Add an input variable of srun's for the next run; tasks do not see it. */
void ddp_rerun_add(const char *name, const char *value);

/* Whether a variable is one that was added or hidden. */
bool ddp_rerun_added(const char *name);

/* Let the tasks not see a variable. */
void ddp_rerun_hide(const char *name);

/* Run srun again; refuses if that fails. Does not return. */
void ddp_rerun_exec(uint32_t done) __attribute__((noreturn));

/*
 * The variable that names what tasks shall not see. It begins with SLURM, and
 * so survives --export=NONE as what it names does.
 */
#define DDP_RERUN_ADDED "SLURM_DDP_ADDED"

/*
 * srun sets it to 1 where the user has said --cpu-bind: Slurm's own variables
 * for it are the same where nobody has.
 */
#define DDP_CPU_BIND "SLURM_DDP_CPU_BIND"

/* Arguments of this process, NULL-terminated; NULL on error. */
char **ddp_rerun_argv(void);
void ddp_rerun_argv_free(char **argv);

/*
 * ask.c: GPUs on each node of a job, from scontrol. -1 if it does not answer
 * or if the nodes differ.
 */
int ddp_ask_gpus(const char *job_id, uint32_t *gpus, struct ddp_error *error);

/* What scontrol says of a step, the caller's to free; NULL: nothing. */
char *ddp_ask_step(uint32_t job_id, uint32_t step_id);

/* The value of a word "NAME=value" in it (NULL: none), not terminated. */
const char *ddp_ask_word(const char *text, const char *name, int *length);

/* stepd.c: in slurmstepd itself, as root, before it forks the tasks. */
void ddp_stepd_post_opt(spank_t spank);

/* stepd.c: in the task's own process, as the user; once. */
void ddp_stepd_task_init(spank_t spank);

/*
 * stepd.c: in slurmstepd itself, as root, when a task has ended. For the first
 * task of the node that failed it sleeps for 0.2 s.
 */
void ddp_stepd_task_exit(spank_t spank);

/*
 * A value that tells a program that the node on which it runs lacks this
 * plugin. srun puts it into the environment, task_init replaces it.
 */
#define DDP_POISON "slurm-ddp-plugin-missing-on-this-node"

/* Whether a command is a helper that an MPI launcher starts by srun. */
bool ddp_is_launcher_helper(const char *command);

#endif
