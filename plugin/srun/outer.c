/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An srun, sbatch or salloc can be started from within a --ddp step. What that
 * step has set for its own tasks is not for what is started here. What a job
 * says of its steps is not for those that its tasks start, either.
 */
#define _GNU_SOURCE
#include "srun/outer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layout/vars.h"
#include "options/plugin.h"
#include "options/site.h"
#include "options/values.h"
#include "place/report.h"
#include "srun/rerun.h"

/* A value that has been changed since is the user's, and stays. */
static void remove_recorded(const char *record, const char *name)
{
	const char *value = getenv(name);

	if (value && ddp_vars_recorded(record, name, value))
		unsetenv(name);
}

/* The site's variable, "NAME=VALUE", as whatever that step was given. */
static void remove_site(const char *record, const char *variable)
{
	char name[DDP_ENV_SIZE];

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(variable, "="),
		 variable);
	remove_recorded(record, name);
}

void ddp_outer_remove(void)
{
	const char *record = getenv(DDP_VARS_RECORD);
	const struct ddp_var *var;
	size_t i;

	if (!record)
		return;
	for (i = 0; (var = ddp_vars_get(i)); i++)
		remove_recorded(record, var->name);
	for (i = 0; ddp_site_env(i); i++)
		remove_site(record, ddp_site_env(i));
	unsetenv(DDP_PLACEMENT);
	unsetenv(DDP_VARS_RECORD);
}

static void hide(const char *name)
{
	if (getenv(name))
		ddp_rerun_hide(name);
}

void ddp_outer_hide(void)
{
	char name[64], *at;
	size_t i;

	for (i = 0; i < DDP_OPTION_COUNT; i++) {
		if (!ddp_option_table[i].watches)
			continue;
		snprintf(name, sizeof(name), DDP_INHERITED "%s",
			 ddp_option_table[i].name + strlen("--"));
		for (at = name; *at; at++)
			if (*at == '-')
				*at = '_';
		hide(name);
	}
	hide(DDP_TELL_NO_KILL);
}
