/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the newest checkpoint that may be whole, without reading its shards. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "checkpoint/folder.h"
#include "checkpoint/load.h"
#include "checkpoint/manifest.h"
#include "util/error.h"
#include "util/text.h"

/* The steps that load_pass_over() has named. */
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
		result = load_compare_size(manifest, shard, size, error);
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

bool load_is_broken(const char *dir, uint64_t step)
{
	struct manifest manifest = { 0 };
	struct ddp_error error = { 0 };

	if (check_step(dir, step, &manifest, &error) == 0)
		manifest_clear(&manifest);
	return error.code == DDP_ERROR_ARGUMENT;
}

int load_refuse(const char *dir, uint64_t step, const struct ddp_error *cause,
		struct ddp_error *error)
{
	enum ddp_error_code code = cause->code == DDP_ERROR_PEER ?
				   DDP_ERROR_ARGUMENT : DDP_ERROR_SYSTEM;

	return ddp_error_set(error, code, "--resume: %s/step-%"
			     PRIu64 " cannot be read: %s; put that right, or "
			     "name another --checkpoint", dir, step,
			     cause->text);
}

int load_pass_over(uint64_t step, const struct ddp_error *cause)
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

int load_find(const char *dir, struct manifest *manifest,
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
			load_refuse(dir, steps[i], &cause, error);
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
