/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints the table of the variables that each task gets. */
#include <stdio.h>

#include "info.h"
#include "layout/vars.h"

void variables_print(void)
{
	const char *const format = "%-20s  %-17s  %-50s  %s\n";
	const struct ddp_var *var;
	char set[64];

	printf(format, "VARIABLE", "ORIGIN", "SET", "MEANING");
	for (size_t i = 0; (var = ddp_vars_get(i)); i++) {
		snprintf(set, sizeof(set), "%s%s%s",
			 var->when ? var->when :
			 var->rule == DDP_VAR_USERS ? "" : "always",
			 var->when && var->rule == DDP_VAR_USERS ? ", " : "",
			 var->rule == DDP_VAR_USERS ? "unless exported" : "");
		printf(format, var->name, var->origin, set, var->meaning);
	}
}
