/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Saves in the background. A rank copies its part of the state, and its thread
 * writes that, while training goes on. What the ranks have to tell each other
 * is in the share that every step exchanges anyway: news and crc.
 *
 * One save is under way at a time: one that is due before is left out. The last
 * one of a run waits.
 */
#ifndef DDP_TRAIN_SAVE_H
#define DDP_TRAIN_SAVE_H

#include <stdbool.h>
#include <stdint.h>

#include "checkpoint/checkpoint.h"

struct progress;
struct saver;

/* Bits of a share's news: what a rank tells all in a step. */
enum save_news {
	NEWS_STOP = 1,			/* it got a signal */
	NEWS_WRITTEN = 2,		/* its shard is there, with share.crc */
	NEWS_COMMITTED = 4,		/* rank 0: the manifest is, too */
	NEWS_FAILED = 8,		/* it could not be written */
	NEWS_GROWN = 16			/* more of it has been written */
};

/* All borrowed until saver_destroy(). */
struct saver_plan {
	const struct options *options;
	struct collective *collective;
	struct trainer *trainer;
	struct progress *progress;	/* rank 0's; NULL on others */
	const char *data, *data_sum;	/* as the manifest has them */
	const char *id;			/* of the run */
};

/*
 * Starts the thread. Returns 0, or -1 with error set: rank 0 also where a
 * manifest would be longer than what is read.
 */
int saver_create(struct saver **saver, const struct saver_plan *plan,
		 struct ddp_error *error);

/* Sets this rank's news before the shares are exchanged. Accepts NULL. */
void saver_tell(struct saver *saver, struct share *mine);

/*
 * Takes the news of all ranks. Returns 0, or -1 on every rank with the same
 * error if a save has failed. Accepts NULL.
 */
int saver_hear(struct saver *saver, const struct share *shares,
	       struct ddp_error *error);

/* Returns true, the same on all ranks, if the last shares told of a signal. */
bool saver_must_stop(const struct saver *saver);

/*
 * Ends a step: saves if that is due. If it is the `last`, or the run must stop,
 * it saves, and returns once that is committed. Collective. Returns as
 * saver_hear().
 */
int saver_end_step(struct saver *saver, uint64_t step, uint64_t bad_steps,
		   bool last, struct ddp_error *error);

/*
 * Ends the save that is under way, if there is one: a run that ends by an error
 * of all ranks still has the checkpoint that it began. Collective. Accepts
 * NULL.
 */
void saver_finish(struct saver *saver);

/* Waits for the thread to end what it writes. Accepts NULL. */
void saver_destroy(struct saver *saver);

#endif
