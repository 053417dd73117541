/* SPDX-License-Identifier: BSD-3-Clause */
/* The name of the folder that a rank of ddp-train makes for itself. */
#include <criterion/criterion.h>

#include <string.h>

#include "util/private.h"

Test(private, name)
{
	char name[DDP_PRIVATE_SIZE];

	ddp_private_format(12, 0, 3, name);
	cr_expect_str_eq(name, "slurm-ddp.12.0.3.");
}

/* The longest, with its folder and a random end. */
Test(private, fits)
{
	char name[DDP_PRIVATE_SIZE];

	ddp_private_format(4294967295, 4294967295, 4294967295, name);
	cr_expect_str_eq(name, "slurm-ddp.4294967295.4294967295.4294967295.");
	cr_expect_lt(strlen("/dev/shm/") + strlen(name) + strlen("XXXXXX"),
		     DDP_PRIVATE_SIZE);
}
