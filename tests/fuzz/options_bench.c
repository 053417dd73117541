/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzzes the command line of ddp-bench. The input is a line an argument. The
 * backends are stubs without a function.
 */
#include "fuzz.h"
#include "fuzz_arguments.h"
#include "bench.h"

const struct backend backend_mpi = { .name = "mpi" };
const struct backend backend_nccl = { .name = "nccl" };

static void check_options(const struct options *options)
{
	CHECK(options->collective <= BROADCAST);
	CHECK(options->type <= BFLOAT16);
	CHECK(options->redop <= MIN);
	CHECK(options->average <= AVERAGE_MAX);
	CHECK(options->min_bytes >= 1);
	CHECK(options->min_bytes <= options->max_bytes);
	CHECK(options->max_bytes <= 1ull << 40);
	CHECK(options->step_bytes >= 1 && options->step_factor >= 1);
	CHECK(options->iters >= 1 && options->iters <= 1000000);
	CHECK(options->root <= INT32_MAX);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	char program[] = "ddp-bench", *argv[FUZZ_ARGUMENTS_MAX + 1];
	char *text = fuzz_text(data, size);
	int argc = fuzz_arguments(text, program, argv);
	struct ddp_error error = { 0 };
	struct options options;

	if (options_parse(&options, argc, argv, &error))
		fuzz_check_error(&error, DDP_ERROR_ARGUMENT);
	else if (!options.help && !options.version)
		check_options(&options);
	CHECK(options.backend == &backend_mpi ||
	      options.backend == &backend_nccl);
	free(text);
	return 0;
}
