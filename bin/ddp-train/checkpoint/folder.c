/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists, makes, syncs and removes the folders of checkpoints. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "checkpoint/folder.h"
#include "data/path_code.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/scan.h"
#include "util/text.h"

/*
 * The files that may be removed. A shard ends in the run's ID; while it is
 * written, in that twice; that of contrib/pytorch in none.
 */
#define ID "[.][0-9a-f]{16}"
#define STEP_FILES "^(shard-[0-9]+-of-[0-9]+(" ID "){0,2}([.]part)?|" \
		   "manifest(" ID ")?[.]part)$"
#define HALF_FILES "^(shard-[0-9]+-of-[0-9]+|manifest)(" ID "){0,2}[.]part$"

char *folder_format(const char *dir, uint64_t step, const char *name)
{
	struct ddp_text text = { 0 };

	ddp_text_add(&text, "%s/step-%" PRIu64, dir, step);
	if (name)
		ddp_text_add(&text, "/%s", name);
	return ddp_text_finish(&text);
}

/* Returns true if a name is "step-N", and sets *step to N. */
static bool is_step(const char *name, uint64_t *step)
{
	const char *at = name + 5;

	return strncmp(name, "step-", 5) == 0 && (*at != '0' || !at[1]) &&
	       ddp_scan_number(&at, 0, UINT64_MAX, step) == 0 && !*at;
}

/* Returns 1 if the step has a manifest, else 0; -1 with errno set: unknown. */
static int has_manifest(const char *dir, uint64_t step)
{
	char *path = folder_format(dir, step, FOLDER_MANIFEST);
	struct stat status;
	int has = -1;

	errno = ENOMEM;
	if (path && lstat(path, &status) == 0)
		has = 1;
	else if (errno == ENOENT)
		has = 0;
	free(path);
	return has;
}

static int compare_steps(const void *a, const void *b)
{
	uint64_t first = *(const uint64_t *)a, second = *(const uint64_t *)b;

	return first < second ? 1 : first > second ? -1 : 0;
}

/* Returns 1 if it is a real folder, 0 if not or a link; -1 with errno set. */
static int is_folder(DIR *stream, const char *name)
{
	struct stat status;

	if (fstatat(dirfd(stream), name, &status, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -1;
	return S_ISDIR(status.st_mode);
}

/* Add the next step of a folder: 1; 0 after the last; -1 with errno set. */
static int read_step(DIR *stream, uint64_t **steps, int count)
{
	const struct dirent *entry;
	uint64_t step, *more;
	int is = 0;

	do {
		errno = 0;
		entry = readdir(stream);
		if (!entry)
			return errno ? -1 : 0;
		if (is_step(entry->d_name, &step))
			is = is_folder(stream, entry->d_name);
	} while (!is);
	if (is < 0)
		return -1;
	more = realloc(*steps, (size_t)(count + 1) * sizeof(*more));
	if (!more)
		return -1;
	more[count] = step;
	*steps = more;
	return 1;
}

/* The steps of all folders, the last one first; -1 with errno set. */
static int list_all(const char *dir, uint64_t **steps)
{
	DIR *stream = opendir(dir);
	int count = 0, more, cause;

	*steps = NULL;
	if (!stream)
		return errno == ENOENT ? 0 : -1;
	while ((more = read_step(stream, steps, count)) > 0)
		count++;
	cause = errno;
	closedir(stream);
	errno = cause;
	if (count > 1)
		qsort(*steps, (size_t)count, sizeof(**steps), compare_steps);
	return more < 0 ? -1 : count;
}

int folder_list(const char *dir, uint64_t **steps, struct ddp_error *error)
{
	int all = list_all(dir, steps), count = 0, has = all;

	for (int i = 0; i < all && has >= 0; i++) {
		has = has_manifest(dir, (*steps)[i]);
		if (has > 0)
			(*steps)[count++] = (*steps)[i];
	}
	if (has >= 0)
		return count;
	if (errno == ENOTDIR)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--checkpoint "
				     "%s is a file or lies below one; name a "
				     "folder", dir);
	return ddp_error_set(error, find_path_code(errno), "--checkpoint %s: "
			     "cannot be read: %s; name a folder that you may "
			     "read", dir, strerror(errno));
}

uint64_t folder_find_unfinished(const char *dir, uint64_t step)
{
	uint64_t *steps, found = 0;
	int count = list_all(dir, &steps);

	for (int i = 0; i < count && !found && steps[i] > step; i++)
		if (has_manifest(dir, steps[i]) == 0)
			found = steps[i];
	free(steps);
	return found;
}

int folder_sync_open(int fd)
{
	return fsync(fd) < 0 && errno != EINVAL ? -1 : 0;
}

int folder_sync(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int result, cause;

	if (fd < 0)
		return -1;
	result = folder_sync_open(fd);
	cause = errno;
	close(fd);
	errno = cause;
	return result;
}

int folder_open(const char *dir, uint64_t step)
{
	char *path = folder_format(dir, step, NULL);
	int fd = path ? open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW |
			     O_CLOEXEC) : -1;

	free(path);
	return fd;
}

int folder_make(const char *dir, uint64_t step)
{
	char *path = folder_format(dir, step, NULL);
	int result = path ? mkdir(path, 0777) : -1;

	if (path && result < 0 && errno == EEXIST)
		result = 0;
	free(path);
	return result < 0 ? -1 : folder_open(dir, step);
}

/*
 * Remove the files in an open folder whose whole names match, but for those
 * with `but` in them: all others are the user's. Closes the folder.
 */
static void clean(int folder, const char *pattern, const char *but)
{
	const struct dirent *entry;
	DIR *stream = folder < 0 ? NULL : fdopendir(folder);
	regex_t names;

	if (!stream) {
		if (folder >= 0)
			close(folder);
		return;
	}
	if (regcomp(&names, pattern, REG_EXTENDED | REG_NOSUB) == 0) {
		while ((entry = readdir(stream)))
			if (regexec(&names, entry->d_name, 0, NULL, 0) == 0 &&
			    !(but && strstr(entry->d_name, but)))
				unlinkat(folder, entry->d_name, 0);
		regfree(&names);
	}
	closedir(stream);
}

static void remove_folder(const char *dir, uint64_t step)
{
	char *path = folder_format(dir, step, NULL);

	if (path)
		rmdir(path);
	free(path);
}

/*
 * The manifest goes first, so that no part of a checkpoint looks like one. -1:
 * it may still be there.
 */
static int remove_step(const char *dir, uint64_t step)
{
	int folder = folder_open(dir, step);

	if (folder < 0)
		return -1;
	if ((unlinkat(folder, FOLDER_MANIFEST, 0) < 0 && errno != ENOENT) ||
	    folder_sync_open(folder) < 0) {
		close(folder);
		return -1;
	}
	clean(folder, STEP_FILES, NULL);
	remove_folder(dir, step);
	return 0;
}

void folder_remove_file(const char *dir, uint64_t step, const char *name)
{
	int folder = folder_open(dir, step);

	if (folder < 0)
		return;
	unlinkat(folder, name, 0);
	close(folder);
	remove_folder(dir, step);
}

/* Prunes the steps, newest first; -1: one cannot be read or removed. */
static int prune_steps(const struct folder_prune *prune,
		       const uint64_t *steps, int count,
		       void (*note)(void *), void *context)
{
	uint64_t kept = 0;

	for (int i = 0; i < count; i++) {
		int has = steps[i] == prune->step ? 1 :
			  has_manifest(prune->dir, steps[i]);

		if (has < 0)
			return -1;
		if (steps[i] == prune->step ||
		    (steps[i] <= prune->before && has && kept < prune->keep &&
		     !prune->is_broken(prune->dir, steps[i])))
			kept++;
		else if (remove_step(prune->dir, steps[i]) < 0)
			return -1;
		note(context);
	}
	return count < 0 ? -1 : 0;
}

void folder_prune(const struct folder_prune *prune, void (*note)(void *),
		  void *context)
{
	uint64_t *steps;
	int count = list_all(prune->dir, &steps);

	if (prune_steps(prune, steps, count, note, context) == 0)
		clean(folder_open(prune->dir, prune->step), STEP_FILES,
		      prune->id);
	free(steps);
}

void folder_sweep(const char *dir)
{
	uint64_t *steps;
	int count = list_all(dir, &steps);

	for (int i = 0; i < count; i++) {
		int has = has_manifest(dir, steps[i]);

		if (has >= 0)
			clean(folder_open(dir, steps[i]),
			      has ? HALF_FILES : STEP_FILES, NULL);
	}
	free(steps);
}

bool late_wait(struct late *late)
{
	const struct timespec tenth = { .tv_nsec = 100000000 };
	double now = ddp_clock_seconds();

	if (late->begun == 0)
		late->begun = now;
	if (now - late->begun >= LATE_SECONDS)
		return false;
	nanosleep(&tenth, NULL);
	return true;
}
