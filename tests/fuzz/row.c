/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzzes the record of a rank's row, which DDP_PLACEMENT and ddp-info --gather
 * carry from process to process, and what is printed of it. The input is the
 * record.
 */
#include "fuzz.h"
#include "place/report.h"

static int same(const char *a, const char *b)
{
	return strcmp(a, b) == 0;
}

static void check_equal(const struct ddp_row *a, const struct ddp_row *b)
{
	uint32_t i;

	CHECK(a->rank == b->rank && a->node_rank == b->node_rank);
	CHECK(a->local_rank == b->local_rank && a->device == b->device);
	CHECK(same(a->node, b->node) && same(a->visible, b->visible));
	CHECK(same(a->cpus, b->cpus) && same(a->numa, b->numa));
	CHECK(same(a->interface, b->interface));
	CHECK(a->gpu_count == b->gpu_count && a->why_count == b->why_count);
	for (i = 0; i < a->gpu_count; i++) {
		CHECK(a->gpus[i].number == b->gpus[i].number);
		CHECK(same(a->gpus[i].bus_id, b->gpus[i].bus_id));
		CHECK(same(a->gpus[i].model, b->gpus[i].model));
	}
	for (i = 0; i < a->why_count; i++)
		CHECK(same(a->why[i], b->why[i]));
}

/*
 * A line of names, one for the row or for each of its GPUs, one for the model of
 * these, one for each reason, and nothing but these.
 */
static void check_table(const struct ddp_row *row)
{
	char *table = ddp_table_format(row, 1, false), *rest = table, *line;
	uint32_t i, lines = 1 + (row->gpu_count > 0 ? row->gpu_count : 1);
	uint32_t models = 0;

	CHECK(table);
	for (i = 0; i < lines; i++)
		fuzz_check_line(fuzz_next_line(&rest));
	for (i = 0; *rest != '\0'; i++) {
		line = fuzz_next_line(&rest);
		fuzz_check_line(line);
		models += i == 0 && strncmp(line, "MODEL all: ", 11) == 0;
		CHECK(i < models || strncmp(line, "WHY all: ", 9) == 0);
	}
	CHECK(i <= row->why_count + models);
	free(table);
}

/* Step over a string; returns what is behind its closing quote. */
static const char *skip_string(const char *at)
{
	for (at++; *at != '"'; at++) {
		CHECK((unsigned char)*at >= ' ' && *at != '\177');
		if (*at == '\\') {
			at++;
			CHECK(*at == '"' || *at == '\\');
		}
	}
	return at + 1;
}

/* Brackets and quotes close, so what a row holds ends no string of ours. */
static void check_json(const struct ddp_row *row)
{
	char *json = ddp_report_json(row, 1, false), open[8];
	const char *at = json;
	size_t depth = 0;

	CHECK(json);
	while (*at != '\0') {
		if (*at == '"') {
			at = skip_string(at);
			continue;
		}
		CHECK(strchr("{}[]:,\n0123456789nul", *at));
		if (*at == '{' || *at == '[') {
			CHECK(depth < sizeof(open));
			open[depth++] = *at;
		} else if (*at == '}' || *at == ']') {
			CHECK(depth > 0 && *at - open[--depth] == 2);
		}
		at++;
	}
	CHECK(depth == 0);
	free(json);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	char *text = fuzz_text(data, size), *record, *twice;
	struct ddp_error error = { 0 };
	struct ddp_row row, again;

	if (ddp_row_parse(text, &row, &error)) {
		fuzz_check_error(&error, DDP_ERROR_ARGUMENT);
		free(text);
		return 0;
	}
	CHECK(row.gpu_count <= DDP_GPU_MAX && row.why_count <= DDP_WHY_MAX);
	record = ddp_row_format(&row);
	CHECK(record && ddp_row_parse(record, &again, NULL) == 0);
	check_equal(&row, &again);
	twice = ddp_row_format(&again);
	CHECK(twice && same(record, twice));
	check_table(&row);
	check_json(&row);
	ddp_row_clear(&row);
	ddp_row_clear(&again);
	free(record);
	free(twice);
	free(text);
	return 0;
}
