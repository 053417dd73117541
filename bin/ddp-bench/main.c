/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ddp-bench: what the ranks of a job can move, and whether it arrives right;
 * which nodes are slow; how long ranks take to meet. Rank 0 prints.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"
#include "bootstrap.h"
#include "config.h"
#include "layout/scan.h"
#include "pairs.h"
#include "tool/agree.h"
#include "tool/tool.h"

/* Ranks that could not meet say all the same: the first speaks for them. */
static bool is_quiet(void)
{
	static const char *const names[] = {
		"SLURM_PROCID", "PMIX_RANK", "OMPI_COMM_WORLD_RANK"
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		const char *text = getenv(names[i]);
		uint64_t rank;

		if (text && ddp_scan_number(&text, 0, INT_MAX, &rank) == 0)
			return rank > 0;
	}
	return false;
}

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
		return bootstrap_run(world, options, bad, error);
	return bench_run(world, options, bad, error);
}

/* All has been printed; the ranks end alike, also where that failed. */
static int finish(const struct world *world, struct ddp_error *error)
{
	struct ddp_error mine = { 0 };

	tool_flush(&mine);
	return world_agree(world, "", &mine, error);
}

/*
 * Rank 0's, or where the ranks have not met the first task's. A rank that left
 * before could end the step, and the others with it.
 */
static void print_error(const struct world *world,
			const struct ddp_error *error)
{
	static const struct ddp_error none;

	if (world->backend != NULL ? world->rank == 0 : !is_quiet())
		tool_print_error("ddp-bench", error);
	if (world->backend != NULL)
		world_agree(world, "", &none, NULL);
}

/* Meet, measure and part. mine: what is wrong on this rank so far. */
static int run(const struct options *options, struct ddp_error *mine,
	       bool *bad, struct ddp_error *error)
{
	struct world world;
	int rc = world_open(&world, options->backend,
			    mine->code == DDP_ERROR_NONE ? mine : NULL, error);

	/* What is wrong is told after all ranks have met. */
	if (rc == 0)
		rc = work(&world, options, mine, bad, error);
	else if (mine->code != DDP_ERROR_NONE)
		*error = *mine;
	if (rc == 0)
		rc = finish(&world, error);
	if (rc < 0)
		print_error(&world, error);
	world_close(&world);
	bootstrap_end();
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
	if (run(&options, &mine, &bad, &error) == 0)
		return bad;
	return error.code == DDP_ERROR_ARGUMENT ||
	       error.code == DDP_ERROR_PEER ? 2 : 1;
}
