/* SPDX-License-Identifier: BSD-3-Clause */
/* In sbatch and salloc: the checks only. */
#include "plugin.h"
#include "srun/check.h"
#include "srun/cli.h"
#include "srun/outer.h"
#include "srun/policy.h"
#include "srun/srun.h"

void ddp_allocator_init(void)
{
	ddp_outer_remove();
}

void ddp_allocator_post_opt(void)
{
	if (!ddp_check_options() || !ddp_cli_available())
		return;
	ddp_policy_check(0);
	ddp_check_signals();
	if (!ddp_plugin.cpus_trust)
		ddp_check_cpus();
}
