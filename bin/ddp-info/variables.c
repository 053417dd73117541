/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Prints the table of the variables that each task gets. The meaning is on a
 * line of its own, or the table would be wider than a terminal.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "info.h"
#include "layout/vars.h"

enum { COLUMNS = 4, PADDED = 2, SET_SIZE = 64 };

/* The cells of a row; the line of column names is before row 0. */
static bool get_row(size_t row, const char *cells[COLUMNS], char set[SET_SIZE])
{
	static const char *const names[COLUMNS] = {
		"VARIABLE", "ORIGIN", "SET", "MEANING",
	};
	const struct ddp_var *var;

	if (row == 0) {
		memcpy(cells, names, sizeof(names));
		return true;
	}
	var = ddp_vars_get(row - 1);
	if (!var)
		return false;
	snprintf(set, SET_SIZE, "%s%s%s", var->when ? var->when :
		 var->rule == DDP_VAR_USERS ? "" : "always",
		 var->when && var->rule == DDP_VAR_USERS ? ", " : "",
		 var->rule == DDP_VAR_USERS ? "unless exported" : "");
	cells[0] = var->name;
	cells[1] = var->origin;
	cells[2] = set;
	cells[3] = var->meaning;
	return true;
}

void variables_print(void)
{
	const char *cells[COLUMNS];
	size_t widths[PADDED] = { 0 }, row, i;
	char set[SET_SIZE];

	for (row = 0; get_row(row, cells, set); row++)
		for (i = 0; i < PADDED; i++)
			if (strlen(cells[i]) > widths[i])
				widths[i] = strlen(cells[i]);
	for (row = 0; get_row(row, cells, set); row++)
		printf("%-*s  %-*s  %s\n%*s  %s\n", (int)widths[0], cells[0],
		       (int)widths[1], cells[1], cells[2],
		       (int)widths[0], "", cells[3]);
}
