/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ddp-info: what srun --ddp does with a node's GPUs and CPUs, and why. Without
 * Slurm it places ranks on nodes that its options describe; in a step it shows
 * what was planned beside what each rank got.
 */
#include <stdio.h>
#include <stdlib.h>

#include "doctor.h"
#include "info.h"
#include "tool/tool.h"

static char buffer[1 << 20];

static int gather(struct ddp_error *error)
{
	struct ddp_row row;
	int rc = compare_read_row(&row, error);

	if (rc > 0)
		rc = ddp_error_set(error, DDP_ERROR_ARGUMENT,
				   "no placement is in DDP_PLACEMENT for this "
				   "task: use --gather in a step of srun "
				   "--ddp");
	if (rc < 0)
		return -1;
	rc = gather_print(&row, error);
	ddp_row_clear(&row);
	return rc;
}

static int work(const struct options *options, bool *differs,
		struct ddp_error *error)
{
	bool in_step = getenv("SLURM_PROCID") && !options->describes;

	if (options->variables) {
		variables_print();
		return 0;
	}
	if (options->doctor)
		return doctor_print(differs, error);
	if (options->gather)
		return gather(error);
	if (!in_step)
		return nodes_print(options, error);
	if (options->format == FORMAT_TABLE && !options->draw)
		return compare_print(differs, error);
	return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--format and --draw "
			     "are for nodes that options describe: in a step, "
			     "name a --topology or another option of a node");
}

int main(int argc, char **argv)
{
	struct options options;
	struct ddp_error error;
	bool differs = false;

	tool_start();
	/* srun mixes the lines of tasks that write in small pieces. */
	setvbuf(stdout, buffer, _IOFBF, sizeof(buffer));
	if (options_parse(&options, argc, argv, &error) == 0) {
		if (options.help || options.version)
			return tool_options_answer(&info_options,
						   options.help);
		if (work(&options, &differs, &error) == 0 &&
		    tool_flush(&error) == 0)
			return differs;
	}
	tool_print_error("ddp-info", &error);
	return 1;
}
