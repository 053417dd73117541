/* SPDX-License-Identifier: BSD-3-Clause */
/* The options of a checkpoint: taken over, compared, and what has changed. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/checkpoint.h"
#include "checkpoint/folder.h"
#include "checkpoint/load.h"
#include "checkpoint/manifest.h"
#include "run/train_options.h"
#include "util/error.h"
#include "util/text.h"

/*
 * These options are never taken over: they are for one run, and --batch follows
 * from the number of ranks.
 */
static const uint64_t not_recalled = UINT64_C(1) << OPT_BATCH |
	UINT64_C(1) << OPT_PLAN | UINT64_C(1) << OPT_CHECKPOINT |
	UINT64_C(1) << OPT_RESUME;

void checkpoint_free_manifest(struct manifest *manifest)
{
	if (manifest)
		manifest_clear(manifest);
	free(manifest);
}

uint64_t checkpoint_find_step(const struct options *options)
{
	return options->from ? options->from->step : 0;
}

double checkpoint_find_seconds(const struct options *options)
{
	return options->from ? options->from->seconds : 0;
}

uint64_t checkpoint_find_bad_steps(const struct options *options)
{
	return options->from ? options->from->bad_steps : 0;
}

/* The value that lines have for "--name", cut out; NULL: none. */
static const char *find_value(const char *lines, const char *name, char *value,
			      size_t size)
{
	size_t length = strlen(name);

	for (; *lines; lines += strcspn(lines, "\n") + 1)
		if (strncmp(lines, "--", 2) == 0 &&
		    strncmp(lines + 2, name, length) == 0 &&
		    lines[2 + length] == ' ') {
			lines += length + 3;
			snprintf(value, size, "%.*s",
				 (int)strcspn(lines, "\n"), lines);
			return value;
		}
	return NULL;
}

/* Returns true if a row's value has changed, with both values, printable. */
static bool has_changed(const struct options *options, const char *now,
			enum option_name name, char had[256], char has[256])
{
	const char *row = train_options.rows[name].name;

	if (!find_value(options->from->options, row, had, 256) ||
	    !find_value(now, row, has, 256) || strcmp(had, has) == 0)
		return false;
	ddp_text_quote(had);
	ddp_text_quote(has);
	return true;
}

int checkpoint_recall(struct options *options, uint64_t given,
		      uint64_t *recalled, struct ddp_error *error)
{
	struct manifest *manifest = calloc(1, sizeof(*manifest));
	char now[CHECKPOINT_OPTIONS], had[256], has[256];
	int found;

	if (!manifest)
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "no memory for "
				     "a checkpoint");
	found = load_find(options->checkpoint, manifest, error);
	if (found <= 0) {
		free(manifest);
		return found;
	}
	options->from = manifest;
	/* The parser cuts up one copy; the other one is compared. */
	manifest->compared = strdup(manifest->options);
	manifest->options = manifest->compared;
	if (!manifest->options)
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "no memory for "
				     "a checkpoint");
	/* These follow from --dtype. */
	tool_options_describe(&train_options, options, now, sizeof(now));
	if (given >> OPT_DTYPE & 1 &&
	    has_changed(options, now, OPT_DTYPE, had, has))
		given |= UINT64_C(1) << OPT_GRAD_DTYPE |
			 UINT64_C(1) << OPT_ROUNDING |
			 UINT64_C(1) << OPT_TF32 |
			 UINT64_C(1) << OPT_ATTENTION;
	if (tool_options_recall(&train_options, manifest->option_text,
				given | not_recalled, options, recalled,
				error) < 0)
		return -1;
	if (options->steps >= manifest->step)
		return 0;
	return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--resume: --steps %"
			     PRIu64 " is below the step of %s/step-%" PRIu64
			     "; choose a larger one", options->steps,
			     options->checkpoint, manifest->step);
}

static int refuse(const struct options *options, const char *name,
		  const char *had, const char *has, struct ddp_error *error)
{
	return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--resume: --%s is %s "
			     "in %s/step-%" PRIu64 ", not %s; leave it out, "
			     "or train anew into another --checkpoint", name,
			     had, options->checkpoint, options->from->step,
			     has);
}

/* Held-out data is not trained on, so it must stay what it was. */
static bool may_change(enum option_name name, const char *had, const char *has)
{
	if (name == OPT_EVAL_EVERY)
		return (strcmp(had, "0") == 0) == (strcmp(has, "0") == 0);
	return train_options.rows[name].mark & MAY_CHANGE;
}

int checkpoint_compare(const struct options *options, const char *data,
		       struct ddp_error *error)
{
	const struct manifest *from = options->from;
	char now[CHECKPOINT_OPTIONS], had[256], has[256];

	if (!from)
		return 0;
	tool_options_describe(&train_options, options, now, sizeof(now));
	for (int name = 0; name < OPTIONS; name++)
		if (has_changed(options, now, name, had, has) &&
		    !may_change(name, had, has))
			return refuse(options, train_options.rows[name].name,
				      had, has, error);
	if (from->data && strcmp(data, from->data) != 0)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--resume: "
				     "%s/step-%" PRIu64 " has learned %s, not "
				     "%s; name the same file",
				     options->checkpoint, from->step,
				     from->data, data);
	return 0;
}

int checkpoint_compare_sum(const struct options *options, const char *sum,
			   struct ddp_error *error)
{
	const struct manifest *from = options->from;

	if (!from || !from->data_sum || strcmp(sum, from->data_sum) == 0)
		return 0;
	return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--resume: %s/step-%"
			     PRIu64 " has learned a file of the size of --%s "
			     "%s, but not of these bytes; name the same file",
			     options->checkpoint, from->step,
			     options->format == DATA_TOKENS ? "tokens" : "data",
			     options->data);
}

/* Newer checkpoints that do not serve: broken ones, and half a save. */
static void print_passed(const struct options *options)
{
	const char *line = options->from ? options->from->passed : "";
	uint64_t step = checkpoint_find_step(options);
	uint64_t half = folder_find_unfinished(options->checkpoint, step);

	while (line && *line) {
		int length = (int)strcspn(line, "\n");

		fprintf(stderr, "ddp-train: %.*s; --resume takes step-%" PRIu64
			"\n", length, line, step);
		line += length + 1;
	}
	if (half)
		fprintf(stderr, "ddp-train: the save of %s/step-%" PRIu64
			" did not come to its end\n", options->checkpoint,
			half);
}

void checkpoint_print_begin(const struct options *options)
{
	const bool cosine = options->schedule == SCHEDULE_COSINE;
	char now[CHECKPOINT_OPTIONS], had[256], has[256];
	bool falls = false;

	if (!options->resume)
		return;
	print_passed(options);
	if (!options->from) {
		printf("no checkpoint in %s: from the beginning\n",
		       options->checkpoint);
		return;
	}
	printf("resumed from %s/step-%" PRIu64 "%s\n", options->checkpoint,
	       options->from->step, options->from->step == options->steps ?
	       ", whose steps are all done; to train on, give more by --steps" :
	       "");
	tool_options_describe(&train_options, options, now, sizeof(now));
	for (int name = 0; name < OPTIONS; name++) {
		if ((not_recalled & ~(UINT64_C(1) << OPT_BATCH)) >> name & 1 ||
		    !has_changed(options, now, name, had, has))
			continue;
		printf("--%s is %s, was %s\n", train_options.rows[name].name,
		       has, had);
		if (name == OPT_DTYPE && options->dtype == DEVICE_FP16)
			printf("so the loss scale begins at %d\n",
			       LOSS_SCALE_FIRST);
		falls = falls || name == OPT_STEPS || name == OPT_LR ||
			name == OPT_MIN_LR || name == OPT_WARMUP;
	}
	if (falls && cosine)
		printf("so the cosine of the learning rate is another one\n");
}
