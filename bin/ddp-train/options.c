/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "layout/error.h"
#include "model.h"
#include "options.h"

enum { OPT_MODEL = 256, OPT_DATA, OPT_BACKEND, OPT_STEPS, OPT_BATCH, OPT_LR,
       OPT_SEED, OPT_LOG, OPT_HELP, OPT_VERSION };

static const struct option table[] = {
	{ "model", required_argument, NULL, OPT_MODEL },
	{ "data", required_argument, NULL, OPT_DATA },
	{ "backend", required_argument, NULL, OPT_BACKEND },
	{ "steps", required_argument, NULL, OPT_STEPS },
	{ "batch", required_argument, NULL, OPT_BATCH },
	{ "lr", required_argument, NULL, OPT_LR },
	{ "seed", required_argument, NULL, OPT_SEED },
	{ "log", required_argument, NULL, OPT_LOG },
	{ "help", no_argument, NULL, OPT_HELP },
	{ "version", no_argument, NULL, OPT_VERSION },
	{ 0 }
};

static const struct options defaults = {
	.backend = BACKEND_AUTO, .steps = 100, .batch = 64, .seed = 1
};

const char *options_help(void)
{
	return
"Usage: srun --ddp [SRUN OPTIONS] ddp-train [OPTIONS]\n"
"Train a small model, one process a rank, gradients averaged each step.\n"
"\n"
"  --model toy|mlp          toy: 10-10-5 on random data; mlp: next byte of\n"
"                           --data (default: mlp with --data, else toy)\n"
"  --data FILE              the text to learn, the same on every node\n"
"  --backend auto|mpi|self  how ranks meet (default: auto)\n"
"  --steps N                steps to train (default: 100)\n"
"  --batch N                samples a rank and step (default: 64)\n"
"  --lr X                   learning rate (default: toy 0.001, mlp 0.2)\n"
"  --seed N                 of data and parameters (default: 1)\n"
"  --log FILE               write one JSON object a step\n"
"  --help, --version        print this text or the version, and exit\n";
}

int number_parse(const char *text, uint64_t min, uint64_t max,
		 uint64_t *number)
{
	unsigned long long value;

	/* strtoull would take a sign and blanks before the digits. */
	if (!*text || text[strspn(text, "0123456789")])
		return -1;
	errno = 0;
	value = strtoull(text, NULL, 10);
	if (errno || value < min || value > max)
		return -1;
	*number = value;
	return 0;
}

static int set_number(uint64_t min, uint64_t max, const char *name,
		      uint64_t *number, struct ddp_error *error)
{
	if (number_parse(optarg, min, max, number) == 0)
		return 0;
	return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--%s '%s' is not a "
			     "whole number from %" PRIu64 " to %" PRIu64,
			     name, optarg, min, max);
}

static int set_lr(double *lr, struct ddp_error *error)
{
	char *end = optarg;
	double value = 0;

	if (isdigit((unsigned char)*optarg) || *optarg == '.')
		value = strtod(optarg, &end);
	if (end == optarg || *end || !isfinite(value) || value <= 0)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--lr '%s' is "
				     "not a number above 0", optarg);
	*lr = value;
	return 0;
}

static int set_model(const struct model **model, struct ddp_error *error)
{
	if (strcmp(optarg, model_toy.name) == 0)
		*model = &model_toy;
	else if (strcmp(optarg, model_mlp.name) == 0)
		*model = &model_mlp;
	else
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--model '%s' "
				     "is not known; choose toy or mlp",
				     optarg);
	return 0;
}

static int set_backend(enum backend *backend, struct ddp_error *error)
{
	if (strcmp(optarg, "auto") == 0)
		*backend = BACKEND_AUTO;
	else if (strcmp(optarg, "mpi") == 0)
		*backend = BACKEND_MPI;
	else if (strcmp(optarg, "self") == 0)
		*backend = BACKEND_SELF;
	else
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--backend "
				     "'%s' is not known; choose auto, mpi or "
				     "self", optarg);
	return 0;
}

static int set_path(const char **path, const char *name,
		    struct ddp_error *error)
{
	if (!*optarg)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				     "--%s needs a file name", name);
	*path = optarg;
	return 0;
}

static int set(struct options *options, int option, const char *argument,
	       struct ddp_error *error)
{
	switch (option) {
	case OPT_MODEL:
		return set_model(&options->model, error);
	case OPT_DATA:
		return set_path(&options->data, "data", error);
	case OPT_BACKEND:
		return set_backend(&options->backend, error);
	case OPT_STEPS:
		return set_number(1, 1000000000, "steps", &options->steps,
				  error);
	case OPT_BATCH:
		return set_number(1, 65536, "batch", &options->batch, error);
	case OPT_LR:
		return set_lr(&options->lr, error);
	case OPT_SEED:
		return set_number(0, UINT64_MAX, "seed", &options->seed,
				  error);
	case OPT_LOG:
		return set_path(&options->log, "log", error);
	case OPT_HELP:
		options->help = true;
		return 0;
	case OPT_VERSION:
		options->version = true;
		return 0;
	case ':':
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "%s needs a "
				     "value; see ddp-train --help", argument);
	}
	return ddp_error_set(error, DDP_ERROR_ARGUMENT, "%s is not an option "
			     "of ddp-train; see ddp-train --help", argument);
}

/* What the options say together. */
static int complete(struct options *options, struct ddp_error *error)
{
	if (!options->model)
		options->model = options->data ? &model_mlp : &model_toy;
	if (options->model->data_size && !options->data)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--model %s "
				     "needs --data FILE",
				     options->model->name);
	if (!options->model->data_size && options->data)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--model %s "
				     "takes no --data; leave one of them out",
				     options->model->name);
	if (options->lr == 0)
		options->lr = options->model->lr;
	return 0;
}

int options_parse(struct options *options, int argc, char **argv,
		  struct ddp_error *error)
{
	struct options parsed = defaults;
	const char *argument = argv[optind];
	int option;

	*options = defaults;
	opterr = 0;
	while ((option = getopt_long(argc, argv, "+:", table, NULL)) != -1) {
		if (set(&parsed, option, argument, error) < 0)
			return -1;
		if (parsed.help || parsed.version)
			goto done;
		argument = argv[optind];
	}
	if (optind < argc)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "'%s' is not "
				     "an option; a file is named by --data",
				     argv[optind]);
	if (complete(&parsed, error) < 0)
		return -1;
done:
	*options = parsed;
	return 0;
}
