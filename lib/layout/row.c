/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank's row and its record: fields with a tab after each, the lists of
 * GPUs and of reasons with their lengths in front.
 */
#include "layout/report.h"

#include <stdlib.h>
#include <string.h>

#include "layout/scan.h"
#include "layout/text.h"
#include "layout/views.h"

enum { FIELD_MAX = DDP_HOSTNAME_MAX };	/* bytes of a string, without NUL */

/* A string that others wrote must not end its field, nor be long. */
static void add_field(struct ddp_text *out, const char *string)
{
	ddp_text_add_quoted(out, "%.*s", FIELD_MAX, string);
	ddp_text_add(out, "\t");
}

static void add_set(struct ddp_text *out, const struct ddp_cpuset *set)
{
	char *text = malloc(DDP_CPUSET_TEXT_SIZE);

	if (text == NULL || ddp_cpuset_format(set, text, DDP_CPUSET_TEXT_SIZE))
		out->failed = true;
	else
		ddp_text_add(out, "%s\t", text);
	free(text);
}

/* What orders the GPUs that the task sees; nothing where that is left. */
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

static uint32_t device_find(const struct ddp_placement *placement,
			    uint32_t local_rank)
{
	if (placement->gpu_count == 0)
		return DDP_GPU_NONE;
	return placement->local_rank_is_device ? local_rank : 0;
}

static const struct ddp_gpu *gpu_find(const struct ddp_machine *machine,
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

int ddp_row_make(struct ddp_row *row, const struct ddp_rank *rank,
		 const struct ddp_machine *machine,
		 const struct ddp_view *gpus, const struct ddp_view *view,
		 const struct ddp_placement *placement, const char *interface,
		 struct ddp_error *error)
{
	const struct ddp_gpu *gpu = gpu_find(machine, gpus, placement, 0);
	struct ddp_text out = { 0 };
	struct ddp_cpuset numas;
	char *record;
	uint32_t i;
	int rc;

	ddp_text_add(&out, "%u\t%u\t%u\t%u\t", rank->rank, rank->node_rank,
		     rank->local_rank,
		     device_find(placement, rank->local_rank));
	add_field(&out, rank->host);
	add_visible(&out, gpus, view, placement);
	ddp_machine_numas(machine, &placement->cpus, &numas);
	add_set(&out, &placement->cpus);
	add_set(&out, &numas);
	add_field(&out, interface ? interface : gpu->interface);
	ddp_text_add(&out, "%u\t", placement->gpu_count);
	for (i = 0; i < placement->gpu_count; i++) {
		gpu = gpu_find(machine, gpus, placement, i);
		ddp_text_add(&out, "%u\t",
			     gpus->gpus[placement->gpus[i]].number);
		add_field(&out, gpu->bus_id);
		add_field(&out, gpu->model);
	}
	ddp_text_add(&out, "%u\t", placement->why_count);
	for (i = 0; i < placement->why_count; i++)
		add_field(&out, placement->why[i]);
	record = ddp_text_finish(&out);
	if (record == NULL)
		return ddp_error_set(error, DDP_ERROR_SYSTEM,
				     "no memory for the row of rank %u, or it "
				     "does not see its GPUs", rank->rank);
	rc = ddp_row_parse(record, row, error);
	free(record);
	return rc;
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

/* End the field at *at and move behind it; NULL if it does not end. */
static char *field_next(char **at)
{
	char *field = *at, *end = strchr(field, '\t');

	if (end == NULL)
		return NULL;
	*end = '\0';
	*at = end + 1;
	return field;
}

static int number_next(char **at, uint64_t max, uint32_t *number)
{
	const char *field = field_next(at);
	uint64_t value;

	if (field == NULL || ddp_scan_number(&field, 0, max, &value) ||
	    *field != '\0')
		return -1;
	*number = (uint32_t)value;
	return 0;
}

/* The text is printed later, and a record may be anybody's. */
static int text_next(char **at, const char **text)
{
	char *field = field_next(at);

	if (!field)
		return -1;
	*text = ddp_text_quote(field);
	return 0;
}

static int fields_parse(char *at, struct ddp_row *row)
{
	uint32_t i;

	if (number_next(&at, UINT32_MAX, &row->rank) ||
	    number_next(&at, UINT32_MAX, &row->node_rank) ||
	    number_next(&at, UINT32_MAX, &row->local_rank) ||
	    number_next(&at, UINT32_MAX, &row->device) ||
	    text_next(&at, &row->node) || text_next(&at, &row->visible) ||
	    text_next(&at, &row->cpus) || text_next(&at, &row->numa) ||
	    text_next(&at, &row->interface) ||
	    number_next(&at, DDP_GPU_MAX, &row->gpu_count))
		return -1;
	row->gpus = calloc(row->gpu_count + 1, sizeof(*row->gpus));
	if (row->gpus == NULL)
		return -1;
	for (i = 0; i < row->gpu_count; i++)
		if (number_next(&at, UINT32_MAX, &row->gpus[i].number) ||
		    text_next(&at, &row->gpus[i].bus_id) ||
		    text_next(&at, &row->gpus[i].model))
			return -1;
	if (number_next(&at, DDP_WHY_MAX, &row->why_count))
		return -1;
	for (i = 0; i < row->why_count; i++)
		if (text_next(&at, &row->why[i]))
			return -1;
	return *at == '\0' ? 0 : -1;
}

int ddp_row_parse(const char *record, struct ddp_row *row,
		  struct ddp_error *error)
{
	struct ddp_row read = { .storage = NULL };

	read.storage = malloc(strlen(record) + 1);
	if (read.storage == NULL)
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "out of memory");
	strcpy(read.storage, record);
	if (fields_parse(read.storage, &read) == 0) {
		*row = read;
		return 0;
	}
	ddp_row_clear(&read);
	return ddp_error_set(error, DDP_ERROR_ARGUMENT,
			     "the record of a placement is malformed");
}
