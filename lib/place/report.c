/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows of ranks as text for programs: JSON, and variables. */
#include "place/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "place/tails.h"
#include "util/text.h"

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

static void add_row_json(struct ddp_text *out, struct ddp_tails *tails,
			 const struct ddp_row *row)
{
	size_t tail;
	uint32_t i;

	ddp_text_add_fixed(out, "{\"rank\":");
	ddp_text_add_number(out, row->rank);
	add_member(out, ",\"node\":", row->node);
	ddp_text_add_fixed(out, ",\"node_rank\":");
	ddp_text_add_number(out, row->node_rank);
	if (ddp_tails_repeat(tails, row, out))
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
	ddp_tails_keep(tails, row, out, tail);
}

char *ddp_report_json(const struct ddp_row *rows, size_t count, bool first)
{
	struct ddp_tails tails = { { { NULL, 0, 0 } } };
	struct ddp_text out = { 0 };
	size_t i;

	if (first)
		ddp_text_add(&out, "{\"version\":1,\"ranks\":[");
	for (i = 0; i < count; i++) {
		ddp_text_add_fixed(&out, first && i == 0 ? "\n" : ",\n");
		add_row_json(&out, &tails, &rows[i]);
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
