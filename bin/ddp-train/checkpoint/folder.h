/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The files of a checkpoint: DIR/step-N/manifest, and beside it the shards that
 * the manifest names. A folder without a manifest was left by a save that did
 * not finish.
 */
#ifndef DDP_TRAIN_FOLDER_H
#define DDP_TRAIN_FOLDER_H

#include <stdbool.h>
#include <stdint.h>

struct ddp_error;

#define FOLDER_MANIFEST "manifest"

/* DIR/step-N/NAME, or without name the folder; NULL if memory is short. */
char *folder_format(const char *dir, uint64_t step, const char *name);

/*
 * The steps of the folders that have a manifest, the last step first: the
 * caller frees *steps. A DIR that is not there has none. Returns their number,
 * or -1 with error set.
 */
int folder_list(const char *dir, uint64_t **steps, struct ddp_error *error);

/* The newest step after `step` whose save did not come to its end; 0: none. */
uint64_t folder_find_unfinished(const char *dir, uint64_t step);

/*
 * Open DIR/step-N, make it if it is not there. Neither follows a link by that
 * name: errno is then ENOTDIR. Returns a descriptor, or -1 with errno set.
 */
int folder_open(const char *dir, uint64_t step);
int folder_make(const char *dir, uint64_t step);

/*
 * Sync a folder, where its file system can do that. Returns 0, or -1 with errno
 * set.
 */
int folder_sync(const char *path);
int folder_sync_open(int fd);

/*
 * The work once step N is committed: leave `keep` checkpoints. Remove the older
 * ones, those of later steps, and the files that other saves left. Steps
 * between `before` and N are removed and do not count: they were broken when
 * --resume took `before`, or were never committed. So are those whose manifest
 * or shards' sizes show that they are broken.
 */
struct folder_prune {
	const char *dir;
	uint64_t step;			/* N */
	uint64_t before;		/* the last one before that loads; 0
					   where there is none */
	uint64_t keep;			/* 1 .. */
	const char *id;			/* of the run */
	bool (*is_broken)(const char *dir, uint64_t step);
};

/*
 * Ends at the first folder that cannot be read or removed; calls note() after
 * each.
 */
void folder_prune(const struct folder_prune *prune, void (*note)(void *),
		  void *context);

/* Remove a file of a save that has failed, and the folder if it is empty. */
void folder_remove_file(const char *dir, uint64_t step, const char *name);

/*
 * Remove the files of saves that did not come to their end; the folders stay
 * and tell. No other run may save there.
 */
void folder_sweep(const char *dir);

/* A wait for what comes late: a file of another node, the end of a run. */
enum { LATE_SECONDS = 10 };

struct late {
	double begun;			/* 0: at the first call */
};

/* Wait a tenth of a second; false, at once, after LATE_SECONDS. */
bool late_wait(struct late *late);

/*
 * owner.c: take DIR for the run `id` until this process ends, and remove what
 * unfinished saves left there. Waits some seconds for a run that is just
 * ending. If the file system has no locks, nothing is removed, and a line on
 * stderr says so. The same is done if the lock is still that of an earlier
 * attempt of this job, which Slurm has ended. Returns 0, or -1 with error set:
 * it names the run that has DIR.
 */
int owner_take(const char *dir, const char *id, struct ddp_error *error);

/*
 * Checks DIR before a commit. Returns 0, or -1 with error set if another run
 * has taken DIR, or if another folder has its place.
 */
int owner_check(const char *dir, const char *id, struct ddp_error *error);

#endif
