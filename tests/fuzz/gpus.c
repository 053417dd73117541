/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzzes the variables that tell a task its GPUs. The input is a byte of bits,
 * the GPUs whose device files open and those by AMD, then a line each with
 * SLURM_STEP_GPUS, CUDA_VISIBLE_DEVICES and ROCR_VISIBLE_DEVICES.
 */
#include "fuzz.h"
#include "fuzz_machine.h"
#include "place/visible_gpus.h"

static void check_view(const struct ddp_view *view)
{
	uint32_t i, k;

	CHECK(view->count <= DDP_GPU_MAX);
	for (i = 0; i < view->count; i++) {
		CHECK(view->gpus[i].gpu == DDP_GPU_NONE ||
		      view->gpus[i].gpu < FUZZ_GPUS);
		CHECK(strlen(view->gpus[i].token) < DDP_GPU_TOKEN_SIZE);
		fuzz_check_line(view->gpus[i].token);
		for (k = 0; k < i; k++)
			CHECK(strcmp(view->gpus[i].token,
				     view->gpus[k].token) != 0);
	}
}

/* A view that is written in its own order is the value that was read. */
static void check_format(const struct ddp_view *view, const char *value)
{
	static char text[DDP_VIEWS_TEXT_SIZE];
	uint32_t indexes[1][DDP_GPU_MAX], i;
	struct ddp_view all;

	CHECK(ddp_views_join(view, 1, &all, indexes, NULL) == 0);
	CHECK(all.count == view->count);
	for (i = 1; i < all.count; i++)
		CHECK(all.gpus[i - 1].number <= all.gpus[i].number);
	CHECK(ddp_views_format(view, &all, indexes[0], view->count, text,
			       sizeof(text)) == 0);
	CHECK(strcmp(text, view->count > 0 ? value : "") == 0);
}

/* Each GPU of two tasks is among all of the node, the same one once. */
static void check_node(const struct ddp_view *view,
		       const struct ddp_gpus_env *env,
		       const struct ddp_machine *machine)
{
	struct ddp_gpus_env other = { .cuda = env->step_gpus };
	uint32_t indexes[2][DDP_GPU_MAX], i, k;
	struct ddp_view views[2] = { *view }, all;
	struct ddp_error error = { 0 };
	bool apart = false;

	if (ddp_gpus_resolve(&other, machine, &views[1], NULL))
		return;
	if (ddp_views_join_node(machine, view->count, views, 2, &all, indexes,
				&apart, &error)) {
		fuzz_check_error(&error, DDP_ERROR_ARGUMENT);
		return;
	}
	CHECK(all.count <= view->count + views[1].count);
	for (i = 0; i < all.count; i++)
		CHECK(!apart || all.gpus[i].gpu == DDP_GPU_NONE);
	for (i = 0; i < 2; i++)
		for (k = 0; k < views[i].count; k++) {
			CHECK(indexes[i][k] < all.count);
			CHECK(k == 0 || indexes[i][k] != indexes[i][k - 1]);
		}
}

static void check_env(const struct ddp_gpus_env *env,
		      const struct ddp_machine *machine)
{
	struct ddp_error error = { 0 };
	struct ddp_view view;

	if (ddp_gpus_resolve(env, machine, &view, &error)) {
		fuzz_check_error(&error, DDP_ERROR_ARGUMENT);
		return;
	}
	check_view(&view);
	check_format(&view, view.rocr ? env->rocr : env->cuda);
	check_node(&view, env, machine);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	struct ddp_gpus_env env = { .on_node = 0 };
	struct ddp_machine *machine;
	char *text, *rest;
	uint32_t i;

	if (size == 0)
		return 0;
	machine = fuzz_machine();
	for (i = 0; i < FUZZ_GPUS; i++) {
		machine->gpus[i].reachable = *data >> i & 1;
		machine->gpus[i].vendor = *data >> (4 + i) & 1 ?
			DDP_VENDOR_AMD : DDP_VENDOR_NVIDIA;
	}
	text = fuzz_text(data + 1, size - 1);
	rest = text;
	env.step_gpus = fuzz_next_line(&rest);
	env.cuda = fuzz_next_line(&rest);
	env.rocr = *rest != '\0' ? fuzz_next_line(&rest) : NULL;
	check_env(&env, machine);
	ddp_machine_destroy(machine);
	free(text);
	return 0;
}
