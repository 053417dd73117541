/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ranks read a checkpoint together: each checks some of its shards, and
 * then loads what it updates. So they read the data that it has learned.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "checkpoint/checkpoint.h"
#include "checkpoint/folder.h"
#include "checkpoint/manifest_text.h"
#include "checkpoint/recall.h"
#include "collective.h"
#include "data/data.h"
#include "ddp.h"
#include "run/world.h"
#include "step/state.h"
#include "step/trainer.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/text.h"

/* ---- the ranks meet while one reads */

/* The record that each rank sends to all others. */
struct round {
	uint64_t step;
	uint64_t sum;			/* of its part of the data */
	bool resumes, done;
};

struct check {
	struct collective *collective;
	struct round mine, *all;
	double met;			/* the moment of the last round */
};

static void meet(struct check *check)
{
	struct collective *collective = check->collective;

	collective->table->agree(collective, &check->mine, check->all,
				 sizeof(check->mine));
	check->met = ddp_clock_seconds();
}

/*
 * Meets the other ranks each second, so that those that have read do not miss
 * one that reads.
 */
static void pause_check(struct check *check)
{
	if (ddp_clock_seconds() - check->met < 1)
		return;
	meet(check);
	ddp_heartbeat();
}

static bool are_done(const struct check *check)
{
	bool done = true;

	for (int rank = 0; rank < check->collective->size; rank++)
		done = done && check->all[rank].done;
	return done;
}

/* Meets the ranks that still read, once this one has read its part. */
static void wait_for_others(struct check *check)
{
	check->mine.done = true;
	do {
		meet(check);
		ddp_heartbeat();
	} while (!are_done(check));
}

/* Ends all ranks where there is no memory, as the others wait for this one. */
static void begin(struct check *check, struct collective *collective,
		  const struct manifest *from)
{
	*check = (struct check){
		.collective = collective,
		.mine = { .step = from ? from->step : 0, .resumes = from },
		.all = calloc((size_t)collective->size, sizeof(*check->all))
	};
	if (!check->all)
		collective->table->abort(collective, "no memory to read a "
					 "checkpoint");
	meet(check);
}

/* ---- shards */

/* A reader of shards; without a trainer they are only checked. */
struct reader {
	struct trainer *trainer;
	struct state state;
	struct check *check;
	bool skipped;			/* values of the shard were not read */
	bool unfit;			/* a value that nothing can go on from: */
	int unfit_state;
	size_t unfit_value;
	struct crc *crc;
	float *piece;			/* [PIECE] */
};

/* Reads all bytes, or returns -1 with errno set: 0 where the file ends. */
static int read_bytes(int fd, void *to, size_t count)
{
	char *bytes = to;

	while (count > 0) {
		ssize_t done = read(fd, bytes, count);

		if (done < 0 && errno == EINTR)
			continue;
		if (done == 0)
			errno = 0;
		if (done <= 0)
			return -1;
		bytes += done;
		count -= (size_t)done;
	}
	return 0;
}

/* Finds the next piece that is to be read; it has no values at the end. */
static int find_piece(struct reader *reader, int fd, struct range range,
		      struct range *part)
{
	*part = range;
	if (reader->trainer)
		*part = state_find_part(reader->trainer, range);
	if (part->end - part->begin > PIECE)
		part->end = part->begin + PIECE;
	if (part->begin == range.begin)
		return 0;
	reader->skipped = true;
	return lseek(fd, (off_t)((part->begin - range.begin) * sizeof(float)),
		     SEEK_CUR) < 0 ? -1 : 0;
}

/*
 * Parameters are finite, as a step whose loss is no number makes no update. A
 * moment may overflow, but is never a NaN.
 */
static void find_unfit(struct reader *reader, int state, struct range part)
{
	for (size_t i = part.begin; i < part.end && !reader->unfit; i++) {
		float value = reader->piece[i - part.begin];

		if (isfinite(value) || (state > 0 && !isnan(value)))
			continue;
		reader->unfit = true;
		reader->unfit_state = state;
		reader->unfit_value = i;
	}
}

/* Reads a range of one state. */
static int read_range(struct reader *reader, int fd, int index,
		      struct range range)
{
	struct range part;

	for (; range.begin < range.end; range.begin = part.end) {
		size_t bytes;

		if (find_piece(reader, fd, range, &part) < 0)
			return -1;
		bytes = (part.end - part.begin) * sizeof(float);
		if (bytes == 0)
			continue;
		errno = EINTR;
		if (signals_have_come())
			return -1;
		if (read_bytes(fd, reader->piece, bytes) < 0)
			return -1;
		crc_add(reader->crc, reader->piece, bytes);
		if (reader->trainer) {
			state_write(reader->trainer, &reader->state, index,
				    part, reader->piece);
		} else {
			find_unfit(reader, index, part);
			ddp_heartbeat();
		}
		pause_check(reader->check);
	}
	return 0;
}

/* A shard that cannot be read stops the run; errno is 0 where it ends. */
static int refuse_read(struct ddp_error *error, const char *file)
{
	if (errno)
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "%s: %s", file,
				     strerror(errno));
	return ddp_error_set(error, DDP_ERROR_ARGUMENT, "%s ends early", file);
}

/* The name of the tensor with a value, of lines "NAME FIRST ROWS COLUMNS". */
static const char *find_tensor(const char *lines, size_t value, int *length)
{
	const char *name = lines;
	size_t last = 0;

	for (; *lines; lines += strcspn(lines, "\n") + 1) {
		size_t first = strtoull(lines + strcspn(lines, " "), NULL, 10);

		if (first > value || first < last)
			continue;
		name = lines;
		last = first;
	}
	*length = (int)strcspn(name, " ");
	return name;
}

static int refuse_unfit(const struct reader *reader,
			const struct manifest *manifest, const char *file,
			struct ddp_error *error)
{
	char place[256];
	int length;
	const char *name = find_tensor(manifest->parameters,
				       reader->unfit_value, &length);

	snprintf(place, sizeof(place), "%.*s of %s", length, name,
		 manifest->states[reader->unfit_state]);
	return ddp_error_set(error, DDP_ERROR_ARGUMENT, "%s has a value in %s "
			     "that is not a finite number", file,
			     ddp_text_quote(place));
}

static int read_open_shard(struct reader *reader, int fd, size_t size,
			   const struct manifest *manifest,
			   const struct manifest_shard *shard,
			   struct ddp_error *error)
{
	const struct range *ranges = &manifest->ranges[shard->first];

	if (manifest_compare_size(manifest, shard, size, error) < 0)
		return -1;
	crc_reset(reader->crc);
	reader->skipped = false;
	for (int state = 0; state < manifest->state_count; state++)
		for (int i = 0; i < shard->count; i++)
			if (read_range(reader, fd, state, ranges[i]) < 0)
				return refuse_read(error, shard->file);
	/* A shard read in part was checked before, by all ranks together. */
	if (!reader->skipped && crc_read(reader->crc) != shard->crc)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "%s has "
				     "another checksum than the manifest says",
				     shard->file);
	return reader->unfit ? refuse_unfit(reader, manifest, shard->file,
					    error) : 0;
}

static int read_shard(struct reader *reader, const char *dir,
		      const struct manifest *manifest,
		      const struct manifest_shard *shard,
		      struct ddp_error *error)
{
	char *path = folder_format(dir, manifest->step, shard->file);
	size_t size;
	int fd, result;

	if (!path)
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "no memory");
	fd = manifest_open_file(path, shard->file, &size, error);
	free(path);
	if (fd < 0)
		return -1;
	result = read_open_shard(reader, fd, size, manifest, shard, error);
	close(fd);
	return result;
}

/* Reads shard `first`, and each `step`-th after it. */
static int read_shards(struct reader *reader, const char *dir,
		       const struct manifest *manifest, int first, int step,
		       struct ddp_error *error)
{
	int result = 0;

	reader->crc = crc_create(error);
	reader->piece = malloc(PIECE * sizeof(float));
	if (!reader->piece)
		ddp_error_set(error, DDP_ERROR_SYSTEM, "no memory to read it");
	if (!reader->crc || !reader->piece)
		result = -1;
	for (int i = first; i < manifest->shard_count && result == 0; i += step)
		result = read_shard(reader, dir, manifest,
				    &manifest->shards[i], error);
	free(reader->piece);
	crc_destroy(reader->crc);
	return result;
}

/* ---- whether they are whole */

/* Returns true if all ranks go on from the same step. */
static bool is_common(const struct check *check)
{
	const struct round *all = check->all;
	bool common = all[0].resumes;

	for (int rank = 1; rank < check->collective->size; rank++)
		common = common && all[rank].resumes &&
			 all[rank].step == all[0].step;
	return common;
}

/*
 * Checks all shards; takes the error of the first rank that found one broken.
 */
static int check_shards(struct check *check, const struct options *options,
			struct ddp_error *error)
{
	struct collective *collective = check->collective;
	struct reader reader = { .check = check };
	struct ddp_error mine = { 0 }, cause = { 0 };
	uint64_t step = options->from->step;

	read_shards(&reader, options->checkpoint, options->from,
		    collective->rank, collective->size, &mine);
	wait_for_others(check);
	if (world_share_errors(collective, &mine, &cause) == 0)
		return 0;
	if (cause.code != DDP_ERROR_ARGUMENT)
		return recall_refuse(options->checkpoint, step, &cause, error);
	if (recall_pass_over(step, &cause) < 0)
		collective->table->abort(collective, "no memory to pass over "
					 "a checkpoint");
	return 1;
}

int checkpoint_check(struct collective *collective,
		     const struct options *options, struct ddp_error *error)
{
	struct check check;
	int result = 0;

	begin(&check, collective, options ? options->from : NULL);
	if (is_common(&check))
		result = check_shards(&check, options, error);
	free(check.all);
	return result;
}

/* ---- into the trainer */

static int refuse_model(const struct options *options, uint64_t step,
			const char *what, struct ddp_error *error)
{
	return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--resume: %s/step-%"
			     PRIu64 " is of another model: its %s are not "
			     "those of this one; name the --checkpoint of "
			     "this model", options->checkpoint, step, what);
}

static int compare_model(const struct options *options,
			 const struct manifest *manifest,
			 const struct trainer *trainer,
			 const struct state *state, struct ddp_error *error)
{
	char *parameters = state_format_parameters(trainer);
	bool same = parameters &&
		    strcmp(parameters, manifest->parameters) == 0 &&
		    manifest->values == state->length;

	free(parameters);
	if (!same)
		return refuse_model(options, manifest->step, "parameters",
				    error);
	same = state->count == manifest->state_count;
	for (int i = 0; i < state->count && same; i++)
		same = strcmp(state->names[i], manifest->states[i]) == 0;
	if (!same)
		return refuse_model(options, manifest->step,
				    "optimizer's states", error);
	return 0;
}

/* A run that was not of fp16 has no loss scale to go on with. */
static void restore_scale(struct trainer *trainer,
			  const struct manifest *manifest)
{
	struct step_state state = {
		.loss_scale = 1, .updates = manifest->updates
	};

	if (trainer->options->dtype == DEVICE_FP16) {
		bool known = manifest->loss_scale > 0;

		state.loss_scale = known ? manifest->loss_scale :
					   LOSS_SCALE_FIRST;
		state.good = known ? manifest->good_steps : 0;
	}
	trainer_set_state(trainer, &state);
}

static int load_state(const struct options *options, struct trainer *trainer,
		      struct check *check, struct ddp_error *error)
{
	const struct manifest *manifest = options->from;
	struct reader reader = { .trainer = trainer, .check = check };
	struct ddp_error cause = { 0 };

	state_list(trainer, &reader.state);
	if (compare_model(options, manifest, trainer, &reader.state,
			  error) < 0)
		return -1;
	if (read_shards(&reader, options->checkpoint, manifest, 0, 1,
			&cause) == 0) {
		restore_scale(trainer, manifest);
		return 0;
	}
	if (cause.code != DDP_ERROR_ARGUMENT)
		return recall_refuse(options->checkpoint, manifest->step,
				     &cause, error);
	return ddp_error_set(error, DDP_ERROR_SYSTEM, "--resume: %s/step-%"
			     PRIu64 " has changed since it was checked: %s; "
			     "see who writes there, and start again",
			     options->checkpoint, manifest->step, cause.text);
}

int checkpoint_load(const struct options *options, struct trainer *trainer,
		    struct ddp_error *error)
{
	struct check check;
	int result;

	begin(&check, trainer->collective, options->from);
	result = load_state(options, trainer, &check, error);
	wait_for_others(&check);
	free(check.all);
	return result;
}

/* ---- the data */

enum { DATA_PIECE = 16 << 20 };	/* bytes of the data between two pauses */

void checkpoint_sum_data(struct collective *collective,
			 const struct data *data, char sum[CHECKPOINT_SUM])
{
	int size = collective->size, first;
	int pieces = (int)(data->size / DATA_PIECE) / size + 1;
	uint64_t all = 0;
	struct check check;

	begin(&check, collective, NULL);
	first = collective->rank * pieces;
	for (int i = first; i < first + pieces; i++) {
		check.mine.sum += data_sum(data, i, pieces * size);
		pause_check(&check);
	}
	wait_for_others(&check);
	for (int rank = 0; rank < size; rank++)
		all += check.all[rank].sum;
	free(check.all);
	snprintf(sum, CHECKPOINT_SUM, "%016" PRIx64, all);
}
