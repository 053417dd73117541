/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The names of the --ddp options, and what their values say. Parsed as root in
 * slurmstepd: words and numbers only.
 */
#ifndef DDP_OPTIONS_VALUES_H
#define DDP_OPTIONS_VALUES_H

#include "options/plugin.h"
#include "util/error.h"

enum ddp_option {
	DDP_OPTION_DDP, DDP_OPTION_PORT, DDP_OPTION_GPUS, DDP_OPTION_CPUS,
	DDP_OPTION_ENV, DDP_OPTION_SUPERVISE, DDP_OPTION_REPORT,
	DDP_OPTION_GRACE, DDP_OPTION_LOGS, DDP_OPTION_SHOW, DDP_OPTION_SIGNAL,
	DDP_OPTION_RESTARTS, DDP_OPTION_SPARES, DDP_OPTION_WATCHDOG,
	DDP_OPTION_CHECK, DDP_OPTION_COUNT
};

/* The names of the options, with "--"; NULL after the last. */
extern const char *const ddp_option_names[DDP_OPTION_COUNT + 1];

/*
 * Set what a value says, or return -1 with the reason. A text that the plugin
 * holds then is the caller's, not a copy.
 */
int ddp_value_parse(enum ddp_option option, const char *text,
		    struct ddp_plugin *plugin, struct ddp_error *error);

/* The same by the option's name ("--ddp-gpus"); value NULL sets nothing. */
int ddp_value_set(const char *name, const char *value,
		  struct ddp_plugin *plugin, struct ddp_error *error);

#endif
