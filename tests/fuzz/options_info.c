/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzzes the command line of ddp-info. The input is a line an argument. */
#include "fuzz.h"
#include "fuzz_arguments.h"
#include "info.h"

static void check_options(const struct options *options)
{
	CHECK(options->gpus == DDP_GPU_NONE || options->gpus <= DDP_GPU_MAX);
	CHECK(options->masks.count <= TOOL_LIST_MAX);
	CHECK(options->visible.count <= TOOL_LIST_MAX);
	CHECK(options->gpus_policy <= DDP_GPUS_OFF);
	CHECK(options->cpus_policy <= DDP_CPUS_OFF);
	CHECK(options->format <= FORMAT_ENV);
	if (options->nodes || options->tasks || options->topology ||
	    options->masks.count > 0 || options->visible.count > 0)
		CHECK(options->describes);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	char program[] = "ddp-info", *argv[FUZZ_ARGUMENTS_MAX + 1];
	char *text = fuzz_text(data, size);
	int argc = fuzz_arguments(text, program, argv);
	struct ddp_error error = { 0 };
	struct options options;

	if (options_parse(&options, argc, argv, &error))
		fuzz_check_error(&error, DDP_ERROR_ARGUMENT);
	else
		check_options(&options);
	free(text);
	return 0;
}
