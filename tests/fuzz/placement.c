/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The parsers that placement reads, and placement itself, for libFuzzer. The
 * first byte of the input chooses. What must hold for any answer is checked,
 * so that wrong ones crash too.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layout/cpuset.h"
#include "layout/gpus.h"
#include "layout/place.h"
#include "layout/report.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static void check(int holds)
{
	if (!holds)
		abort();
}

/* A refusal is one printable sentence. */
static void check_refusal(const struct ddp_error *error)
{
	const char *at;

	check(error->code == DDP_ERROR_ARGUMENT && error->text[0] != '\0');
	for (at = error->text; *at != '\0'; at++)
		check(*at >= ' ' && *at <= '~');
}

static void fuzz_cpuset(const char *text)
{
	static char printed[DDP_CPUSET_TEXT_SIZE];
	struct ddp_error error = { 0 };
	struct ddp_cpuset set, again;

	if (ddp_cpuset_parse(text, &set, &error)) {
		check_refusal(&error);
		return;
	}
	check(!ddp_cpuset_empty(&set));
	check(ddp_cpuset_format(&set, printed, sizeof(printed)) == 0);
	check(ddp_cpuset_parse(printed, &again, NULL) == 0);
	check(ddp_cpuset_equal(&set, &again));
}

/* Four cores, two at each package, and four GPUs. */
static struct ddp_machine *machine_make(void)
{
	struct ddp_machine *machine = ddp_machine_create(8, 4, 0);
	uint16_t i;

	check(machine != NULL);
	for (i = 0; i < 8; i++)
		machine->cpus[i] = (struct ddp_cpu){ .cpu = i, .core = i / 2,
			.numa = i / 4, .package = i / 4 };
	for (i = 0; i < 4; i++) {
		snprintf(machine->gpus[i].uuid, DDP_UUID_SIZE, "GPU-%u", i);
		machine->gpus[i].cpus.words[0] = i < 2 ? 0x0f : 0xf0;
	}
	return machine;
}

/* A byte: which can be reached; then two texts with a newline between. */
static void fuzz_gpus(const char *text)
{
	struct ddp_machine *machine = machine_make();
	char *cuda = strchr(text, '\n');
	struct ddp_error error = { 0 };
	struct ddp_gpus_env env;
	struct ddp_view view;
	uint32_t i;

	if (cuda != NULL) {
		for (i = 0; i < 4; i++)
			machine->gpus[i].reachable = *text >> i & 1;
		*cuda++ = '\0';
		env = (struct ddp_gpus_env){ *text ? text + 1 : text, cuda,
					     NULL };
		if (ddp_gpus_resolve(&env, machine, &view, &error))
			check_refusal(&error);
		else
			for (i = 0; i < view.count; i++)
				check(view.gpus[i].gpu == DDP_GPU_NONE ||
				      view.gpus[i].gpu < 4);
	}
	ddp_machine_destroy(machine);
}

static void fuzz_record(const char *text)
{
	struct ddp_error error = { 0 };
	struct ddp_row row, again;
	char *record;

	if (ddp_row_parse(text, &row, &error)) {
		check_refusal(&error);
		return;
	}
	record = ddp_row_format(&row);
	check(record != NULL && ddp_row_parse(record, &again, NULL) == 0);
	free(record);
	free(ddp_report_table(&row, 1, true));
	free(ddp_report_json(&row, 1, "n1", 1));
	ddp_row_clear(&row);
	ddp_row_clear(&again);
}

/* Two bytes of policy, then for each rank a mask and the GPUs that it sees. */
static void fuzz_place(const unsigned char *data, size_t size)
{
	struct ddp_machine *machine = machine_make();
	struct ddp_place_rank ranks[16] = { 0 };
	struct ddp_view view = { .count = 4 };
	uint32_t views[16][4], i, k;
	struct ddp_place_params params = { .machine = machine, .gpus = &view,
					   .ranks = ranks };
	const struct ddp_placement *got;
	struct ddp_error error = { 0 };
	struct ddp_cpuset out;
	struct ddp_place *place;

	for (i = 0; i < 4; i++)
		view.gpus[i].gpu = i;
	params.rank_count = size < 2 ? 0 : (uint32_t)(size - 2) / 2;
	if (params.rank_count > 16)
		params.rank_count = 16;
	for (i = 0; i < params.rank_count; i++) {
		ranks[i].mask.words[0] = data[2 + 2 * i];
		ranks[i].gpus = views[i];
		for (k = 0; k < 4; k++)
			if (data[3 + 2 * i] >> k & 1)
				views[i][ranks[i].gpu_count++] = k;
	}
	if (size >= 2) {
		params.gpus_policy = (enum ddp_gpus_policy)(data[0] % 4);
		params.cpus_policy = (enum ddp_cpus_policy)(data[1] % 3);
	}
	place = ddp_place_create(&params, &error);
	if (place == NULL)
		check_refusal(&error);
	for (i = 0; place != NULL && i < params.rank_count; i++) {
		got = ddp_place_get(place, i);
		check(!ddp_cpuset_empty(&got->cpus));
		ddp_cpuset_andnot(&out, &got->cpus, &ranks[i].mask);
		check(ddp_cpuset_empty(&out));
		check(got->gpu_count <= ranks[i].gpu_count);
		check(got->visible_count <= ranks[i].gpu_count);
		check(got->why_count >= 1);
	}
	ddp_place_destroy(place);
	ddp_machine_destroy(machine);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	char *text;

	if (size == 0)
		return 0;
	text = malloc(size);
	if (text == NULL)
		abort();
	memcpy(text, data + 1, size - 1);
	text[size - 1] = '\0';
	switch (data[0]) {
	case 'c': fuzz_cpuset(text); break;
	case 'g': fuzz_gpus(text); break;
	case 'p': fuzz_place(data + 1, size - 1); break;
	case 'r': fuzz_record(text); break;
	}
	free(text);
	return 0;
}
