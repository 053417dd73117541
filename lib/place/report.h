/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The text forms of placements: JSON and variables for programs, and a record,
 * a line that carries one rank's row from the plugin to its task and from rank
 * to rank. For people, table.h makes a table.
 */
#ifndef DDP_PLACE_REPORT_H
#define DDP_PLACE_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "layout/layout.h"
#include "layout/vars.h"
#include "place/placement.h"
#include "util/error.h"

/* The variable in which the plugin hands a task its own record. */
#define DDP_PLACEMENT "DDP_PLACEMENT"

struct ddp_row_gpu {
	uint32_t number;		/* on the node; DDP_GPU_NONE */
	const char *bus_id, *model;	/* "" where there is no PCI device */
};

/*
 * The facts that are printed about a rank. Strings are "" where there is
 * nothing to say. A copy with another rank, node or node rank may be used as
 * long as the original.
 */
struct ddp_row {
	uint32_t rank, node_rank, local_rank;
	const char *node;
	uint32_t device;		/* that its program shall use, as its
					 * runtime counts; DDP_GPU_NONE */
	const char *visible;		/* "VARIABLE=value" that orders what it
					 * sees */
	const char *cpus, *numa;	/* lists, of the CPUs' NUMA nodes */
	const char *interface;
	uint32_t gpu_count;		/* its own */
	struct ddp_row_gpu *gpus;
	uint32_t why_count;
	const char *why[DDP_WHY_MAX];
	char *storage;
};

/*
 * Fill a row, its strings made printable and cut to DDP_HOSTNAME_MAX bytes.
 * gpus is what the placement's indexes count, view what the task itself sees
 * of it. interface NULL: the one nearest to the rank's first GPU, as a program
 * may use it; the plugin gives the one that it sets. Returns 0, or -1 if the
 * placement shows what view lacks or if memory is short; the caller clears it.
 */
int ddp_row_make(struct ddp_row *row, const struct ddp_rank *rank,
		 const struct ddp_machine *machine,
		 const struct ddp_view *gpus, const struct ddp_view *view,
		 const struct ddp_placement *placement, const char *interface,
		 struct ddp_error *error);
void ddp_row_clear(struct ddp_row *row);

/*
 * The record, without a newline, the caller's to free; NULL if memory is
 * short. Read back it gives an equal row, of whose texts what is not printable
 * has become '?' (see ddp_text_quote).
 */
char *ddp_row_format(const struct ddp_row *row);
int ddp_row_parse(const char *record, struct ddp_row *row,
		  struct ddp_error *error);

/*
 * A report as text, the caller's to free; NULL if memory is short. Rows are
 * printed in the order given. Strings are made printable, as rows may come from
 * an environment.
 *
 * JSON in pieces, for more rows than need be in memory at once; first: the rows
 * are the first. master is the address; port 0: it is not known yet, null.
 */
char *ddp_report_json(const struct ddp_row *rows, size_t count, bool first);
char *ddp_report_json_end(const char *master, uint16_t port);

/* The variables of one rank, a line each, headed by "# rank R on NODE". */
char *ddp_report_env(const struct ddp_vars *vars);

#endif
