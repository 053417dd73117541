/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The parts of ddp-info; start with main.c, which also compares what a task
 * of a step got with what was planned for it. nodes.c places ranks on nodes
 * that the options describe. gather.c prints one table of a whole step.
 * --doctor examines an installation: doctor.c asks Slurm and prints, and starts
 * a task on each node of the job, which prints the facts of its node (facts.c;
 * plugstack.c of plugstack.conf) and whether it meets the others (gather.c).
 * What the facts mean is decided in check*.c.
 *
 * Each function that returns int returns 0, or -1 with error set; what they
 * print is written at the end.
 */
#ifndef DDP_INFO_INFO_H
#define DDP_INFO_INFO_H

#include <stdbool.h>
#include <stdint.h>

#include "check.h"
#include "place/placement.h"
#include "place/report.h"
#include "tool/option.h"
#include "util/error.h"

enum format { FORMAT_TABLE, FORMAT_JSON, FORMAT_ENV };

/* Texts are borrowed from argv; NULL: not given. */
struct options {
	enum tool_help help;
	bool version, variables, gather, doctor;
	bool describes;			/* nodes, by any option */
	const char *nodes, *tasks, *topology, *network, *draw;
	uint64_t gpus;			/* DDP_GPU_NONE: all that there are */
	struct tool_list masks, visible;
	enum ddp_gpus_policy gpus_policy;
	enum ddp_cpus_policy cpus_policy;
	bool cpus_bound;
	enum format format;
};

extern const struct tool_options info_options;
int options_parse(struct options *options, int argc, char **argv,
		  struct ddp_error *error);

/* Print what --ddp would do on nodes as the options describe them. */
int nodes_print(const struct options *options, struct ddp_error *error);

/*
 * Rank 0 prints the table of all ranks' rows. Every rank of the step must call
 * it.
 */
int gather_print(const struct ddp_row *row, struct ddp_error *error);

/* Examine; *wrong: whether anything is. */
int doctor_print(bool *wrong, struct ddp_error *error);

/* ---- tasks that doctor starts */

/*
 * The variable that starts one: lines "NAME = value" as of scontrol show
 * config, with those settings that a node needs; and Doctor, what to do, and
 * Host, where doctor runs.
 */
#define DOCTOR_VARIABLE "DDP_DOCTOR"

/* A task's lines begin with this and the name of its node. */
#define DOCTOR_PREFIX "ddp-doctor "

/* Do what the variable says. */
int doctor_task(const char *config, struct ddp_error *error);

/* Facts of this machine, by the lines of config. */
void doctor_facts(struct ddp_text *text, const char *config, bool is_node);
void doctor_stack(struct ddp_text *text, const char *config, bool is_node);

/* Print the line of one fact of this node, and write it out. */
void doctor_print_fact(const char *format, ...)
	__attribute__((format(printf, 1, 2)));

/* Meet the other ranks of the step, and print facts of that. */
void doctor_meet(void);

/* Seconds of the date. */
double doctor_now(void);

#endif
