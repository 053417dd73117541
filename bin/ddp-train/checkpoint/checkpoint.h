/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * checkpoint/ saves a run and brings it back. A save: each rank copies its part
 * of the state, and a thread writes that beside its name, syncs it, renames it
 * and syncs the folder; once all ranks have said so, rank 0 does the same with
 * the manifest, and only this commits. owner.c has the folder, save.c copies
 * and writer.c writes, recall.c finds what to go on from and load.c reads it;
 * manifest_text.h is the format, folder.h where files lie.
 *
 * Here: what the run calls. Read it first.
 */
#ifndef DDP_TRAIN_CHECKPOINT_H
#define DDP_TRAIN_CHECKPOINT_H

#include <stdbool.h>
#include <stdint.h>

#include "run/train_options.h"

struct collective;
struct data;
struct ddp_error;
struct manifest;
struct progress;
struct saver;
struct share;
struct trainer;

enum {
	CHECKPOINT_ID = 17,		/* 16 hexadecimal digits and a NUL */
	CHECKPOINT_SUM = 17,		/* likewise */
	CHECKPOINT_OPTIONS = 4096,	/* bytes that describe all options */
	CHECKPOINT_STOPPED = 75		/* exit code: saved, more to do */
};

/*
 * Takes SIGUSR1 and SIGTERM, which ask the run to save and to end: the first
 * one is only noted, and a second one ends the process at once, with exit code
 * 128 + its number. Slurm, srun and the script of a batch job may each send the
 * first one, so signals within two seconds of it count as one. Call it before
 * other threads begin, as they must not get these signals; a later call does
 * nothing. Returns 0, or -1 with error set.
 */
int signals_catch(struct ddp_error *error);

/* Returns true once one of the signals has come. */
bool signals_have_come(void);

/*
 * owner.c: make the folder and take it for this run, whose random name is id.
 * *stop: a rank got a signal, so that all are to end. Collective: a rank whose
 * options are bad calls checkpoint_must_stop() meanwhile. Returns 0, or -1 with
 * error set on the ranks that have one.
 */
int checkpoint_meet(struct collective *collective,
		    const struct options *options, char id[CHECKPOINT_ID],
		    bool *stop, struct ddp_error *error);

/* Returns true if any rank got a signal before the first step. Collective. */
bool checkpoint_must_stop(struct collective *collective);

/*
 * recall.c: find what --resume goes on from, and set the options that are not
 * in `given` from it; *recalled gets their bits. options->from is NULL where
 * there is no checkpoint. Returns 0, or -1 with error set.
 */
int checkpoint_recall(struct options *options, uint64_t given,
		      uint64_t *recalled, struct ddp_error *error);

/*
 * load.c: read all bytes of options->from, each shard on one rank, and see
 * whether they are as they were written; options is NULL where they are bad.
 * Collective. Returns the same on all ranks: 0 if they are, or if not all ranks
 * have the same checkpoint, which the roll call tells; 1 if they are not: parse
 * the options again, which takes the checkpoint before; or -1 with error set.
 */
int checkpoint_check(struct collective *collective,
		     const struct options *options, struct ddp_error *error);

/*
 * Refuse complete options that may not change, and other data than `data`, a
 * line as main.c describes it. Returns 0, or -1 with error set.
 */
int checkpoint_compare(const struct options *options, const char *data,
		       struct ddp_error *error);

/*
 * load.c: the checksum of all bytes of data that is open, of which each rank
 * reads a part: the same on all ranks, and of any number of them. Collective.
 */
void checkpoint_sum_data(struct collective *collective,
			 const struct data *data, char sum[CHECKPOINT_SUM]);

/*
 * Refuse data of another checksum than what options->from has learned. Returns
 * 0, or -1 with error set.
 */
int checkpoint_compare_sum(const struct options *options, const char *sum,
			   struct ddp_error *error);

/*
 * Print from where the run goes on, which newer checkpoints do not serve, and
 * which options have changed.
 */
void checkpoint_print_begin(const struct options *options);

/*
 * load.c: read the masters and moments that this rank updates, the count of
 * updates and the loss scale. What operators read is not set: on all ranks,
 * trainer_share_parameters() is to follow. Collective. Returns 0, or -1 with
 * error set on the ranks that have one.
 */
int checkpoint_load(const struct options *options, struct trainer *trainer,
		    struct ddp_error *error);

/* The step of options->from and the seconds of its steps, or 0. */
uint64_t checkpoint_find_step(const struct options *options);
double checkpoint_find_seconds(const struct options *options);

/* How many steps up to there had no loss that is a number, in a row. */
uint64_t checkpoint_find_bad_steps(const struct options *options);

/* Accepts NULL. */
void checkpoint_free_manifest(struct manifest *manifest);

/*
 * Saves in the background. A rank copies its part of the state, and its thread
 * writes that, while training goes on. What the ranks have to tell each other
 * is in the share that every step exchanges anyway: news and crc.
 *
 * One save is under way at a time: one that is due before is left out. The last
 * one of a run waits.
 */
struct saver_plan {			/* all borrowed until saver_destroy() */
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
