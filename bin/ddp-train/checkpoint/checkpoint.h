/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * checkpoint/ saves a run and brings it back. A save: each rank copies its part
 * of the state, and a thread writes that beside its name, syncs it, renames it
 * and syncs the folder; once all ranks have said so, rank 0 does the same with
 * the manifest, and only this commits. save.h writes, load.h reads, manifest.h
 * is the format, folder.h where files lie, owner.h whose they are, recall.c
 * what options come back.
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
struct share;
struct trainer;

enum {
	CHECKPOINT_ID = 17,		/* 16 hexadecimal digits and a NUL */
	CHECKPOINT_SUM = 17,		/* likewise */
	CHECKPOINT_OPTIONS = 4096,	/* bytes that describe all options */
	CHECKPOINT_STOPPED = 75		/* exit code: saved, more to do */
};

/*
 * Make the folder and take it for this run, whose random name is id: see
 * owner.h. *stop: a rank got a signal, so that all are to end. Collective: a
 * rank whose options are bad calls checkpoint_must_stop() meanwhile. Returns 0,
 * or -1 with error set on the ranks that have one.
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
 * check.c: read all bytes of options->from, each shard on one rank, and see
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
 * check.c: the checksum of all bytes of data that is open, of which each rank
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
 * check.c: read the masters and moments that this rank updates, the count of
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

#endif
