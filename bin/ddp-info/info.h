/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The parts of ddp-info; start with main.c. nodes.c places ranks on nodes that
 * the options describe. compare.c compares what a task
 * of a step got with what was planned for it. gather.c prints one table of a
 * whole step, and variables.c one of all variables. doctor.h begins the part
 * that examines an installation. The answers come from lib/place, and the text
 * of a row too. Each function returns 0, or -1 with error set; what they print
 * is written at the end.
 */
#ifndef DDP_INFO_INFO_H
#define DDP_INFO_INFO_H

#include <stdbool.h>
#include <stdint.h>

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
	const char *nodes, *tasks, *topology, *draw;
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

/* The table of the variables that each task gets. */
void variables_print(void);

/* Print what --ddp would do on nodes as the options describe them. */
int nodes_print(const struct options *options, struct ddp_error *error);

/*
 * Print what this task got, beside what was planned for it. *differs becomes
 * true if they are not the same.
 */
int compare_print(bool *differs, struct ddp_error *error);

/*
 * The row that the plugin handed to this task, for the caller to clear. Returns
 * 1 if there is none.
 */
int compare_read_row(struct ddp_row *row, struct ddp_error *error);

/*
 * Rank 0 prints the table of all ranks' rows. Every rank of the step must call
 * it.
 */
int gather_print(const struct ddp_row *row, struct ddp_error *error);

#endif
