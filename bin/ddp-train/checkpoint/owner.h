/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One run at a time saves in a folder. Rank 0 holds a lock of the file
 * DIR/.ddp-train-owner, which says who that is. The lock ends with the process,
 * however that ends; where a file system has none between nodes, a run still
 * learns before it commits that another one has taken the folder.
 */
#ifndef DDP_TRAIN_OWNER_H
#define DDP_TRAIN_OWNER_H

#include "checkpoint/checkpoint.h"

/*
 * Take DIR for the run `id` until this process ends, and remove what unfinished
 * saves left there. Waits some seconds for a run that is just ending. If the
 * file system has no locks, nothing is removed, and a line on stderr says so.
 * The same is done if the lock is still that of an earlier attempt of this job,
 * which Slurm has ended. Returns 0, or -1 with error set: it names the run that
 * has DIR.
 */
int owner_take(const char *dir, const char id[CHECKPOINT_ID],
	       struct ddp_error *error);

/*
 * Checks on another rank that DIR is the folder that rank 0 has taken for `id`.
 * Waits some seconds for a file system that shows new files late. Returns 0, or
 * -1 with error set.
 */
int owner_see(const char *dir, const char id[CHECKPOINT_ID],
	      struct ddp_error *error);

/*
 * Checks DIR before a commit. Returns 0, or -1 with error set if another run
 * has taken DIR, or if another folder has its place.
 */
int owner_check(const char *dir, const char id[CHECKPOINT_ID],
		struct ddp_error *error);

#endif
