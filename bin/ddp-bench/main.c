/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ddp-bench: what the ranks of a job can move, and whether it arrives right;
 * which nodes are slow; how long ranks take to meet. Rank 0 prints.
 */
#include <stdio.h>

#include "bench.h"
#include "bootstrap.h"
#include "pairs.h"
#include "preflight.h"
#include "tool/agree.h"
#include "tool/promise.h"
#include "tool/tool.h"

static int work(struct world *world, const struct options *options,
		const struct ddp_error *mine, bool *bad,
		struct ddp_error *error)
{
	char settings[TOOL_SETTINGS_SIZE] = "";

	if (mine->code == DDP_ERROR_NONE)
		tool_options_describe(&bench_options, options, settings,
				      sizeof(settings));
	if (world_agree(world, settings, mine, error) < 0)
		return -1;
	if (options->pairs)
		return pairs_run(world, options, bad, error);
	if (options->bootstrap)
		return (bootstrap_run(world, options, bad), 0);
	return bench_run(world, options, bad, error);
}

/* If the output could not be written, all ranks fail for it. */
static int finish(const struct world *world, struct ddp_error *error)
{
	struct ddp_error mine = { 0 };

	tool_flush(&mine);
	return world_agree(world, "", &mine, error);
}

/*
 * Rank 0 prints, or the first task if the ranks have not met. The others wait
 * for it: a rank that exits with an error could end the step before.
 */
static void print_error(const struct world *world,
			const struct ddp_error *error)
{
	static const struct ddp_error none;

	if (world->backend ? world->rank == 0 : tool_promise_is_first())
		tool_print_error("ddp-bench", error);
	if (world->backend)
		world_agree(world, "", &none, NULL);
}

/* Meet, measure and leave. mine is what is wrong on this rank so far. */
static int run(const struct options *options, struct ddp_error *mine,
	       bool *bad, struct ddp_error *error)
{
	struct world world;
	int rc = world_open(&world, options->backend,
			    mine->code == DDP_ERROR_NONE ? mine : NULL, error);

	/* An error of this rank is reported once all have met. */
	if (rc == 0)
		rc = work(&world, options, mine, bad, error);
	else if (mine->code != DDP_ERROR_NONE)
		*error = *mine;
	if (rc == 0)
		rc = finish(&world, error);
	if (rc < 0)
		print_error(&world, error);
	world_close(&world);
	return rc;
}

int main(int argc, char **argv)
{
	struct options options;
	struct ddp_error mine = { 0 }, error = { 0 };
	bool bad = false;

	tool_start();
	options_parse(&options, argc, argv, &mine);
	if (options.help || options.version)
		return tool_options_answer(&bench_options, options.help);
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (options.preflight)
		return preflight_run(&options);
	if (run(&options, &mine, &bad, &error) == 0)
		return bad;
	return error.code == DDP_ERROR_ARGUMENT ||
	       error.code == DDP_ERROR_PEER ? 2 : 1;
}
