/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The parts of ddp-info. Each returns 0, or -1 with error set; what they
 * print goes to stdout in one piece.
 */
#ifndef DDP_INFO_INFO_H
#define DDP_INFO_INFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "layout/error.h"
#include "layout/placement.h"
#include "layout/report.h"
#include "tool/option.h"

enum format {
	FORMAT_TABLE,
	FORMAT_JSON,
	FORMAT_ENV
};

/* Texts are borrowed from argv; NULL: not given. */
struct options {
	bool help, version, gather;
	bool describes;			/* nodes, by any option */
	const char *nodes, *tasks, *topology, *draw;
	uint64_t gpus;			/* DDP_GPU_NONE: all that there are */
	struct tool_list masks, visible;
	enum ddp_gpus_policy gpus_policy;
	enum ddp_cpus_policy cpus_policy;
	bool cpus_bound;
	enum format format;
};

/* info_options.c */
extern const struct tool_options info_options;
int options_parse(struct options *options, int argc, char **argv,
		  struct ddp_error *error);

/* plan.c: what --ddp would do on nodes as the options describe them. */
int plan_print(const struct options *options, struct ddp_error *error);

/*
 * step.c: what this task got beside what was planned for it. differs: whether
 * that is not the same.
 */
int step_print(bool *differs, struct ddp_error *error);

/* The row that the plugin planned for this task; 1: it did not say. */
int step_plan(struct ddp_row *row, struct ddp_error *error);

/*
 * gather.c: rank 0 prints the table of all ranks' rows. Every rank of the step
 * must call it.
 */
int gather_print(const struct ddp_row *row, struct ddp_error *error);

/*
 * main.c: print and free; fails for NULL, which is a lack of memory. Whether it
 * could be written is seen at the end.
 */
int text_print(char *text, struct ddp_error *error);

#endif
