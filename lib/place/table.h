/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rows of ranks as a table for people, for a terminal of 80 columns. A rank with
 * several GPUs has a line for each. Under the table "MODEL all: ..." says of what
 * model all GPUs are; they have a column where models differ. Each reason is said
 * once: "WHY all: ..." for all ranks, and "WHY a: ..." for those that have an a in
 * the column WHY.
 */
#ifndef DDP_PLACE_TABLE_H
#define DDP_PLACE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "place/report.h"

/*
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

#endif
