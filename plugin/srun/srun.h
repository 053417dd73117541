/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The plugin's work in srun, sbatch and salloc, as the user. Read srun.c first:
 * it has the order. typed_options.c and cli.c read what the user gave. check.c
 * refuses, find_launcher.c looks for torchrun and the like in the command,
 * defaults.c fills in what the user left open, order.c puts the ranks along the
 * network, preflight.c checks the nodes, and supervise.c starts the supervisor.
 * rerun.c runs srun again with all that, and step.c says what was chosen.
 */
#ifndef DDP_SRUN_SRUN_H
#define DDP_SRUN_SRUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <slurm/spank.h>

#include "request/request.h"
#include "util/text.h"
#include "verdict/restart.h"

/* ---- what dispatch.c calls */

/* Called before srun, sbatch or salloc reads its variables and command line. */
void ddp_srun_init(void);
void ddp_allocator_init(void);

/* Called when it has read them; in srun once for each component of the step. */
void ddp_srun_post_opt(void);
void ddp_allocator_post_opt(void);

/* step.c. Called once, when the step exists and nothing runs yet. */
void ddp_srun_launch(spank_t spank);

void ddp_srun_exit(void);

/* ---- typed_options.c */

/*
 * Reads what the user asks for in this step or job, from the options of srun,
 * sbatch or salloc. Texts are borrowed for ever.
 */
void ddp_asked_read(struct ddp_request *request);

/*
 * The same for a command that is a launcher: the job's number of tasks, which
 * Slurm repeats for each of its steps, says nothing of this one.
 */
void ddp_asked_read_launcher(struct ddp_request *request, const char *launcher);

/* Returns whether this srun runs in a task of a step of the user's. */
bool ddp_asked_in_step(void);

/* --gpus, if it was given for this step; NULL if the job's is repeated. */
const char *ddp_asked_step_gpus(void);

/* ---- check.c: each ends the program with a sentence where it fails */

/*
 * Check the options, in srun, sbatch and salloc. Returns whether --ddp is on;
 * --ddp=help prints the options, and ends the program.
 */
bool ddp_check_options(void);

/*
 * Finds the partition of a component with --ddp, so that the site's defaults
 * for it hold. Refuses what the site does not allow. srun, sbatch and salloc
 * call this. It is decided here, as the user, and so it is advice: who wants to
 * can get around it.
 */
void ddp_policy_check(uint32_t component);

/*
 * The job runs, and so its partition is certain: the defaults for it hold from
 * now on. Where Slurm leaves it open to the tasks, they are told.
 */
void ddp_policy_launch(uint32_t job_id, bool heterogeneous);

/*
 * Leaves out what the site wants of every step, where this step has no use for it
 * or its options contradict it. Who has typed it gets a refusal there.
 */
void ddp_check_defaults(void);

/*
 * Refuses a step without a number of tasks, such as -n. Nothing can be filled
 * in where srun hides its options.
 */
void ddp_check_tasks(void);

/*
 * Say what a step waits for that is started in a task of another, and that the
 * folder around that of --ddp-logs is missing.
 */
void ddp_check_step(void);

/* Returns true if pyxis, or what Alps has of it, puts the step into containers. */
bool ddp_check_is_contained(void);

/* Returns true if an argument of srun itself begins with this. */
bool ddp_check_has_argument(const char *begin);

/*
 * Refuses options that --ddp=dry-run cannot be used with, and an MPI type that
 * is no pmix. Sets DDP_TELL_COMMAND for the tasks.
 */
void ddp_check_dry_run(void);

/*
 * Warn where a signal before the job's end goes to others than the ranks. In
 * srun when the component's command is known.
 */
void ddp_check_signals(void);

/* Checks in sbatch and salloc that the request has CPUs enough. */
void ddp_check_cpus(void);

/* ---- find_launcher.c */

/*
 * Look at the command of a component: ddp_srun.launcher is then right for it,
 * and the tasks are told. Refuses a launcher whose arguments cannot work.
 */
void ddp_launch_read(uint32_t component);

/*
 * Says in sbatch that the job's script calls a launcher or python without srun. That
 * then runs on one of several nodes. Says nothing where it is not certain.
 */
void ddp_launch_check_script(void);

/* ---- defaults.c */

/*
 * Undoes srun's own choice of an MPI type, which it writes down once it has
 * read its command line.
 */
void ddp_mpi_restore(void);

/* Returns true if the MPI type is a pmix; a site may name a version: pmix_v4. */
bool ddp_mpi_is_pmix(void);

/*
 * Fill in, for the next run of srun, what the user left open in this component
 * of the step: better defaults than Slurm's. Returns whether there was any;
 * refuses where it cannot be known. Needs ddp_cli_available.
 */
bool ddp_fill_component(uint32_t component);

/* ---- order.c */

/*
 * Adds the arguments by which the ranks follow the network, for
 * --ddp-order=network. The step's nodes and tasks must be known. Returns true if it
 * did, and srun must run again. Says why where it cannot.
 */
bool ddp_order_nodes(void);

/*
 * Asks Slurm for the cluster's switches or blocks. The caller destroys them. NULL:
 * Slurm tells nothing that can be used.
 */
struct ddp_network *ddp_order_read(struct ddp_error *error);

/* ---- supervise.c */

/* End srun where --ddp-restarts and --ddp-spares cannot work. */
void ddp_again_check(void);

/*
 * Chooses the step's nodes and the spares, in zeros. Returns false if none are
 * kept back, or if srun knows the step's nodes already.
 */
bool ddp_again_choose(struct ddp_restart *restart);

/*
 * Arguments for a step on the nodes and on the spares, with as many tasks and
 * GPUs on each; at most DDP_AGAIN_WIDE, the caller's. Returns how many.
 */
enum { DDP_AGAIN_WIDE = 5 };
size_t ddp_again_widen(const struct ddp_restart *restart,
		       char *arguments[DDP_AGAIN_WIDE]);

/*
 * Adds the arguments that name the step's nodes for srun's next run, without
 * the unfit ones (a list with commas; "": all are fit). Frees both.
 */
void ddp_again_place(struct ddp_restart *restart, struct ddp_text *unfit);

/*
 * Returns true if the supervisor ends a step that has failed, and not Slurm,
 * where the user has left that open. The supervisor gives the other ranks time,
 * to end or to save.
 */
bool ddp_supervise_alone(void);

/*
 * All components are read: where a supervisor is wanted and there is none yet,
 * fork. Returns whether this is the child, which must run srun again. The
 * parent does not return.
 */
bool ddp_supervise(void);

/* ---- preflight.c */

/*
 * --ddp-check: run the step with ddp-bench --preflight as its command first,
 * and print what that finds. Returns if it finds nothing; otherwise srun exits
 * with 1. Call it before anything is filled in.
 *
 * restart (NULL: no nodes are kept back): the spares are checked, too. Those
 * that are not fit are left out of it, and added to the list unfit, with commas
 * between; all others are checked again. srun exits where they are too few.
 */
void ddp_preflight(struct ddp_restart *restart, struct ddp_text *unfit);

#endif
