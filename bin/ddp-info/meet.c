/* SPDX-License-Identifier: BSD-3-Clause */
/* Tells whether the ranks of a step meet over PMIx, for ddp-info --doctor. */
#include <stdlib.h>

#include "ddp.h"
#include "doctor.h"

enum { DEADLINE_MS = 30000 };

void doctor_meet(void)
{
	const struct ddp_job_options options = {
		.size = sizeof(options),
		.launch = DDP_LAUNCH_PMIX,
		.timeout_ms = DEADLINE_MS,
	};
	struct ddp_error error;
	struct ddp_job *job = ddp_job_create(&options, &error);

	if (job && ddp_job_barrier(job, &error) == 0)
		doctor_print_fact("met yes");
	else
		doctor_print_fact("meet_flaw %s", error.text);
	ddp_job_destroy(job);
}
