/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The progress alone: progress LOG STEPS SAMPLES TOKENS RANKS [FLOPS PEAK
 * PREDICTED [DONE SECONDS]], LOG "-" for none. Lines on stdin: "step" and the
 * fields of struct progress_step in their order, "eval STEP LOSS", "sleep MS"; at
 * their end, progress_print_end().
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ddp_error.h"
#include "log/progress.h"

static int step(struct progress *progress, const char *line,
		struct ddp_error *error)
{
	struct progress_step step = { 0 };
	char host[64];
	int skipped;

	if (sscanf(line, "step %" SCNu64 "%lf%lf%lf%d%lf%lf%lf%lf%lf%d%63s",
		   &step.step, &step.loss, &step.lr, &step.norm, &skipped,
		   &step.seconds, &step.exposed, &step.waited, &step.busy,
		   &step.slowest_busy, &step.slowest, host) != 12)
		return 2;
	step.skipped = skipped != 0;
	step.host = host;
	return progress_print_step(progress, &step, error);
}

static int obey(struct progress *progress, const char *line,
		struct ddp_error *error)
{
	uint64_t number;
	double loss;
	unsigned int ms;

	if (sscanf(line, "sleep %u", &ms) == 1)
		return usleep(ms * 1000);
	if (sscanf(line, "eval %" SCNu64 "%lf", &number, &loss) == 2)
		return progress_print_eval(progress, number, loss, error);
	return step(progress, line, error);
}

int main(int argc, char **argv)
{
	struct progress *progress = NULL;
	struct progress_plan plan = { 0 };
	struct ddp_error error = { .text = "a bad line on stdin" };
	char line[512];
	int status;

	if (argc != 6 && argc != 9 && argc != 11)
		return 2;
	plan.log = strcmp(argv[1], "-") == 0 ? NULL : argv[1];
	plan.steps = strtoull(argv[2], NULL, 10);
	plan.samples = strtoull(argv[3], NULL, 10);
	plan.tokens = strtoull(argv[4], NULL, 10);
	plan.ranks = atoi(argv[5]);
	plan.flops = argc > 6 ? atof(argv[6]) : 0;
	if (argc > 9) {
		plan.done = strtoull(argv[9], NULL, 10);
		plan.seconds = atof(argv[10]);
	}
	status = progress_open(&progress, &plan, &error);
	if (status == 0 && argc > 6)
		progress_set_rates(progress, atof(argv[7]), atof(argv[8]));
	while (status == 0 && fgets(line, sizeof(line), stdin))
		status = obey(progress, line, &error);
	if (status == 0)
		status = progress_print_end(progress, &error);
	progress_close(progress);
	if (status != 0)
		fprintf(stderr, "%s\n", error.text);
	return status != 0;
}
