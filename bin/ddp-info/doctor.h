/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The part of ddp-info --doctor that works with the machine. doctor.c asks
 * Slurm here and prints. steps.c starts a task on each node of the job. task.c
 * is such a task. It prints the facts of its node (facts.c; stack.c of
 * plugstack.conf, and arguments.c of what it tells the plugin) and whether it
 * meets the others (meet.c). What the facts mean is decided in check*.c.
 */
#ifndef DDP_INFO_DOCTOR_H
#define DDP_INFO_DOCTOR_H

#include "check.h"
#include "util/error.h"

/*
 * The variable that starts a task of doctor's: lines "NAME = value" as of
 * scontrol show config, with those settings that a node needs; and Doctor, what
 * to do, and Host, where doctor runs.
 */
#define DOCTOR_VARIABLE "DDP_DOCTOR"

/* A task's lines begin with this and the name of its node. */
#define DOCTOR_PREFIX "ddp-doctor "

/* Examine; *wrong: whether anything is. */
int doctor_print(bool *wrong, struct ddp_error *error);

/* ---- programs (program.c) */

struct doctor_program {
	char *out, *err;	/* all that it printed; NULL: nothing */
	bool failed;		/* it could not run, or its status is not 0 */
	bool late;		/* it was ended after the time */
};

/* A reader gets the lines of stdout as they come, at times of the date. */
typedef void doctor_reader(void *context, const char *line, double when);

/* Run a program, for so long at most. reader may be NULL. */
void doctor_program_run(struct doctor_program *program,
			const char *const argv[], int timeout_ms,
			doctor_reader *reader, void *context);
void doctor_program_clear(struct doctor_program *program);

/* The line of stderr that tells most, into text[size]. */
void doctor_program_why(const struct doctor_program *program, char *text,
			size_t size);

/* Seconds of the date. */
double doctor_now(void);

/* ---- the nodes of a job */

struct doctor_nodes {
	struct check_node *nodes;
	struct ddp_text *facts;		/* of each */
	size_t count;
	struct ddp_hostlist *hosts;
	char problem[512];	/* of nodes that do not answer */
};

/*
 * Ask the nodes of this job; with_ddp: srun here knows --ddp. here is the name
 * of this machine. Returns 0, or -1 with error set. Clear it in either case.
 */
int doctor_nodes_ask(struct doctor_nodes *nodes, const char *config,
		     const char *here, bool with_ddp, struct ddp_error *error);
void doctor_nodes_clear(struct doctor_nodes *nodes);

/* ---- a node */

/* Facts of this machine, by the lines of config. */
void doctor_facts(struct ddp_text *text, const char *config, bool is_node);
void doctor_stack(struct ddp_text *text, const char *config, bool is_node);

/* The same of the plugin's arguments in plugstack.conf; once for them all. */
void doctor_arguments(struct ddp_text *text, int count, char **arguments,
		      bool is_node);

/* Print the line of one fact of this node, and write it out. */
void doctor_print_fact(const char *format, ...)
	__attribute__((format(printf, 1, 2)));

/* Meet the other ranks of the step, and print facts of that. */
void doctor_meet(void);

/* A task of doctor's: do what the variable says. */
int doctor_task(const char *config, struct ddp_error *error);

#endif
