/* SPDX-License-Identifier: BSD-3-Clause */
/* The name of a rank's private folder. */
#include "util/private.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

const char *const ddp_private_parents[] = { "/dev/shm", "/tmp", NULL };

void ddp_private_format(uint32_t job_id, uint32_t step_id, uint32_t rank,
			char name[DDP_PRIVATE_SIZE])
{
	snprintf(name, DDP_PRIVATE_SIZE,
		 "slurm-ddp.%" PRIu32 ".%" PRIu32 ".%" PRIu32 ".", job_id,
		 step_id, rank);
}
