/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Running srun again with the same arguments and more environment.
 *
 * srun reads its input variables before a plugin can know what the command
 * line left open. So the plugin sets variables and runs srun once more: what
 * the user typed still wins over them. A heterogeneous step needs one more run
 * for each component, because they are read one after the other.
 */
#ifndef DDP_SRUN_RERUN_H
#define DDP_SRUN_RERUN_H

#include <stdbool.h>
#include <stdint.h>

/* Read what an earlier run has left; begin to hold output back. */
void ddp_rerun_init(void);

/* Components of this command that earlier runs have dealt with. */
uint32_t ddp_rerun_done(void);

/* Returns true if an earlier run of this very command has seen --ddp. */
bool ddp_rerun_on(void);

/* A component's options are read; release the output if it is the last. */
void ddp_rerun_component_read(uint32_t component);

/* Add an input variable of srun's for the next run; tasks do not see it. */
void ddp_rerun_add(const char *name, const char *value);

/* Add an argument for the next run, which holds over those before it. */
void ddp_rerun_insert(const char *argument);

/* Hide a variable from the tasks. */
void ddp_rerun_hide(const char *name);

/* Returns true if a variable is one that was added or hidden. */
bool ddp_rerun_added(const char *name);

/*
 * Run srun again, which then begins with the component of this number; refuses
 * if that fails. Does not return.
 */
void ddp_rerun_exec(uint32_t component) __attribute__((noreturn));

/* The same, with other arguments. */
void ddp_rerun_exec_arguments(uint32_t component, char **argv)
	__attribute__((noreturn));

#endif
