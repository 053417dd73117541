/* SPDX-License-Identifier: BSD-3-Clause */
/* Errors: set, cut, and always one printable line. */
#include <criterion/criterion.h>

#include <string.h>

#include "util/error.h"

Test(error, is_set)
{
	struct ddp_error error = { 0 };

	cr_expect_eq(ddp_error_set(&error, DDP_ERROR_SYSTEM, "%s is %d", "n1",
				   2), -1);
	cr_expect_eq(error.code, DDP_ERROR_SYSTEM);
	cr_expect_str_eq(error.text, "n1 is 2");
}

Test(error, may_be_null)
{
	cr_expect_eq(ddp_error_set(NULL, DDP_ERROR_SYSTEM, "lost"), -1);
}

Test(error, is_cut)
{
	struct ddp_error error;

	ddp_error_set(&error, DDP_ERROR_ARGUMENT, "%1000d", 1);
	cr_expect_eq(strlen(error.text), sizeof(error.text) - 1);
}

/* Text by others can neither end the line nor control the terminal. */
Test(error, is_one_printable_line)
{
	struct ddp_error error;

	ddp_error_set(&error, DDP_ERROR_ARGUMENT, "'%s' is not a word",
		      "a\nsrun: error: b\r\t\033[31m\x7f\x9b\xc3\xa4~");
	cr_expect_str_eq(error.text, "'a?srun: error: b???[31m??\xc3\xa4~' is not "
			 "a word");
}
