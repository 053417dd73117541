/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The text forms of placements: JSON and variables for programs, a record, a
 * line that carries one rank's row from the plugin to its task and from rank to
 * rank, and a table for people.
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
#include "util/text.h"

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

/* ---- table.c */

/*
 * Rows of ranks as a table for people, for a terminal of 80 columns. A rank
 * with several GPUs has a line for each. Under the table "MODEL all: ..." says
 * of what model all GPUs are; they have a column where models differ. Each
 * reason is said once: "WHY all: ..." for all ranks, and "WHY a: ..." for those
 * that have an a in the column WHY.
 *
 * The facts about all rows that the table needs before the first is printed.
 * Begin with zeros, or with colour set alone; ddp_table_clear frees it.
 */
struct ddp_table {
	bool colour;		/* for a terminal: the header in bold */
	bool failed;		/* memory was short */
	bool models_differ;
	const char *model;	/* of the first GPU; NULL: there is none yet */
	size_t widths[9];	/* of all columns but the last */
	uint32_t row_count;	/* looked at: of rows alike, not each */
	uint32_t reason_count;
	struct ddp_reason *reasons;
};

/*
 * Print the table in pieces, for more rows than need be in memory at once.
 * First make the table fit all of them. Then print them in the order given, the
 * first with the line of column names, and what stands under them at the end.
 * The rows' reasons and models must stay until then. Texts are the caller's to
 * free; NULL if memory is short. Strings are made printable, as rows may come
 * from an environment.
 */
void ddp_table_fit(struct ddp_table *table, const struct ddp_row *rows,
		   size_t count);
char *ddp_table_lines(const struct ddp_table *table,
		      const struct ddp_row *rows, size_t count, bool header);
char *ddp_table_end(const struct ddp_table *table);
void ddp_table_clear(struct ddp_table *table);

/* The same in one piece. */
char *ddp_table_format(const struct ddp_row *rows, size_t count, bool colour);

/* ---- ends that are alike, for report.c as well */

/*
 * Rows that are copies of one, as those of many nodes alike are, end alike: the
 * end is formatted once, and then copied within the text.
 */
enum { DDP_TAILS = 16 };

/* Begin with { { { NULL, 0, 0 } } }. */
struct ddp_tails {
	struct {
		const char *storage;	/* the rows'; NULL: none yet */
		size_t at, length;	/* of the end in the text */
	} of[DDP_TAILS];		/* by local rank */
};

/* Add the row's end once more, if the text has it already; true if it has. */
bool ddp_tails_repeat(const struct ddp_tails *tails, const struct ddp_row *row,
		      struct ddp_text *out);

/* The row's end is what the text has from at on. */
void ddp_tails_keep(struct ddp_tails *tails, const struct ddp_row *row,
		    const struct ddp_text *out, size_t at);

#endif
