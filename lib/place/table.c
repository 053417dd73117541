/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows of ranks as a table, and what text has of rows that are alike. */
#include "place/report.h"

#include <stdlib.h>
#include <string.h>

/* ---- ends of rows that are alike, formatted once */

bool ddp_tails_repeat(const struct ddp_tails *tails, const struct ddp_row *row,
		      struct ddp_text *out)
{
	uint32_t i = row->local_rank % DDP_TAILS;

	if (!tails->of[i].storage || tails->of[i].storage != row->storage)
		return false;
	ddp_text_repeat(out, tails->of[i].at, tails->of[i].length);
	return true;
}

void ddp_tails_keep(struct ddp_tails *tails, const struct ddp_row *row,
		    const struct ddp_text *out, size_t at)
{
	uint32_t i = row->local_rank % DDP_TAILS;

	tails->of[i].storage = row->storage;
	tails->of[i].at = at;
	tails->of[i].length = out->length - at;
}

/* ---- the table */

enum column {
	COLUMN_RANK,
	COLUMN_NODE,
	COLUMN_LOCAL,
	COLUMN_GPU,
	COLUMN_BUS_ID,
	COLUMN_MODEL,
	COLUMN_NUMA,
	COLUMN_CPUS,
	COLUMN_INTERFACE,
	COLUMN_WHY
};

static const char *const names[] = {
	"RANK", "NODE", "LOCAL", "GPU", "BUS-ID", "MODEL", "NUMA", "CPUS",
	"INTERFACE", "WHY",
};

enum { GAP = 1 };			/* spaces between columns */

struct ddp_reason {
	const char *text;
	uint32_t row_count;		/* that have it */
	uint32_t last;			/* of these; rows count from 1 */
};

/* Returns true if all rows have this reason. */
static bool is_common(const struct ddp_table *table, uint32_t reason)
{
	return table->reasons[reason].row_count == table->row_count;
}

static bool is_shown(const struct ddp_table *table, enum column column)
{
	return column != COLUMN_MODEL || table->models_differ;
}

/* The reason with this text; reason_count if there is none. */
static uint32_t find_reason(const struct ddp_table *table, const char *text)
{
	uint32_t i;

	for (i = 0; i < table->reason_count; i++)
		if (strcmp(table->reasons[i].text, text) == 0)
			break;
	return i;
}

static void count_reason(struct ddp_table *table, const char *text)
{
	uint32_t i = find_reason(table, text);
	struct ddp_reason *reasons = table->reasons;

	if (i == table->reason_count) {
		reasons = realloc(reasons, (i + 1) * sizeof(*reasons));
		if (!reasons) {
			table->failed = true;
			return;
		}
		table->reasons = reasons;
		table->reason_count++;
		reasons[i] = (struct ddp_reason){ .text = text };
	}
	/* A row that others wrote may have one twice. */
	if (reasons[i].last == table->row_count)
		return;
	reasons[i].last = table->row_count;
	reasons[i].row_count++;
}

static void count_reasons(struct ddp_table *table, const struct ddp_row *row)
{
	uint32_t i;

	table->row_count++;
	for (i = 0; i < row->why_count && !table->failed; i++)
		count_reason(table, row->why[i]);
}

/* Add its letter: a to z, a1 to z1, ... of those that not all rows have. */
static void add_letter(struct ddp_text *out, const struct ddp_table *table,
		       uint32_t reason)
{
	uint32_t number = 0, i;

	for (i = 0; i < reason; i++)
		number += !is_common(table, i);
	ddp_text_add(out, "%c", (int)('a' + number % 26));
	if (number >= 26)
		ddp_text_add_number(out, number / 26);
}

static void add_letters(struct ddp_text *out, const struct ddp_table *table,
			const struct ddp_row *row)
{
	size_t before = out->length;
	uint32_t i, reason;

	for (i = 0; i < row->why_count; i++) {
		reason = find_reason(table, row->why[i]);
		if (reason == table->reason_count || is_common(table, reason))
			continue;
		if (out->length > before)
			ddp_text_add_fixed(out, ",");
		add_letter(out, table, reason);
	}
}

static bool has_letters(const struct ddp_table *table)
{
	uint32_t i;

	for (i = 0; i < table->reason_count; i++)
		if (!is_common(table, i))
			return true;
	return false;
}

static void add_gpu(struct ddp_text *out, const struct ddp_row_gpu *gpu,
		    enum column column)
{
	if (column == COLUMN_BUS_ID)
		ddp_text_add_string(out, gpu->bus_id);
	else if (column == COLUMN_MODEL)
		ddp_text_add_string(out, gpu->model);
	else if (gpu->number != DDP_GPU_NONE)
		ddp_text_add_number(out, gpu->number);
}

/*
 * Add a cell of a row's line for its k-th GPU, "-" if it would be empty;
 * returns its width.
 */
static size_t add_cell(struct ddp_text *out, const struct ddp_row *row,
		       enum column column, uint32_t k)
{
	size_t before = out->length;

	switch (column) {
	case COLUMN_RANK: ddp_text_add_number(out, row->rank); break;
	case COLUMN_NODE: ddp_text_add_string(out, row->node); break;
	case COLUMN_LOCAL: ddp_text_add_number(out, row->local_rank); break;
	case COLUMN_NUMA: ddp_text_add_string(out, row->numa); break;
	case COLUMN_CPUS: ddp_text_add_string(out, row->cpus); break;
	case COLUMN_INTERFACE: ddp_text_add_string(out, row->interface); break;
	default:
		if (k < row->gpu_count)
			add_gpu(out, &row->gpus[k], column);
		break;
	}
	if (out->length == before)
		ddp_text_add_fixed(out, "-");
	return out->length - before;
}

static void note_model(struct ddp_table *table, const char *model)
{
	if (!table->model)
		table->model = model;
	else if (strcmp(table->model, model) != 0)
		table->models_differ = true;
}

static uint32_t count_lines(const struct ddp_row *row)
{
	return row->gpu_count > 0 ? row->gpu_count : 1;
}

/* Make the columns fit a row; cell is room to work in. */
static void fit_row(struct ddp_table *table, const struct ddp_row *row,
		    struct ddp_text *cell)
{
	enum column column, end;
	uint32_t k;
	size_t width;

	for (k = 0; k < row->gpu_count; k++)
		note_model(table, row->gpus[k].model);
	for (k = 0; k < count_lines(row); k++) {
		column = k > 0 ? COLUMN_GPU : COLUMN_RANK;
		end = k > 0 ? COLUMN_NUMA : COLUMN_WHY;
		for (; column < end; column++) {
			cell->length = 0;
			width = add_cell(cell, row, column, k);
			if (width > table->widths[column])
				table->widths[column] = width;
		}
	}
}

/* Copies of one row differ only in rank and node. */
static void fit_copy(struct ddp_table *table, const struct ddp_row *row)
{
	char digits[10];
	size_t rank = ddp_text_digits(row->rank, digits);
	size_t node = strlen(row->node);

	if (rank > table->widths[COLUMN_RANK])
		table->widths[COLUMN_RANK] = rank;
	if (node > table->widths[COLUMN_NODE])
		table->widths[COLUMN_NODE] = node;
}

void ddp_table_fit(struct ddp_table *table, const struct ddp_row *rows,
		   size_t count)
{
	struct ddp_tails tails = { { { NULL, 0, 0 } } };
	struct ddp_text cell = { 0 };
	enum column column;
	size_t i;

	for (column = 0; column < COLUMN_WHY; column++)
		if (table->widths[column] < strlen(names[column]))
			table->widths[column] = strlen(names[column]);
	for (i = 0; i < count; i++) {
		if (ddp_tails_repeat(&tails, &rows[i], &cell)) {
			fit_copy(table, &rows[i]);
			continue;
		}
		fit_row(table, &rows[i], &cell);
		count_reasons(table, &rows[i]);
		cell.length = 0;
		ddp_tails_keep(&tails, &rows[i], &cell, 0);
	}
	table->failed = table->failed || cell.failed;
	free(cell.data);
}

/* Add the cells of a line from column on to the one before end. */
static void add_cells(struct ddp_text *out, const struct ddp_table *table,
		      const struct ddp_row *row, enum column column,
		      enum column end, uint32_t k)
{
	for (; column < end; column++)
		if (is_shown(table, column))
			ddp_text_pad(out, table->widths[column] + GAP -
				     add_cell(out, row, column, k));
}

/* End a line: without the spaces behind its last cell, with a text there. */
static void end_line(struct ddp_text *out, const char *after)
{
	while (out->length > 0 && out->data[out->length - 1] == ' ')
		out->length--;
	ddp_text_add_fixed(out, after);
	ddp_text_add_fixed(out, "\n");
}

/* The lines of the GPUs but the first. */
static void add_more_gpus(struct ddp_text *out, const struct ddp_table *table,
			  const struct ddp_row *row)
{
	enum column column;
	size_t before = 0;
	uint32_t k;

	for (column = 0; column < COLUMN_GPU; column++)
		before += table->widths[column] + GAP;
	for (k = 1; k < row->gpu_count; k++) {
		ddp_text_pad(out, before);
		add_cells(out, table, row, COLUMN_GPU, COLUMN_NUMA, k);
		end_line(out, "");
	}
}

static void add_row(struct ddp_text *out, const struct ddp_table *table,
		    struct ddp_tails *tails, const struct ddp_row *row)
{
	size_t tail;

	add_cells(out, table, row, COLUMN_RANK, COLUMN_LOCAL, 0);
	if (ddp_tails_repeat(tails, row, out))
		return;
	tail = out->length;
	add_cells(out, table, row, COLUMN_LOCAL, COLUMN_WHY, 0);
	add_letters(out, table, row);
	end_line(out, "");
	add_more_gpus(out, table, row);
	ddp_tails_keep(tails, row, out, tail);
}

static void add_header(struct ddp_text *out, const struct ddp_table *table)
{
	enum column column;

	if (table->colour)
		ddp_text_add_fixed(out, DDP_TEXT_BOLD);
	for (column = 0; column < COLUMN_WHY; column++)
		if (is_shown(table, column))
			ddp_text_add(out, "%-*s",
				     (int)table->widths[column] + GAP,
				     names[column]);
	if (has_letters(table))
		ddp_text_add_fixed(out, names[COLUMN_WHY]);
	end_line(out, table->colour ? DDP_TEXT_PLAIN : "");
}

char *ddp_table_lines(const struct ddp_table *table,
		      const struct ddp_row *rows, size_t count, bool header)
{
	struct ddp_tails tails = { { { NULL, 0, 0 } } };
	struct ddp_text out = { .failed = table->failed };
	size_t i;

	if (header)
		add_header(&out, table);
	for (i = 0; i < count; i++)
		add_row(&out, table, &tails, &rows[i]);
	return ddp_text_finish(&out);
}

static void add_model(struct ddp_text *out, const struct ddp_table *table)
{
	if (table->models_differ || !table->model || !*table->model)
		return;
	ddp_text_add_fixed(out, "MODEL all: ");
	ddp_text_add_string(out, table->model);
	ddp_text_add_fixed(out, "\n");
}

static void add_reasons(struct ddp_text *out, const struct ddp_table *table,
			bool common)
{
	uint32_t i;

	for (i = 0; i < table->reason_count; i++) {
		if (is_common(table, i) != common)
			continue;
		ddp_text_add_fixed(out, "WHY ");
		if (common)
			ddp_text_add_fixed(out, "all");
		else
			add_letter(out, table, i);
		ddp_text_add_fixed(out, ": ");
		ddp_text_add_string(out, table->reasons[i].text);
		ddp_text_add_fixed(out, "\n");
	}
}

char *ddp_table_end(const struct ddp_table *table)
{
	struct ddp_text out = { .failed = table->failed };

	add_model(&out, table);
	add_reasons(&out, table, true);
	add_reasons(&out, table, false);
	return ddp_text_finish(&out);
}

void ddp_table_clear(struct ddp_table *table)
{
	free(table->reasons);
	*table = (struct ddp_table){ .colour = table->colour };
}

char *ddp_table_format(const struct ddp_row *rows, size_t count, bool colour)
{
	struct ddp_table table = { .colour = colour };
	struct ddp_text out = { 0 };
	char *lines, *end;

	ddp_table_fit(&table, rows, count);
	lines = ddp_table_lines(&table, rows, count, true);
	end = ddp_table_end(&table);
	if (lines && end) {
		ddp_text_add_fixed(&out, lines);
		ddp_text_add_fixed(&out, end);
	}
	out.failed = out.failed || !lines || !end;
	free(lines);
	free(end);
	ddp_table_clear(&table);
	return ddp_text_finish(&out);
}
