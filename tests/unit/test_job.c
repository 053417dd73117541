/* SPDX-License-Identifier: BSD-3-Clause */
/* How structs of options of another version are read. */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "config.h"
#include "job/job.h"
#include "nccl/nccl.h"

#define RESERVED offsetof(struct ddp_nccl_options, reserved)

enum answer { READ, NO_SIZE, UNKNOWN };

/* Options of this size, with the byte at "at" set. */
struct options_row {
	size_t size, at;
	enum answer answer;
};

static int read_options(const void *given, struct ddp_nccl_options *options,
			struct ddp_error *error)
{
	return ddp_job_read_options(given, "ddp_nccl_options", options,
				    sizeof(*options), RESERVED, error);
}

ParameterizedTestParameters(job, options)
{
	static struct options_row table[] = {
		{ 0, 200, NO_SIZE }, { sizeof(size_t) - 1, 200, NO_SIZE },
		{ sizeof(size_t), 200, READ }, { RESERVED, RESERVED, READ },
		{ sizeof(struct ddp_nccl_options), 200, READ },
		{ sizeof(struct ddp_nccl_options), RESERVED, UNKNOWN },
		{ sizeof(struct ddp_nccl_options), RESERVED + 3, UNKNOWN },
		{ 100, 99, UNKNOWN }, { 100, 100, READ },
		{ 4096, 4095, UNKNOWN }, { 4096, 8000, READ },
		{ 4097, 200, NO_SIZE }, { (size_t)1 << 40, 200, NO_SIZE },
		{ SIZE_MAX, 200, NO_SIZE },
	};

	return cr_make_param_array(struct options_row, table,
				   sizeof(table) / sizeof(table[0]));
}

ParameterizedTest(struct options_row *row, job, options)
{
	static union {
		struct ddp_nccl_options options;
		char bytes[8192];
	} given;
	struct ddp_nccl_options options;
	struct ddp_error error = { 0 };
	char text[200] = "";
	int result;

	given.options = (struct ddp_nccl_options){ .size = row->size,
		.ranks_per_root = 7, .timeout_ms = 9 };
	given.bytes[row->at] = 1;
	result = read_options(&given.options, &options, &error);
	given.bytes[row->at] = 0;
	if (row->answer == NO_SIZE)
		snprintf(text, sizeof(text), "the size in struct "
			 "ddp_nccl_options is %zu: set it to sizeof(struct "
			 "ddp_nccl_options)", row->size);
	else if (row->answer == UNKNOWN)
		snprintf(text, sizeof(text), "byte %zu of struct "
			 "ddp_nccl_options is set, which libddp " DDP_VERSION
			 " does not know: zero the struct first, or use a "
			 "newer libddp", row->at);
	cr_expect_eq(result, row->answer == READ ? 0 : -1);
	cr_expect_str_eq(error.text, text);
	cr_expect_eq(options.ranks_per_root,
		     result == 0 && row->size > sizeof(size_t) ? 7 : 0);
}

/* With padding, nobody could tell reserved from what comes after it. */
Test(job, options_have_no_padding)
{
	cr_expect_eq(sizeof(struct ddp_nccl_options),
		     RESERVED + sizeof(uint32_t));
	cr_expect_eq(sizeof(struct ddp_job_options),
		     offsetof(struct ddp_job_options, timeout_ms) +
		     sizeof(int32_t));
}

Test(job, no_options_are_the_defaults)
{
	struct ddp_nccl_options options;

	cr_expect_eq(read_options(NULL, &options, NULL), 0);
	cr_expect_eq(options.timeout_ms, 0);
	cr_expect_null(options.config);
}
