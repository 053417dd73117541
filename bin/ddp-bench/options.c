/* SPDX-License-Identifier: BSD-3-Clause */
#include "options.h"

#include <getopt.h>
#include <inttypes.h>
#include <string.h>

#include "config.h"
#include "layout/scan.h"

enum { OPT_BACKEND = 256, OPT_COLLECTIVE, OPT_PAIRS, OPT_BOOTSTRAP,
       OPT_SHARE_GPU, OPT_JSON, OPT_VERSION };

static const char letters[] = "+:b:e:i:f:n:w:c:a:o:d:r:h";

static const struct option table[] = {
	{ "backend", required_argument, NULL, OPT_BACKEND },
	{ "collective", required_argument, NULL, OPT_COLLECTIVE },
	{ "pairs", no_argument, NULL, OPT_PAIRS },
	{ "bootstrap", no_argument, NULL, OPT_BOOTSTRAP },
	{ "minbytes", required_argument, NULL, 'b' },
	{ "maxbytes", required_argument, NULL, 'e' },
	{ "stepbytes", required_argument, NULL, 'i' },
	{ "stepfactor", required_argument, NULL, 'f' },
	{ "iters", required_argument, NULL, 'n' },
	{ "warmup_iters", required_argument, NULL, 'w' },
	{ "check", required_argument, NULL, 'c' },
	{ "average", required_argument, NULL, 'a' },
	{ "op", required_argument, NULL, 'o' },
	{ "datatype", required_argument, NULL, 'd' },
	{ "root", required_argument, NULL, 'r' },
	{ "share-gpu", no_argument, NULL, OPT_SHARE_GPU },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, OPT_VERSION },
	{ 0 }
};

#define SIZE_UNSET UINT64_MAX

static const struct options defaults = {
	.backend = &backend_nccl, .type = FLOAT, .average = AVERAGE_MEAN,
	.min_bytes = SIZE_UNSET, .max_bytes = SIZE_UNSET,
	.step_bytes = 1 << 20, .step_factor = 1,
	.iters = 20, .warmup_iters = 1, .check = 1
};

static const char *const backend_words[] = { "nccl", "mpi", NULL };
static const struct backend *const backends[] = {
	&backend_nccl, &backend_mpi
};

const char *options_help(void)
{
	return
"Usage: srun --ddp [SRUN OPTIONS] ddp-bench [OPTIONS]\n"
"Measure and check collectives, one process a rank, as nccl-tests does.\n"
"\n"
"What:\n"
"  --collective NAME         all_reduce, reduce_scatter, all_gather or\n"
"                            broadcast (default: all_reduce)\n"
"  --pairs                   instead: every pair of nodes; names slow ones\n"
"  --bootstrap               instead: the time until ranks can communicate\n"
"  --backend nccl|mpi        what moves the data (default: nccl)\n"
"How, in the words of nccl-tests; SIZE in bytes or as 8K, 64M, 1G:\n"
"  -b, --minbytes SIZE       the first size (default: 32M; of --pairs: 4M)\n"
"  -e, --maxbytes SIZE       the last one (default: 32M; --pairs: the first)\n"
"  -i, --stepbytes SIZE      how much larger the next is (default: 1M)\n"
"  -f, --stepfactor N        or how many times, if N is above 1\n"
"  -n, --iters N             timed calls (default: 20)\n"
"  -w, --warmup_iters N      untimed calls before them (default: 1)\n"
"  -c, --check N             checked calls after them (default: 1)\n"
"  -a, --average 0|1|2|3     the time shown: rank 0's, or the average, least\n"
"                            or greatest of all ranks' (default: 1)\n"
"  -o, --op sum|prod|max|min how to reduce (default: sum)\n"
"  -d, --datatype TYPE       int8, uint8, int32, uint32, int64, uint64, half,\n"
"                            float, double, bfloat16 (default: float)\n"
"  -r, --root RANK           of broadcast (default: 0)\n"
"  --share-gpu               let ranks share a GPU, for correctness only\n"
"  --json                    print JSON lines\n"
"  -h, --help, --version     print this text or the version, and exit\n";
}

static int set_number(const char *name, uint64_t min, uint64_t max,
		      uint64_t *number, struct ddp_error *error)
{
	const char *at = optarg;

	if (ddp_scan_number(&at, min, max, number) == 0 && *at == '\0')
		return 0;
	return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--%s '%s' is not a "
			     "whole number from %" PRIu64 " to %" PRIu64, name,
			     optarg, min, max);
}

/* 1 to 1 TiB. */
static int set_size(const char *name, uint64_t *size, struct ddp_error *error)
{
	static const char units[] = "KkMmGg";
	const uint64_t max = (uint64_t)1 << 40;
	const char *at = optarg, *unit;
	uint64_t number;
	int shift = 0;

	if (ddp_scan_number(&at, 1, max, &number) == 0) {
		unit = *at != '\0' ? strchr(units, *at) : NULL;
		if (unit != NULL) {
			shift = 10 * (1 + (int)(unit - units) / 2);
			at++;
		}
		if (*at == '\0' && number <= max >> shift) {
			*size = number << shift;
			return 0;
		}
	}
	return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--%s '%s' is not a "
			     "size from 1 to 1024G, such as 8, 64K, 32M or 1G",
			     name, optarg);
}

static int set_word(const char *what, const char *const *words, int *index,
		    struct ddp_error *error)
{
	int found = ddp_scan_word(what, optarg, words, error);

	if (found < 0)
		return -1;
	*index = found;
	return 0;
}

static int set_mode(struct options *options, enum mode mode,
		    struct ddp_error *error)
{
	if (options->mode != MODE_COLLECTIVE && options->mode != mode)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--pairs and "
				     "--bootstrap are two measurements; leave "
				     "one out");
	options->mode = mode;
	return 0;
}

static int set_enum(struct options *options, int option,
		    struct ddp_error *error)
{
	int index;

	switch (option) {
	case OPT_BACKEND:
		if (set_word("--backend", backend_words, &index, error))
			return -1;
		options->backend = backends[index];
		return 0;
	case OPT_COLLECTIVE:
		if (set_word("--collective", collective_words, &index, error))
			return -1;
		options->collective = (enum collective)index;
		return 0;
	case 'o':
		if (set_word("--op", redop_words, &index, error))
			return -1;
		options->redop = (enum redop)index;
		return 0;
	}
	if (set_word("--datatype", type_words, &index, error))
		return -1;
	options->type = (enum type)index;
	return 0;
}

static int set_average(enum average *average, struct ddp_error *error)
{
	uint64_t number;

	if (set_number("average", 0, 3, &number, error) < 0)
		return -1;
	*average = (enum average)number;
	return 0;
}

static int set(struct options *options, int option, const char *argument,
	       struct ddp_error *error)
{
	const uint64_t many = 1000000;

	switch (option) {
	case OPT_BACKEND: case OPT_COLLECTIVE: case 'o': case 'd':
		return set_enum(options, option, error);
	case OPT_PAIRS: return set_mode(options, MODE_PAIRS, error);
	case OPT_BOOTSTRAP: return set_mode(options, MODE_BOOTSTRAP, error);
	case OPT_SHARE_GPU: options->share_gpu = true; return 0;
	case OPT_JSON: options->json = true; return 0;
	case 'h': options->help = true; return 0;
	case OPT_VERSION: options->version = true; return 0;
	case 'a': return set_average(&options->average, error);
	case 'b': return set_size("minbytes", &options->min_bytes, error);
	case 'e': return set_size("maxbytes", &options->max_bytes, error);
	case 'i': return set_size("stepbytes", &options->step_bytes, error);
	case 'f':
		return set_number("stepfactor", 1, 1024, &options->step_factor,
				  error);
	case 'n':
		return set_number("iters", 1, many, &options->iters, error);
	case 'w':
		return set_number("warmup_iters", 0, many,
				  &options->warmup_iters, error);
	case 'c':
		return set_number("check", 0, many, &options->check, error);
	case 'r':
		return set_number("root", 0, INT32_MAX, &options->root, error);
	case ':':
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "%s needs a "
				     "value; see ddp-bench --help", argument);
	}
	return ddp_error_set(error, DDP_ERROR_ARGUMENT, "%s is not an option "
			     "of ddp-bench; see ddp-bench --help", argument);
}

/* What the options say together. */
static int complete(struct options *options, struct ddp_error *error)
{
	const uint64_t usual = options->mode == MODE_PAIRS ? 4 << 20 : 32 << 20;

	if (options->min_bytes == SIZE_UNSET)
		options->min_bytes = options->max_bytes < usual ?
			options->max_bytes : usual;	/* unset: the largest */
	if (options->max_bytes == SIZE_UNSET)
		options->max_bytes = options->mode == MODE_PAIRS ||
			options->min_bytes > usual ? options->min_bytes : usual;
	if (options->max_bytes < options->min_bytes)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--minbytes "
				     "%" PRIu64 " is more than --maxbytes %"
				     PRIu64, options->min_bytes,
				     options->max_bytes);
	if (options->mode == MODE_BOOTSTRAP &&
	    options->backend == &backend_mpi)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--bootstrap "
				     "measures libddp next to MPI; leave "
				     "--backend mpi out");
	if (options->mode == MODE_PAIRS &&
	    options->min_bytes != options->max_bytes)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--pairs "
				     "measures one size, not those from "
				     "--minbytes to --maxbytes; leave "
				     "--maxbytes out");
	if (options->mode == MODE_COLLECTIVE &&
	    options->backend == &backend_mpi &&
	    (options->type == HALF || options->type == BFLOAT16))
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "MPI has no "
				     "--datatype %s; choose float, or "
				     "--backend nccl",
				     type_words[options->type]);
	return 0;
}

int options_parse(struct options *options, int argc, char **argv,
		  struct ddp_error *error)
{
	struct options parsed = defaults;
	const char *argument = argv[optind];
	int option, bad = 0;

	opterr = 0;
	while ((option = getopt_long(argc, argv, letters, table, NULL)) != -1) {
		bad |= set(&parsed, option, argument, bad ? NULL : error);
		if (parsed.help || parsed.version)
			break;
		argument = argv[optind];
	}
	if (!bad && optind < argc && !parsed.help && !parsed.version)
		bad = ddp_error_set(error, DDP_ERROR_ARGUMENT, "'%s' is not "
				    "an option; see ddp-bench --help",
				    argv[optind]);
	if (!bad && !parsed.help && !parsed.version)
		bad = complete(&parsed, error);
	*options = bad ? defaults : parsed;
	options->backend = parsed.backend;
	return bad ? -1 : 0;
}
