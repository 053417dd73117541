/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows of ranks as text: a table, JSON, and variables. */
#include "layout/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layout/text.h"

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

enum { TAILS = 16 };

/*
 * Rows that are copies of one, as those of many nodes alike are, end alike: the
 * end is formatted once.
 */
struct tail {
	const char *storage;	/* the rows'; NULL: none yet */
	size_t at, length;	/* of the end in the text */
};

static struct tail *find_tail(struct tail *tails, const struct ddp_row *row)
{
	return &tails[row->local_rank % TAILS];
}

/* Whether the end was there already, and then is there once more. */
static bool repeat_tail(struct ddp_text *out, struct tail *tails,
			const struct ddp_row *row)
{
	const struct tail *tail = find_tail(tails, row);

	if (!tail->storage || tail->storage != row->storage)
		return false;
	ddp_text_repeat(out, tail->at, tail->length);
	return true;
}

/* The row's end is what the text has from at on. */
static void keep_tail(const struct ddp_text *out, struct tail *tails,
		      const struct ddp_row *row, size_t at)
{
	*find_tail(tails, row) = (struct tail){ row->storage, at,
						out->length - at };
}

static void add_list(struct ddp_text *out, uint32_t i, const char *item)
{
	if (i > 0)
		ddp_text_add(out, ",");
	ddp_text_add_string(out, *item ? item : "-");
}

static void add_models(struct ddp_text *out, const struct ddp_row *row)
{
	bool same = row->gpu_count > 1;
	uint32_t i;

	for (i = 1; i < row->gpu_count; i++)
		same = same && strcmp(row->gpus[i].model,
				      row->gpus[0].model) == 0;
	for (i = 0; i < (same ? 1 : row->gpu_count); i++)
		add_list(out, i, row->gpus[i].model);
}

static void add_gpus(struct ddp_text *out, const struct ddp_row *row,
		     enum column column)
{
	char number[16];
	uint32_t i;

	if (column == COLUMN_MODEL) {
		add_models(out, row);
		return;
	}
	for (i = 0; i < row->gpu_count; i++) {
		number[0] = '\0';
		if (row->gpus[i].number != DDP_GPU_NONE)
			snprintf(number, sizeof(number), "%u",
				 row->gpus[i].number);
		add_list(out, i, column == COLUMN_GPU ? number :
			 row->gpus[i].bus_id);
	}
}

/* Add a cell, "-" if it would be empty; returns its width. */
static size_t add_cell(struct ddp_text *out, const struct ddp_row *row,
		       enum column column)
{
	size_t before = out->length;
	uint32_t i;

	switch (column) {
	case COLUMN_RANK: ddp_text_add_number(out, row->rank); break;
	case COLUMN_NODE: ddp_text_add_string(out, row->node); break;
	case COLUMN_LOCAL: ddp_text_add_number(out, row->local_rank); break;
	case COLUMN_NUMA: ddp_text_add_string(out, row->numa); break;
	case COLUMN_CPUS: ddp_text_add_string(out, row->cpus); break;
	case COLUMN_INTERFACE: ddp_text_add_string(out, row->interface); break;
	case COLUMN_WHY:
		for (i = 0; i < row->why_count; i++) {
			ddp_text_add(out, "%s", i > 0 ? "; " : "");
			ddp_text_add_string(out, row->why[i]);
		}
		break;
	default: add_gpus(out, row, column); break;
	}
	if (out->length == before)
		ddp_text_add(out, "-");
	return out->length - before;
}

void ddp_report_fit(struct ddp_widths *widths, const struct ddp_row *rows,
		    size_t count)
{
	struct tail tails[TAILS] = { { NULL, 0, 0 } };
	struct ddp_text cell = { 0 };
	enum column column;
	size_t i, width;

	for (column = 0; column < COLUMN_WHY; column++)
		if (widths->of[column] < strlen(names[column]))
			widths->of[column] = strlen(names[column]);
	for (i = 0; i < count; i++) {
		for (column = 0; column < COLUMN_WHY; column++) {
			cell.length = 0;
			if (column == COLUMN_LOCAL &&
			    repeat_tail(&cell, tails, &rows[i]))
				break;
			width = add_cell(&cell, &rows[i], column);
			if (width > widths->of[column])
				widths->of[column] = width;
		}
		cell.length = 0;
		keep_tail(&cell, tails, &rows[i], 0);
	}
	free(cell.data);
}

static void add_line(struct ddp_text *out, struct tail *tails,
		     const struct ddp_row *row,
		     const struct ddp_widths *widths)
{
	enum column column;
	size_t tail = 0;

	for (column = 0; column < COLUMN_WHY; column++) {
		if (column == COLUMN_LOCAL) {
			if (repeat_tail(out, tails, row))
				return;
			tail = out->length;
		}
		ddp_text_pad(out, widths->of[column] + 2 -
			     add_cell(out, row, column));
	}
	add_cell(out, row, COLUMN_WHY);
	ddp_text_add(out, "\n");
	keep_tail(out, tails, row, tail);
}

char *ddp_report_lines(const struct ddp_widths *widths,
		       const struct ddp_row *rows, size_t count, bool header)
{
	struct tail tails[TAILS] = { { NULL, 0, 0 } };
	struct ddp_text out = { 0 };
	enum column column;
	size_t i;

	for (column = 0; header && column < COLUMN_WHY; column++)
		ddp_text_add(&out, "%-*s  ", (int)widths->of[column],
			     names[column]);
	if (header)
		ddp_text_add(&out, "%s\n", names[COLUMN_WHY]);
	for (i = 0; i < count; i++)
		add_line(&out, tails, &rows[i], widths);
	return ddp_text_finish(&out);
}

char *ddp_report_table(const struct ddp_row *rows, size_t count, bool header)
{
	struct ddp_widths widths = { { 0 } };

	ddp_report_fit(&widths, rows, count);
	return ddp_report_lines(&widths, rows, count, header);
}

/* Add a member; name is what JSON has before the value. */
static void add_member(struct ddp_text *out, const char *name,
		       const char *value)
{
	ddp_text_add_fixed(out, name);
	ddp_text_add_json(out, value);
}

static void add_gpu_json(struct ddp_text *out, const struct ddp_row_gpu *gpu)
{
	if (gpu->number != DDP_GPU_NONE)
		ddp_text_add(out, "{\"index\":%u", gpu->number);
	else
		ddp_text_add(out, "{\"index\":null");
	add_member(out, ",\"bus_id\":", gpu->bus_id);
	add_member(out, ",\"model\":", gpu->model);
	ddp_text_add(out, "}");
}

static void add_row_json(struct ddp_text *out, struct tail *tails,
			 const struct ddp_row *row)
{
	size_t tail;
	uint32_t i;

	ddp_text_add_fixed(out, "{\"rank\":");
	ddp_text_add_number(out, row->rank);
	add_member(out, ",\"node\":", row->node);
	ddp_text_add_fixed(out, ",\"node_rank\":");
	ddp_text_add_number(out, row->node_rank);
	if (repeat_tail(out, tails, row))
		return;
	tail = out->length;
	ddp_text_add(out, ",\"local_rank\":%u,\"gpus\":[", row->local_rank);
	for (i = 0; i < row->gpu_count; i++) {
		ddp_text_add(out, "%s", i > 0 ? "," : "");
		add_gpu_json(out, &row->gpus[i]);
	}
	ddp_text_add(out, "]");
	add_member(out, ",\"cpus\":", row->cpus);
	add_member(out, ",\"numa\":", row->numa);
	add_member(out, ",\"interface\":", row->interface);
	ddp_text_add(out, ",\"why\":[");
	for (i = 0; i < row->why_count; i++) {
		ddp_text_add(out, "%s", i > 0 ? "," : "");
		ddp_text_add_json(out, row->why[i]);
	}
	ddp_text_add(out, "]}");
	keep_tail(out, tails, row, tail);
}

char *ddp_report_json(const struct ddp_row *rows, size_t count, bool first)
{
	struct tail tails[TAILS] = { { NULL, 0, 0 } };
	struct ddp_text out = { 0 };
	size_t i;

	if (first)
		ddp_text_add(&out, "{\"version\":1,\"ranks\":[");
	for (i = 0; i < count; i++) {
		ddp_text_add_fixed(&out, first && i == 0 ? "\n" : ",\n");
		add_row_json(&out, tails, &rows[i]);
	}
	return ddp_text_finish(&out);
}

char *ddp_report_json_end(const char *master, uint16_t port)
{
	struct ddp_text out = { 0 };

	ddp_text_add_fixed(&out, "],\n\"master\":{\"addr\":");
	ddp_text_add_json(&out, master);
	if (port > 0)
		ddp_text_add(&out, ",\"port\":%u}}\n", port);
	else
		ddp_text_add(&out, ",\"port\":null}}\n");
	return ddp_text_finish(&out);
}

char *ddp_report_env(const struct ddp_vars *vars)
{
	struct ddp_text out = { 0 };
	char buffer[DDP_VARS_BUFFER_SIZE];
	const struct ddp_var *var;
	const char *value;
	size_t i;

	ddp_text_add_fixed(&out, "# rank ");
	ddp_text_add_number(&out, vars->rank.rank);
	ddp_text_add_fixed(&out, " on ");
	ddp_text_add_string(&out, vars->rank.host);
	ddp_text_add_fixed(&out, "\n");
	for (i = 0; (var = ddp_vars_get(i)); i++) {
		value = ddp_vars_value(i, vars, buffer);
		if (!value)
			continue;
		ddp_text_add_fixed(&out, var->name);
		ddp_text_add_fixed(&out, "=");
		ddp_text_add_string(&out, value);
		ddp_text_add_fixed(&out, "\n");
	}
	return ddp_text_finish(&out);
}
