/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpirun and mpiexec start their own daemons by srun, one on each node. Such a
 * step is theirs, not the user's, and is left alone.
 */
#include "launcher.h"

#include <stddef.h>
#include <string.h>

bool ddp_launcher_is_helper(const char *command)
{
	static const char *const helpers[] = {
		"orted", "prted", "hydra_pmi_proxy", "hydra_bstrap_proxy",
	};
	const char *base = strrchr(command, '/');
	size_t i;

	base = base ? base + 1 : command;
	for (i = 0; i < sizeof(helpers) / sizeof(helpers[0]); i++)
		if (strcmp(base, helpers[i]) == 0)
			return true;
	return false;
}
