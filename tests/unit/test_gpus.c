/* SPDX-License-Identifier: BSD-3-Clause */
/* The GPUs that a task sees, from its variables, and the views of a node. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "machines.h"
#include "place/visible_gpus.h"

#define UUID(digit) "GPU-" digit digit digit digit digit digit digit digit \
	"-0000-0000-0000-000000000000"

enum node {
	NVIDIA4,	/* four by NVIDIA, UUIDs 1111..., 2222..., and so on */
	NVIDIA4_ONLY13,	/* the same; the task may open 1 and 3 */
	AMD2,		/* two by AMD */
	MIXED,		/* AMD, NVIDIA, AMD, NVIDIA */
	NONE		/* no PCI device */
};

static struct ddp_machine *make_node(enum node node)
{
	static const char *const uuids[] = {
		UUID("1"), UUID("2"), UUID("3"), UUID("33"),
	};
	uint32_t count = node == NONE ? 0 : node == AMD2 ? 2 : 4, i;
	struct ddp_machine *machine = machine_make(1, 1, 1, 1, count);

	machine->parts = realloc(machine->parts, sizeof(*machine->parts));
	machine->part_count = 1;
	strcpy(machine->parts[0].uuid, "MIG-known");
	machine->parts[0].gpu = 2;
	for (i = 0; i < count; i++) {
		if (node == AMD2 || (node == MIXED && i % 2 == 0))
			machine->gpus[i].vendor = DDP_VENDOR_AMD;
		else if (node != MIXED)
			memcpy(machine->gpus[i].uuid, uuids[i], 40);
		machine->gpus[i].reachable = node == NVIDIA4_ONLY13 &&
					     i % 2 == 1;
		if (node == NVIDIA4_ONLY13)
			sprintf(machine->gpus[i].device, "/dev/nvidia%u", i);
	}
	return machine;
}

struct gpus_row {
	enum node node;
	const char *step, *cuda, *rocr;
	uint32_t count;
	uint32_t gpus[4];	/* indexes in the machine; X: none */
	uint32_t numbers[4];	/* X: none */
};

#define X 9

static const struct gpus_row gpus_table[] = {
	/* no GPU */
	{ NVIDIA4, NULL, NULL, NULL, 0, { 0 }, { 0 } },
	{ NVIDIA4, "", "", "", 0, { 0 }, { 0 } },
	{ NVIDIA4, NULL, "-1", NULL, 0, { 0 }, { 0 } },
	{ NVIDIA4, NULL, "NoDevFiles", NULL, 0, { 0 }, { 0 } },
	/* without ConstrainDevices both variables say the same */
	{ NVIDIA4, "0,1", "0,1", NULL, 2, { 0, 1 }, { 0, 1 } },
	{ NVIDIA4, "1,3", "1,3", NULL, 2, { 1, 3 }, { 1, 3 } },
	/* with it numbers are relative: SLURM_STEP_GPUS tells which */
	{ NVIDIA4, "1,3", "0,1", NULL, 2, { 1, 3 }, { 1, 3 } },
	{ NVIDIA4, "2", "0", NULL, 1, { 2 }, { 2 } },
	/* or the device files do, if gres.conf lists only nvidia[1,3] */
	{ NVIDIA4_ONLY13, "0,1", "0,1", NULL, 2, { 1, 3 }, { 1, 3 } },
	{ NVIDIA4_ONLY13, NULL, "1", NULL, 1, { 3 }, { 3 } },
	/* the device files do not fit the numbers: by position */
	{ NVIDIA4_ONLY13, "1,3", "1,3", NULL, 2, { 1, 3 }, { 1, 3 } },
	/* SLURM_STEP_GPUS is not set, or has another length */
	{ NVIDIA4, NULL, "3,2", NULL, 2, { 3, 2 }, { 3, 2 } },
	{ NVIDIA4, "1", "3,2", NULL, 2, { 3, 2 }, { 3, 2 } },
	{ NVIDIA4, "1,2,3", "3,2", NULL, 2, { 3, 2 }, { 3, 2 } },
	{ NVIDIA4, "a,b", "3,2", NULL, 2, { 3, 2 }, { 3, 2 } },
	/* UUIDs, whole and cut short */
	{ NVIDIA4, "7,8", UUID("2") "," UUID("1"), NULL, 2,
	  { 1, 0 }, { 1, 0 } },
	{ NVIDIA4, NULL, "GPU-2,0", NULL, 2, { 1, 0 }, { 1, 0 } },
	/* MIG: the parent is in the name, is known, or is not known */
	{ NVIDIA4, NULL, "MIG-GPU-22222222-0000-0000-0000-000000000000/1/0,"
	  "MIG-GPU-22222222-0000-0000-0000-000000000000/2/0", NULL, 2,
	  { 1, 1 }, { 1, 1 } },
	{ NVIDIA4, "5,6", "MIG-known,MIG-other", NULL, 2, { 2, X }, { 2, X } },
	/* AMD */
	{ AMD2, "0,1", "0,1", "0,1", 2, { 0, 1 }, { 0, 1 } },
	{ AMD2, "1", "0", "0", 1, { 1 }, { 1 } },
	{ AMD2, "1", "0", NULL, 1, { 1 }, { 1 } },
	/* each variable counts the GPUs of its own vendor */
	{ MIXED, NULL, "0,1", "0", 2, { 1, 3 }, { 0, 1 } },
	{ MIXED, NULL, NULL, "1", 1, { 2 }, { 1 } },
	/* no PCI devices: only the number is known */
	{ NONE, "2,3", "0,1", NULL, 2, { X, X }, { 2, 3 } },
	{ NONE, NULL, "5", NULL, 1, { X }, { 5 } },
	{ NONE, NULL, UUID("7"), NULL, 1, { X }, { X } },
};

Test(gpus, resolves)
{
	const struct gpus_row *row;
	struct ddp_machine *machine;
	struct ddp_gpus_env env;
	struct ddp_error error = { 0 };
	struct ddp_view view;
	size_t i, k;

	for (i = 0; i < sizeof(gpus_table) / sizeof(*gpus_table); i++) {
		row = &gpus_table[i];
		machine = make_node(row->node);
		env = (struct ddp_gpus_env){ row->step, row->cuda, row->rocr,
					     0, NULL };
		cr_assert_eq(ddp_gpus_resolve(&env, machine, &view, &error),
			     0, "row %zu: %s", i, error.text);
		cr_assert_eq(view.count, row->count, "row %zu", i);
		for (k = 0; k < row->count; k++) {
			cr_expect_eq(view.gpus[k].gpu, row->gpus[k] == X ?
				     DDP_GPU_NONE : row->gpus[k],
				     "row %zu, GPU %zu: %u", i, k,
				     view.gpus[k].gpu);
			cr_expect_eq(view.gpus[k].number,
				     row->numbers[k] == X ? DDP_GPU_NONE :
				     row->numbers[k],
				     "row %zu, number %zu: %u", i, k,
				     view.gpus[k].number);
		}
		ddp_machine_destroy(machine);
	}
}

/*
 * No variable names the GPUs that the step has on the node. Each row: how many
 * these are, whether one GPU is divided, and the view, NULL: refused.
 */
static const struct unnamed_row {
	enum node node;
	uint32_t on_node;
	bool divided;
	const char *tokens;
	uint32_t gpus[4];
	const char *variable;
} unnamed_table[] = {
	/* those that the task can open */
	{ NVIDIA4_ONLY13, 2, false, "0,1", { 1, 3 }, "CUDA_VISIBLE_DEVICES" },
	{ NVIDIA4_ONLY13, 1, false, NULL, { 0 }, NULL },
	{ NVIDIA4_ONLY13, 4, false, NULL, { 0 }, NULL },
	{ NVIDIA4_ONLY13, 2, true, NULL, { 0 }, NULL },
	/* all of the node, where nothing is known of device files */
	{ NVIDIA4, 4, false, "0,1,2,3", { 0, 1, 2, 3 },
	  "CUDA_VISIBLE_DEVICES" },
	{ NVIDIA4, 3, false, NULL, { 0 }, NULL },
	{ AMD2, 2, false, "0,1", { 0, 1 }, "ROCR_VISIBLE_DEVICES" },
	{ MIXED, 2, false, "0,1", { 1, 3 }, "CUDA_VISIBLE_DEVICES" },
	{ MIXED, 4, false, NULL, { 0 }, NULL },
	{ NONE, 2, false, NULL, { 0 }, NULL },
	/* there are none to name */
	{ NVIDIA4, 0, false, "", { 0 }, "CUDA_VISIBLE_DEVICES" },
};

static void expect_view(size_t row, const struct ddp_view *view)
{
	const struct unnamed_row *expected = &unnamed_table[row];
	char tokens[64] = "";
	uint32_t i;

	for (i = 0; i < view->count; i++) {
		sprintf(tokens + strlen(tokens), "%s%s", i > 0 ? "," : "",
			view->gpus[i].token);
		cr_expect_eq(view->gpus[i].gpu, expected->gpus[i],
			     "row %zu, GPU %u", row, i);
	}
	cr_expect_str_eq(tokens, expected->tokens, "row %zu", row);
	cr_expect_str_eq(ddp_gpus_variable(view), expected->variable,
			 "row %zu", row);
}

Test(gpus, finds_those_without_a_name)
{
	size_t i;

	for (i = 0; i < sizeof(unnamed_table) / sizeof(*unnamed_table); i++) {
		const struct unnamed_row *row = &unnamed_table[i];
		struct ddp_machine *machine = make_node(row->node);
		struct ddp_gpus_env env = { .on_node = row->on_node };
		struct ddp_error error = { 0 };
		struct ddp_view view;
		int rc;

		machine->part_count = row->divided;
		rc = ddp_gpus_resolve(&env, machine, &view, &error);
		cr_expect_eq(rc, row->tokens ? 0 : -1, "row %zu: %s", i,
			     error.text);
		if (row->tokens && rc == 0)
			expect_view(i, &view);
		if (!row->tokens)
			cr_expect(strstr(error.text, "leave --gpu-bind out"),
				  "row %zu: %s", i, error.text);
		ddp_machine_destroy(machine);
	}
}

/* A variable that is set is obeyed, whatever the number of GPUs. */
Test(gpus, prefers_names)
{
	struct ddp_machine *machine = make_node(NVIDIA4);
	struct ddp_gpus_env env = { .step_gpus = "3", .cuda = "0",
				    .on_node = 4 };
	struct ddp_view view;

	cr_assert_eq(ddp_gpus_resolve(&env, machine, &view, NULL), 0);
	cr_expect_eq(view.count, 1);
	cr_expect_eq(view.gpus[0].gpu, 3);
	env = (struct ddp_gpus_env){ .cuda = "-1", .on_node = 4 };
	cr_assert_eq(ddp_gpus_resolve(&env, machine, &view, NULL), 0);
	cr_expect_eq(view.count, 0);
	env = (struct ddp_gpus_env){ .step_gpus = "0,1", .on_node = 2 };
	cr_assert_eq(ddp_gpus_resolve(&env, machine, &view, NULL), 0);
	cr_expect_eq(view.count, 0, "the site wants no variables");
	env = (struct ddp_gpus_env){ .cuda = "0", .ze = "0", .on_node = 1 };
	cr_assert_eq(ddp_gpus_resolve(&env, machine, &view, NULL), 0);
	cr_expect_eq(view.count, 1, "Slurm was not told whose GPUs they are");
	env = (struct ddp_gpus_env){ .ze = "0" };
	cr_assert_eq(ddp_gpus_resolve(&env, machine, &view, NULL), 0);
	cr_expect_eq(view.count, 0, "a user's variable, in a step without GPUs");
	env = (struct ddp_gpus_env){ .step_gpus = "0,1", .ze = "0" };
	cr_assert_eq(ddp_gpus_resolve(&env, machine, &view, NULL), 0);
	cr_expect_eq(view.count, 0, "the same, on a node with others' GPUs");
	ddp_machine_destroy(machine);
}

struct gpus_refusal {
	enum node node;
	const char *step, *cuda;
	const char *expected;
};

static const struct gpus_refusal refusals[] = {
	{ NVIDIA4, NULL, "4", "this node has 4" },
	{ NVIDIA4, "4", "0", "GPU 4 is given" },
	{ NVIDIA4, NULL, "0,0", "names GPU 0 twice" },
	{ NVIDIA4, NULL, "GPU-1,GPU-1", "twice" },
	{ NONE, "3,3", "0,1", "twice" },
	{ NONE, "3,1", "1,1", "names GPU 1 twice" },
	{ NVIDIA4, NULL, "GPU-1,GPU-11", "names GPU GPU-11 twice" },
	{ NVIDIA4, NULL, "GPU-4", "has the UUID GPU-4" },
	{ NVIDIA4, NULL, "GPU-", "or not one alone" },
	{ NVIDIA4, NULL, "GPU-33", "or not one alone" },
	{ NVIDIA4, NULL, ",", "byte 1" },
	{ NVIDIA4, NULL, "0,", "byte 3: expected another GPU" },
	{ NVIDIA4, NULL, "0,,1", "byte 3" },
	{ NVIDIA4, NULL, "0 ,1", "byte 2" },
	{ NVIDIA4, NULL, "0x1", "neither a GPU's number" },
	{ NVIDIA4, NULL, "99999999999", "neither a GPU's number" },
	{ NVIDIA4, NULL, "0\033[2J", "byte 2" },
};

Test(gpus, refuses)
{
	size_t i;

	for (i = 0; i < sizeof(refusals) / sizeof(*refusals); i++) {
		struct ddp_machine *machine = make_node(refusals[i].node);
		struct ddp_gpus_env env = { .step_gpus = refusals[i].step,
					    .cuda = refusals[i].cuda };
		struct ddp_error error = { 0 };
		struct ddp_view view;

		cr_expect_eq(ddp_gpus_resolve(&env, machine, &view, &error),
			     -1, "row %zu", i);
		cr_expect_not_null(strstr(error.text, refusals[i].expected),
				   "row %zu: %s", i, error.text);
		ddp_machine_destroy(machine);
	}
}

Test(gpus, refuses_intels)
{
	struct ddp_machine *machine = make_node(NONE);
	struct ddp_gpus_env env = { .step_gpus = "0,1", .ze = "0,1" };
	struct ddp_error error = { 0 };
	struct ddp_view view;

	cr_expect_eq(ddp_gpus_resolve(&env, machine, &view, &error), -1);
	cr_expect_str_eq(error.text, "ZE_AFFINITY_MASK=0,1 gives Intel's GPUs, "
			 "which --ddp cannot place; use --ddp-gpus=off");
	ddp_machine_destroy(machine);
}

Test(gpus, refuses_too_many)
{
	struct ddp_machine *machine = make_node(NONE);
	char text[(DDP_GPU_MAX + 1) * 4] = "";
	struct ddp_gpus_env env = { .cuda = text };
	struct ddp_view view;
	uint32_t i;

	for (i = 0; i <= DDP_GPU_MAX; i++)
		sprintf(text + strlen(text), "%s%u", i > 0 ? "," : "", i);
	cr_expect_eq(ddp_gpus_resolve(&env, machine, &view, NULL), -1);
	*strrchr(text, ',') = '\0';
	cr_expect_eq(ddp_gpus_resolve(&env, machine, &view, NULL), 0);
	cr_expect_eq(view.count, DDP_GPU_MAX);
	ddp_machine_destroy(machine);
}

Test(gpus, names_its_variable)
{
	struct ddp_view view = { .rocr = true };

	cr_expect_str_eq(ddp_gpus_variable(&view), "ROCR_VISIBLE_DEVICES");
	view.rocr = false;
	cr_expect_str_eq(ddp_gpus_variable(&view), "CUDA_VISIBLE_DEVICES");
}

/* ---- the views of a node's tasks, put together */

/* The view of a task with these variables, on a node with four GPUs. */
static void resolve(const char *step, const char *cuda, struct ddp_view *view)
{
	struct ddp_machine *machine = machine_make(1, 1, 1, 1, 4);
	struct ddp_gpus_env env = { .step_gpus = step, .cuda = cuda };

	cr_assert_eq(ddp_gpus_resolve(&env, machine, view, NULL), 0);
	ddp_machine_destroy(machine);
}

/* Token 0 is another GPU for each of two tasks. */
Test(views, joins_what_slurm_has_cut)
{
	uint32_t indexes[3][DDP_GPU_MAX], second[] = { 1 }, both[] = { 0, 1 };
	struct ddp_view views[3], all;
	char text[DDP_VIEWS_TEXT_SIZE];

	resolve("3", "0", &views[0]);
	resolve("1", "0", &views[1]);
	resolve("1,3", "0,1", &views[2]);
	cr_assert_eq(ddp_views_join(views, 3, &all, indexes, NULL), 0);
	cr_expect_eq(all.count, 2);
	cr_expect_eq(all.gpus[0].number, 1);
	cr_expect_eq(all.gpus[1].number, 3);
	cr_expect_eq(indexes[0][0], 1);
	cr_expect_eq(indexes[1][0], 0);
	cr_expect_eq(indexes[2][0], 0);
	cr_expect_eq(indexes[2][1], 1);
	/* each task names the GPU by its own token */
	cr_expect_eq(ddp_views_format(&views[0], &all, second, 1, text,
				      sizeof(text)), 0);
	cr_expect_str_eq(text, "0");
	cr_expect_eq(ddp_views_format(&views[2], &all, second, 1, text,
				      sizeof(text)), 0);
	cr_expect_str_eq(text, "1");
	cr_expect_eq(ddp_views_format(&views[1], &all, both, 2, text,
				      sizeof(text)), -1);
	cr_expect_eq(ddp_views_format(&views[2], &all, both, 2, text, 3), -1);
}

/*
 * Each row: the variables of two tasks, both as SLURM_STEP_GPUS and as
 * CUDA_VISIBLE_DEVICES; the GPUs that the step has on the node; whether GPU 0
 * has a device file; and the expected answer.
 */
static const struct apart_row {
	const char *first, *second;
	uint32_t on_node;
	bool device;
	bool apart;
	uint32_t all;
} apart_table[] = {
	/* each task counts from 0, and there are GPUs enough for both */
	{ "0", "0", 2, false, true, 2 },
	{ "0,1", "0,1", 4, false, true, 4 },
	{ "0,1", "0", 4, false, true, 3 },
	/* they share: the step has no more GPUs */
	{ "0", "0", 1, false, false, 1 },
	{ "0,1", "0,1", 2, false, false, 2 },
	{ "0,1", "0,1", 3, false, false, 2 },
	/* the number of GPUs is not known */
	{ "0", "0", 0, false, false, 1 },
	/* their GPUs differ already */
	{ "0", "1", 2, false, false, 2 },
	{ "", "0", 2, false, false, 1 },
	{ "", "", 2, false, false, 0 },
	/* the device file shows that both have GPU 0 */
	{ "0", "0", 2, true, false, 1 },
	/* a name is the same GPU for all tasks */
	{ "GPU-1", "GPU-1", 2, false, false, 1 },
};

Test(views, which_count_from_0_in_each_task)
{
	struct ddp_machine *machine = machine_make(1, 1, 1, 1, 4);
	uint32_t indexes[2][DDP_GPU_MAX];
	struct ddp_view views[2], all;
	const struct apart_row *row;
	bool apart;
	size_t i;

	for (i = 0; i < sizeof(apart_table) / sizeof(apart_table[0]); i++) {
		row = &apart_table[i];
		resolve(row->first, row->first, &views[0]);
		resolve(row->second, row->second, &views[1]);
		strcpy(machine->gpus[0].device,
		       row->device ? "/dev/nvidia0" : "");
		cr_assert_eq(ddp_views_join_node(machine, row->on_node, views,
						 2, &all, indexes, &apart,
						 NULL), 0);
		cr_expect_eq(apart, row->apart, "row %zu", i);
		cr_expect_eq(all.count, row->all, "row %zu: %u", i, all.count);
	}
	ddp_machine_destroy(machine);
}

/* All that is known of such GPUs is that they differ. */
Test(views, those_apart_are_unknown)
{
	struct ddp_machine *machine = machine_make(1, 1, 1, 1, 4);
	uint32_t indexes[2][DDP_GPU_MAX], i;
	struct ddp_view views[2], all;
	bool apart;

	resolve("0,1", "0,1", &views[0]);
	resolve("0,1", "0,1", &views[1]);
	cr_assert_eq(ddp_views_join_node(machine, 4, views, 2, &all, indexes,
					 &apart, NULL), 0);
	cr_assert(apart);
	for (i = 0; i < 4; i++) {
		cr_expect_eq(all.gpus[i].gpu, DDP_GPU_NONE);
		cr_expect_eq(indexes[i / 2][i % 2], i);
	}
	cr_expect_str_eq(all.gpus[3].token, "1");
	ddp_machine_destroy(machine);
}

Test(views, more_than_a_node_can_have)
{
	uint32_t indexes[2][DDP_GPU_MAX];
	struct ddp_error error = { 0 };
	struct ddp_view views[2], all;

	view_make(&views[0], DDP_GPU_MAX);
	view_make(&views[1], 1);
	cr_expect_eq(ddp_views_join(views, 2, &all, indexes, &error), 0);
	views[1].gpus[0].number = DDP_GPU_MAX;
	cr_expect_eq(ddp_views_join(views, 2, &all, indexes, &error), -1);
	cr_expect(strstr(error.text, "more than 64 GPUs"));
}
