/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of ddp-train. */
#ifndef DDP_TRAIN_OPTIONS_H
#define DDP_TRAIN_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

struct ddp_error;
struct model;

enum backend { BACKEND_AUTO, BACKEND_SELF, BACKEND_MPI };

struct options {
	const struct model *model;
	const char *data;		/* NULL: the model takes none */
	const char *log;		/* NULL: no log */
	enum backend backend;
	uint64_t steps;			/* 1 .. 10^9 */
	uint64_t batch;			/* samples a rank, 1 .. 65536 */
	double lr;			/* above 0 */
	uint64_t seed;
	bool help, version;		/* asked for; the rest is not set */
};

/*
 * Fill options from the arguments; its strings are borrowed from argv.
 * Returns 0, or -1 with error set to DDP_ERROR_ARGUMENT and options to the
 * defaults.  Call it once, before there are threads.
 */
int options_parse(struct options *options, int argc, char **argv,
		  struct ddp_error *error);

/* The text of --help. */
const char *options_help(void);

/*
 * A whole decimal number from min to max, digits only.  Returns 0, or -1 with
 * *number untouched.
 */
int number_parse(const char *text, uint64_t min, uint64_t max,
		 uint64_t *number);

#endif
