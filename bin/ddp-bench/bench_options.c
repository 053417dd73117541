/* SPDX-License-Identifier: BSD-3-Clause */
/* The options of ddp-bench, a row each, and what they say together. */
#include "bench.h"

#include <inttypes.h>
#include <stddef.h>

#define AT(field) offsetof(struct options, field)
#define SIZE_UNSET UINT64_MAX

enum { MANY = 1000000, FACTOR_MAX = 1024 };
enum { BACKEND_NCCL, BACKEND_MPI, BACKEND_OPEN };

static const struct backend *const backends[] = {
	[BACKEND_NCCL] = &backend_nccl, [BACKEND_MPI] = &backend_mpi
};

static const struct options defaults = {
	.type = FLOAT, .average = AVERAGE_MEAN,
	.min_bytes = SIZE_UNSET, .max_bytes = SIZE_UNSET,
	.step_bytes = 1 << 20, .step_factor = 1,
	.iters = 20, .warmup_iters = 1, .check = 1, .ngpus = 1, .nthreads = 1
};

static const struct tool_option rows[] = {
	{ "collective", TOOL_CHOICE, AT(collective), .heading = "What",
	  .value = "NAME", .words = collective_words,
	  .help = "all_reduce, reduce_scatter, all_gather or\n"
		  "broadcast (default: all_reduce)" },
	{ "pairs", TOOL_FLAG, AT(pairs),
	  .help = "instead: every pair of nodes; names slow ones" },
	{ "bootstrap", TOOL_FLAG, AT(bootstrap),
	  .help = "instead: the time until ranks can communicate" },
	{ "preflight", TOOL_FLAG, AT(preflight),
	  .help = "instead: name the nodes that are not fit for a job" },
	{ "limit", TOOL_WHOLE, AT(limit), .min = 2, .max = 3600, .value = "N",
	  .help = "of --preflight: seconds without news from any rank\n"
		  "after which it ends (default: 7, or 30 where most\n"
		  "ranks are as slow; 60 for GPUs)" },
	{ "backend", TOOL_CHOICE, AT(backend_index),
	  .words = TOOL_WORDS("nccl", "mpi"),
	  .help = "what moves the data (default: nccl; --preflight:\n"
		  "mpi if the step has no GPU)" },
	{ "minbytes", TOOL_SIZE, AT(min_bytes), .letter = 'b', .value = "SIZE",
	  .heading = "How, in the words of nccl-tests; SIZE in bytes or as "
		     "8K, 64M, 1G",
	  .help = "the first size (default: 32M; of --pairs: 4M)" },
	{ "maxbytes", TOOL_SIZE, AT(max_bytes), .letter = 'e', .value = "SIZE",
	  .help = "the last one (default: 32M; --pairs: the first)" },
	{ "stepbytes", TOOL_SIZE, AT(step_bytes), .letter = 'i',
	  .value = "SIZE",
	  .help = "how much larger the next is (default: 1M)" },
	{ "stepfactor", TOOL_WHOLE, AT(step_factor), .letter = 'f',
	  .min = 1, .max = FACTOR_MAX, .value = "N",
	  .help = "or how many times, if N is above 1" },
	{ "iters", TOOL_WHOLE, AT(iters), .letter = 'n',
	  .min = 1, .max = MANY, .value = "N",
	  .help = "timed calls (default: 20)" },
	{ "warmup_iters", TOOL_WHOLE, AT(warmup_iters), .letter = 'w',
	  .min = 0, .max = MANY, .value = "N",
	  .help = "untimed calls before them (default: 1)" },
	{ "check", TOOL_WHOLE, AT(check), .letter = 'c',
	  .min = 0, .max = MANY, .value = "N",
	  .help = "checked calls after them (default: 1)" },
	{ "average", TOOL_CHOICE, AT(average), .letter = 'a', .own = true,
	  .words = TOOL_WORDS("0", "1", "2", "3"),
	  .help = "the time shown: rank 0's, or the average, least\n"
		  "or greatest of all ranks' (default: 1)" },
	{ "op", TOOL_CHOICE, AT(redop), .letter = 'o', .words = redop_words,
	  .help = "how to reduce (default: sum)" },
	{ "datatype", TOOL_CHOICE, AT(type), .letter = 'd', .value = "TYPE",
	  .words = type_words,
	  .help = "int8, uint8, int32, uint32, int64, uint64, half,\n"
		  "float, double, bfloat16 (default: float)" },
	{ "root", TOOL_WHOLE, AT(root), .letter = 'r',
	  .min = 0, .max = INT32_MAX, .value = "RANK",
	  .help = "of broadcast (default: 0)" },
	{ "ngpus", TOOL_WHOLE, AT(ngpus), .letter = 'g',
	  .min = 1, .max = MANY, .value = "N",
	  .help = "GPUs of a rank: 1" },
	{ "nthreads", TOOL_WHOLE, AT(nthreads), .letter = 't',
	  .min = 1, .max = MANY, .value = "N",
	  .help = "threads of a rank that have GPUs: 1" },
	{ "share-gpu", TOOL_FLAG, AT(share_gpu), .own = true,
	  .help = "let ranks share a GPU, for correctness only" },
	{ "json", TOOL_FLAG, AT(json), .own = true,
	  .help = "print JSON lines" },
	{ "help", TOOL_HELP, AT(help), .letter = 'h', .own = true,
	  .help = "print this text and exit" },
	{ "version", TOOL_ASK, AT(version), .own = true,
	  .help = "print the version and exit" },
};

const struct tool_options bench_options = {
	.program = "ddp-bench",
	.usage =
"Usage: srun --ddp [SRUN OPTIONS] ddp-bench [OPTIONS]\n"
"Measure and check collectives, one process a rank, as nccl-tests does.\n",
	.rows = rows,
	.count = sizeof(rows) / sizeof(rows[0]),
	.stray = "see ddp-bench --help"
};

/* Sizes that were left open. */
static void complete_sizes(struct options *options)
{
	const uint64_t usual = options->pairs ? 4 << 20 : 32 << 20;

	if (options->min_bytes == SIZE_UNSET)
		options->min_bytes = options->max_bytes < usual ?
			options->max_bytes : usual;	/* unset: the largest */
	if (options->max_bytes == SIZE_UNSET)
		options->max_bytes = options->pairs ||
			options->min_bytes > usual ? options->min_bytes : usual;
}

static int check(const struct options *options, struct ddp_error *error)
{
	bool mpi = options->backend_index == BACKEND_MPI;

	if (options->pairs && options->bootstrap)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--pairs and "
				     "--bootstrap are two measurements; leave "
				     "one out");
	if (options->preflight && (options->pairs || options->bootstrap))
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--preflight "
				     "and --%s are two things; leave one out",
				     options->pairs ? "pairs" : "bootstrap");
	if (options->ngpus > 1 || options->nthreads > 1)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--%s %"
				     PRIu64 ": each rank has one GPU here; "
				     "start one rank a GPU: srun --ddp "
				     "--gres=gpu:N ddp-bench",
				     options->ngpus > 1 ? "ngpus" : "nthreads",
				     options->ngpus > 1 ? options->ngpus :
				     options->nthreads);
	if (options->max_bytes < options->min_bytes)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--minbytes "
				     "%" PRIu64 " is more than --maxbytes %"
				     PRIu64 "; choose a larger --maxbytes",
				     options->min_bytes, options->max_bytes);
	if (options->pairs && options->min_bytes != options->max_bytes)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--pairs "
				     "measures one size, not those from "
				     "--minbytes to --maxbytes; leave "
				     "--maxbytes out");
	if (!options->pairs && !options->bootstrap && mpi &&
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
	int result;

	parsed.backend_index = BACKEND_OPEN;
	result = tool_options_parse(&bench_options, argc, argv, &parsed, NULL,
				    error);
	parsed.backend_given = parsed.backend_index != BACKEND_OPEN;
	if (!parsed.backend_given)
		parsed.backend_index = BACKEND_NCCL;
	complete_sizes(&parsed);
	if (result == 0 && !parsed.help && !parsed.version)
		result = check(&parsed, error);
	*options = result == 0 ? parsed : defaults;
	options->backend = backends[parsed.backend_index];
	return result;
}
