/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank's row, made from its placement or read from its record, and rows as
 * text for programs: JSON, and variables. A record is fields with a tab after
 * each; lists have their length in front.
 */
#include "place/report.h"

#include <stdlib.h>
#include <string.h>

#include "util/scan.h"

/* ---- rows */

enum { FIELD_MAX = DDP_HOSTNAME_MAX };	/* bytes of a string, without NUL */

/*
 * Add a string and a tab to what becomes the row's storage. A string that
 * others wrote must have no tab in it, and must not be long.
 */
static void add_field(struct ddp_text *out, const char *string)
{
	ddp_text_add_quoted(out, "%.*s", FIELD_MAX, string);
	ddp_text_add(out, "\t");
}

static void add_set(struct ddp_text *out, const struct ddp_cpuset *set)
{
	char *text = malloc(DDP_CPUSET_TEXT_SIZE);

	if (!text || ddp_cpuset_format(set, text, DDP_CPUSET_TEXT_SIZE))
		out->failed = true;
	else
		ddp_text_add(out, "%s\t", text);
	free(text);
}

/*
 * Add what orders the GPUs that the task sees; nothing if that is left alone.
 */
static void add_visible(struct ddp_text *out, const struct ddp_view *gpus,
			const struct ddp_view *view,
			const struct ddp_placement *placement)
{
	char visible[DDP_VIEWS_TEXT_SIZE];

	if (ddp_views_format(view, gpus, placement->visible,
			     placement->visible_count, visible,
			     sizeof(visible)))
		out->failed = true;
	else if (placement->visible_count > 0)
		ddp_text_add(out, "%s=%s", ddp_gpus_variable(view), visible);
	ddp_text_add(out, "\t");
}

static uint32_t find_device(const struct ddp_placement *placement,
			    uint32_t local_rank)
{
	if (placement->gpu_count == 0)
		return DDP_GPU_NONE;
	return placement->local_rank_is_device ? local_rank : 0;
}

static const struct ddp_gpu *find_gpu(const struct ddp_machine *machine,
				      const struct ddp_view *gpus,
				      const struct ddp_placement *placement,
				      uint32_t i)
{
	static const struct ddp_gpu none;

	if (i >= placement->gpu_count ||
	    gpus->gpus[placement->gpus[i]].gpu == DDP_GPU_NONE)
		return &none;
	return &machine->gpus[gpus->gpus[placement->gpus[i]].gpu];
}

/*
 * Make all strings of a row, in the order in which split_strings takes them.
 */
static char *make_strings(const struct ddp_rank *rank,
			  const struct ddp_machine *machine,
			  const struct ddp_view *gpus,
			  const struct ddp_view *view,
			  const struct ddp_placement *placement,
			  const char *interface)
{
	const struct ddp_gpu *gpu = find_gpu(machine, gpus, placement, 0);
	struct ddp_text out = { 0 };
	struct ddp_cpuset numas;
	uint32_t i;

	add_field(&out, rank->host);
	add_visible(&out, gpus, view, placement);
	ddp_machine_numas(machine, &placement->cpus, &numas);
	add_set(&out, &placement->cpus);
	add_set(&out, &numas);
	add_field(&out, interface ? interface : gpu->interface);
	for (i = 0; i < placement->gpu_count; i++) {
		gpu = find_gpu(machine, gpus, placement, i);
		add_field(&out, gpu->bus_id);
		add_field(&out, gpu->model);
	}
	for (i = 0; i < placement->why_count; i++)
		add_field(&out, placement->why[i]);
	return ddp_text_finish(&out);
}

/* End the field at *at and move behind it; NULL if it does not end. */
static char *next_field(char **at)
{
	char *field = *at, *end = strchr(field, '\t');

	if (!end)
		return NULL;
	*end = '\0';
	*at = end + 1;
	return field;
}

static void split_strings(struct ddp_row *row)
{
	char *at = row->storage;
	uint32_t i;

	row->node = next_field(&at);
	row->visible = next_field(&at);
	row->cpus = next_field(&at);
	row->numa = next_field(&at);
	row->interface = next_field(&at);
	for (i = 0; i < row->gpu_count; i++) {
		row->gpus[i].bus_id = next_field(&at);
		row->gpus[i].model = next_field(&at);
	}
	for (i = 0; i < row->why_count; i++)
		row->why[i] = next_field(&at);
}

int ddp_row_make(struct ddp_row *row, const struct ddp_rank *rank,
		 const struct ddp_machine *machine,
		 const struct ddp_view *gpus, const struct ddp_view *view,
		 const struct ddp_placement *placement, const char *interface,
		 struct ddp_error *error)
{
	struct ddp_row made = {
		.rank = rank->rank,
		.node_rank = rank->node_rank,
		.local_rank = rank->local_rank,
		.device = find_device(placement, rank->local_rank),
		.gpu_count = placement->gpu_count,
		.gpus = calloc(placement->gpu_count + 1, sizeof(*made.gpus)),
		.why_count = placement->why_count,
		.storage = make_strings(rank, machine, gpus, view, placement,
					interface),
	};
	uint32_t i;

	if (!made.gpus || !made.storage) {
		ddp_row_clear(&made);
		return ddp_error_set(error, DDP_ERROR_SYSTEM,
				     "no memory for the row of rank %u, or it "
				     "does not see its GPUs", rank->rank);
	}
	for (i = 0; i < made.gpu_count; i++)
		made.gpus[i].number = gpus->gpus[placement->gpus[i]].number;
	split_strings(&made);
	*row = made;
	return 0;
}

void ddp_row_clear(struct ddp_row *row)
{
	free(row->gpus);
	free(row->storage);
	memset(row, 0, sizeof(*row));
}

char *ddp_row_format(const struct ddp_row *row)
{
	struct ddp_text out = { 0 };
	uint32_t i;

	ddp_text_add(&out, "%u\t%u\t%u\t%u\t%s\t%s\t%s\t%s\t%s\t%u\t",
		     row->rank, row->node_rank, row->local_rank, row->device,
		     row->node, row->visible, row->cpus, row->numa,
		     row->interface, row->gpu_count);
	for (i = 0; i < row->gpu_count; i++)
		ddp_text_add(&out, "%u\t%s\t%s\t", row->gpus[i].number,
			     row->gpus[i].bus_id, row->gpus[i].model);
	ddp_text_add(&out, "%u\t", row->why_count);
	for (i = 0; i < row->why_count; i++)
		ddp_text_add(&out, "%s\t", row->why[i]);
	return ddp_text_finish(&out);
}

static int next_number(char **at, uint64_t max, uint32_t *number)
{
	const char *field = next_field(at);
	uint64_t value;

	if (!field || ddp_scan_number(&field, 0, max, &value) ||
	    *field != '\0')
		return -1;
	*number = (uint32_t)value;
	return 0;
}

/* The text is printed later, and a record may be anybody's. */
static int next_text(char **at, const char **text)
{
	char *field = next_field(at);

	if (!field)
		return -1;
	*text = ddp_text_quote(field);
	return 0;
}

static int parse_fields(char *at, struct ddp_row *row)
{
	uint32_t i;

	if (next_number(&at, UINT32_MAX, &row->rank) ||
	    next_number(&at, UINT32_MAX, &row->node_rank) ||
	    next_number(&at, UINT32_MAX, &row->local_rank) ||
	    next_number(&at, UINT32_MAX, &row->device) ||
	    next_text(&at, &row->node) || next_text(&at, &row->visible) ||
	    next_text(&at, &row->cpus) || next_text(&at, &row->numa) ||
	    next_text(&at, &row->interface) ||
	    next_number(&at, DDP_GPU_MAX, &row->gpu_count))
		return -1;
	row->gpus = calloc(row->gpu_count + 1, sizeof(*row->gpus));
	if (!row->gpus)
		return -1;
	for (i = 0; i < row->gpu_count; i++)
		if (next_number(&at, UINT32_MAX, &row->gpus[i].number) ||
		    next_text(&at, &row->gpus[i].bus_id) ||
		    next_text(&at, &row->gpus[i].model))
			return -1;
	if (next_number(&at, DDP_WHY_MAX, &row->why_count))
		return -1;
	for (i = 0; i < row->why_count; i++)
		if (next_text(&at, &row->why[i]))
			return -1;
	return *at == '\0' ? 0 : -1;
}

int ddp_row_parse(const char *record, struct ddp_row *row,
		  struct ddp_error *error)
{
	struct ddp_row read = { .storage = NULL };

	read.storage = malloc(strlen(record) + 1);
	if (!read.storage)
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "out of memory");
	strcpy(read.storage, record);
	if (parse_fields(read.storage, &read) == 0) {
		*row = read;
		return 0;
	}
	ddp_row_clear(&read);
	return ddp_error_set(error, DDP_ERROR_ARGUMENT,
			     "the record of a placement is malformed");
}

/* ---- JSON and variables */

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
