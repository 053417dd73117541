/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The --ddp options: one table of their names, what srun --help says of them, and
 * how their values are read. Parsed as root in slurmstepd: words and numbers only.
 */
#ifndef DDP_OPTIONS_VALUES_H
#define DDP_OPTIONS_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "options/plugin.h"
#include "util/error.h"

struct ddp_option {
	const char *name;	/* with its "--" */
	const char *values;	/* as srun --help shows them */
	int has_arg;		/* as getopt_long(3) has it; 2: optional */
	bool watches;		/* it is about the watch over one step alone */
	const char *usage;

	/* Sets what a text says, which is then the caller's, not a copy, or
	 * returns -1 with the reason. */
	int (*parse)(const struct ddp_option *option, const char *text,
		     struct ddp_plugin *plugin, struct ddp_error *error);

	/* For parse: the member of struct ddp_plugin that it sets; the numbers
	 * that it takes, and what others are not; or the words that it takes. */
	size_t at, size;
	uint32_t min, max;
	const char *not_number;
	const char *const *words;
};

enum { DDP_OPTION_COUNT = 15 };

/* The first is --ddp itself. */
extern const struct ddp_option ddp_option_table[DDP_OPTION_COUNT];

/*
 * Set what a value says, by the option's name ("--ddp-gpus"); value NULL sets
 * nothing. Returns 0, or -1 with the reason.
 */
int ddp_value_set(const char *name, const char *value,
		  struct ddp_plugin *plugin, struct ddp_error *error);

#endif
