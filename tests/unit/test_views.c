/* SPDX-License-Identifier: BSD-3-Clause */
/* The views of a node's tasks, put together. */
#include <criterion/criterion.h>

#include <string.h>

#include "machines.h"
#include "place/views.h"

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
