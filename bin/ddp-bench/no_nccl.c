/* SPDX-License-Identifier: BSD-3-Clause */
/* Replaces nccl.c and preflight*.c in a build without PMIx. */
#include "backend.h"
#include "preflight.h"
#include "tool/tool.h"

static int no_open(int *rank, int *size, struct ddp_error *error)
{
	(void)rank;
	(void)size;
	return ddp_error_set(error, DDP_ERROR_SYSTEM, "this ddp-bench was "
			     "built without PMIx; build it with ./configure "
			     "--with-pmix");
}

const struct backend backend_nccl = { .name = "nccl", .open = no_open };

int preflight_run(const struct options *options)
{
	struct ddp_error error;

	(void)options;
	ddp_error_set(&error, DDP_ERROR_SYSTEM, "--preflight needs PMIx, and "
		      "this ddp-bench was built without it; build it with "
		      "./configure --with-pmix");
	tool_print_error("ddp-bench", &error);
	return 1;
}
