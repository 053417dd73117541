/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ddp-info: what srun --ddp does with a node's GPUs and CPUs, and why. Without
 * Slurm it plans for nodes that its options describe; in a step it shows what
 * was planned beside what each rank got.
 */
#include <stdio.h>
#include <stdlib.h>

#include "info.h"
#include "tool/tool.h"

static char buffer[1 << 20];

int text_print(char *text, struct ddp_error *error)
{
	if (text == NULL)
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "out of memory");
	fputs(text, stdout);
	free(text);
	return 0;
}

static int gather(struct ddp_error *error)
{
	struct ddp_row row;
	int rc = step_plan(&row, error);

	if (rc > 0)
		rc = ddp_error_set(error, DDP_ERROR_ARGUMENT,
				   "no placement is in DDP_PLACEMENT for this "
				   "task: "
				   "--gather shows plans only");
	if (rc < 0)
		return -1;
	rc = gather_print(&row, error);
	ddp_row_clear(&row);
	return rc;
}

int main(int argc, char **argv)
{
	struct options options;
	struct ddp_error error;
	bool differs = false;
	int rc;

	tool_start();
	/* srun mixes the lines of tasks that write in small pieces. */
	setvbuf(stdout, buffer, _IOFBF, sizeof(buffer));
	rc = options_parse(&options, argc, argv, &error);
	if (rc == 0 && (options.help || options.version))
		return tool_options_answer(&info_options, options.help);
	if (rc == 0 && options.gather)
		rc = gather(&error);
	else if (rc == 0 && getenv("SLURM_PROCID") && !options.describes &&
		 (options.format != FORMAT_TABLE || options.draw != NULL))
		rc = ddp_error_set(&error, DDP_ERROR_ARGUMENT, "--format and "
				   "--draw are for plans: in a step, name a "
				   "--topology or another option of a node");
	else if (rc == 0 && getenv("SLURM_PROCID") && !options.describes)
		rc = step_print(&differs, &error);
	else if (rc == 0)
		rc = plan_print(&options, &error);
	if (rc == 0)
		rc = tool_flush(&error);
	if (rc < 0)
		tool_print_error("ddp-info", &error);
	return rc < 0 || differs;
}
