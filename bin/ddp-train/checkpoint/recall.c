/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finds the newest checkpoint that may be whole, without reading its shards;
 * and its options: taken over, compared, and what has changed.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "checkpoint/checkpoint.h"
#include "checkpoint/folder.h"
#include "checkpoint/manifest_text.h"
#include "checkpoint/recall.h"
#include "run/train_options.h"
#include "util/error.h"
#include "util/text.h"

/* The steps that recall_pass_over() has named. */
struct broken {
	uint64_t step;
	struct ddp_error cause;
};

static struct broken *broken;
static size_t broken_count;

static int compare_begins(const void *a, const void *b)
{
	const struct range *one = a, *other = b;

	return (one->begin > other->begin) - (one->begin < other->begin);
}

/* Checks that sorted ranges have each of the values once. */
static int check_sorted(const struct range *ranges, int count, size_t values,
			struct ddp_error *error)
{
	size_t end = 0;

	for (int i = 0; i < count; i++) {
		if (ranges[i].end > values)
			return ddp_error_set(error, DDP_ERROR_ARGUMENT, "its "
					     "manifest has shards beyond its "
					     "%zu values", values);
		if (ranges[i].begin < end)
			return ddp_error_set(error, DDP_ERROR_ARGUMENT, "its "
					     "manifest has value %zu twice",
					     ranges[i].begin);
		if (ranges[i].begin > end)
			break;
		end = ranges[i].end;
	}
	if (end == values)
		return 0;
	return ddp_error_set(error, DDP_ERROR_ARGUMENT, "its manifest lacks "
			     "shards from value %zu on", end);
}

/* The shards together must have each value once. */
static int check_ranges(const struct manifest *manifest,
			struct ddp_error *error)
{
	size_t count = (size_t)manifest->range_count;
	struct range *sorted = calloc(count, sizeof(*sorted));
	int result;

	if (!sorted)
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "no memory to "
				     "check it");
	memcpy(sorted, manifest->ranges, count * sizeof(*sorted));
	qsort(sorted, count, sizeof(*sorted), compare_begins);
	result = check_sorted(sorted, manifest->range_count, manifest->values,
			      error);
	free(sorted);
	return result;
}

/* Checks that all shards exist in their sizes, without reading them. */
static int see_shards(const char *dir, const struct manifest *manifest,
		      struct ddp_error *error)
{
	int result = check_ranges(manifest, error);

	for (int i = 0; i < manifest->shard_count && result == 0; i++) {
		const struct manifest_shard *shard = &manifest->shards[i];
		char *path = folder_format(dir, manifest->step, shard->file);
		size_t size;
		int fd;

		if (!path)
			return ddp_error_set(error, DDP_ERROR_SYSTEM,
					     "no memory");
		fd = manifest_open_file(path, shard->file, &size, error);
		free(path);
		if (fd < 0)
			return -1;
		close(fd);
		result = manifest_compare_size(manifest, shard, size, error);
	}
	return result;
}

/*
 * Reads the manifest of a step and checks the sizes of its shards. Returns 0 if
 * the checkpoint may be whole, with its manifest, else -1. The code of the
 * error is DDP_ERROR_ARGUMENT if the checkpoint is broken; with another code it
 * may be whole.
 */
static int check_step(const char *dir, uint64_t step,
		      struct manifest *manifest, struct ddp_error *error)
{
	char *path = folder_format(dir, step, FOLDER_MANIFEST);
	int result = path ? manifest_read(manifest, path, error) :
		     ddp_error_set(error, DDP_ERROR_SYSTEM, "no memory");

	free(path);
	if (result < 0)
		return -1;
	if (manifest->step != step)
		result = ddp_error_set(error, DDP_ERROR_ARGUMENT, "its "
				       "manifest is of step %" PRIu64,
				       manifest->step);
	else
		result = see_shards(dir, manifest, error);
	if (result < 0)
		manifest_clear(manifest);
	return result;
}

bool recall_is_broken(const char *dir, uint64_t step)
{
	struct manifest manifest = { 0 };
	struct ddp_error error = { 0 };

	if (check_step(dir, step, &manifest, &error) == 0)
		manifest_clear(&manifest);
	return error.code == DDP_ERROR_ARGUMENT;
}

int recall_refuse(const char *dir, uint64_t step, const struct ddp_error *cause,
		  struct ddp_error *error)
{
	enum ddp_error_code code = cause->code == DDP_ERROR_PEER ?
				   DDP_ERROR_ARGUMENT : DDP_ERROR_SYSTEM;

	return ddp_error_set(error, code, "--resume: %s/step-%"
			     PRIu64 " cannot be read: %s; put that right, or "
			     "name another --checkpoint", dir, step,
			     cause->text);
}

int recall_pass_over(uint64_t step, const struct ddp_error *cause)
{
	struct broken *more = realloc(broken, (broken_count + 1) *
				      sizeof(*more));

	if (!more)
		return -1;
	broken = more;
	broken[broken_count++] = (struct broken){ step, *cause };
	return 0;
}

/* Returns true, with the cause, if the ranks have found the step broken. */
static bool is_passed_over(uint64_t step, struct ddp_error *cause)
{
	for (size_t i = 0; i < broken_count; i++)
		if (broken[i].step == step) {
			*cause = broken[i].cause;
			return true;
		}
	return false;
}

/*
 * The newest checkpoint below dir whose manifest is whole and whose shards are
 * there, in their sizes, and which was not passed over; manifest->passed says
 * which newer ones are broken. Returns 1; 0 if there is none; or -1 with error
 * set, also where none of several is whole.
 */
static int find_newest(const char *dir, struct manifest *manifest,
		       struct ddp_error *error)
{
	struct ddp_text passed = { 0 };
	struct ddp_error first = { 0 }, cause = { 0 };
	uint64_t *steps;
	int count = folder_list(dir, &steps, error), found = -1;
	bool unread = false;

	for (int i = 0; i < count && !unread; i++) {
		if (!is_passed_over(steps[i], &cause) &&
		    check_step(dir, steps[i], manifest, &cause) == 0) {
			found = i;
			break;
		}
		unread = cause.code != DDP_ERROR_ARGUMENT;
		if (unread)
			recall_refuse(dir, steps[i], &cause, error);
		ddp_text_add(&passed, "the checkpoint %s/step-%" PRIu64
			     " is broken: %s\n", dir, steps[i], cause.text);
		if (i == 0)
			first = cause;
	}
	if (found >= 0) {
		manifest->newest = steps[0];
		manifest->passed = ddp_text_finish(&passed);
	}
	if (found < 0 && count > 0 && !unread)
		ddp_error_set(error, DDP_ERROR_ARGUMENT, "--resume: no "
			      "checkpoint in %s is whole; of the newest one, "
			      "step-%" PRIu64 ": %s; remove the folders "
			      "step-* there to start from the beginning", dir,
			      steps[0], first.text);
	free(passed.data);
	free(steps);
	return found >= 0 ? 1 : count > 0 ? -1 : count;
}

/* ---- options */

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
	found = find_newest(options->checkpoint, manifest, error);
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

static int refuse_change(const struct options *options, const char *name,
			 const char *had, const char *has,
			 struct ddp_error *error)
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
			return refuse_change(options,
					     train_options.rows[name].name,
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
