/* SPDX-License-Identifier: BSD-3-Clause */
/* The folder of checkpoints: made, and the same for all ranks. */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "checkpoint/checkpoint.h"
#include "checkpoint/folder.h"
#include "checkpoint/manifest.h"
#include "checkpoint/owner.h"
#include "checkpoint/signals.h"
#include "collective.h"
#include "data/path_code.h"
#include "util/error.h"
#include "util/random.h"
#include "util/text.h"

/* The record that each rank sends to all others. */
struct meeting {
	char id[CHECKPOINT_ID];		/* rank 0: its run's, if it has DIR */
	bool stop;			/* it got a signal */
};

static int draw_id(char id[CHECKPOINT_ID], struct ddp_error *error)
{
	uint64_t bits;

	if (ddp_random_fill(&bits, sizeof(bits)) < 0)
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "no random "
				     "number: %s", strerror(errno));
	snprintf(id, CHECKPOINT_ID, "%016" PRIx64, bits);
	return 0;
}

/*
 * Refuses a folder with checkpoints that this run would replace: those of an
 * earlier run if --resume was forgotten, and those saved since --resume looked.
 */
static int refuse_saved(const struct options *options, struct ddp_error *error)
{
	const struct manifest *from = options->from;
	uint64_t *steps, newest;
	int count = folder_list(options->checkpoint, &steps, error);

	newest = count > 0 ? steps[0] : 0;
	free(steps);
	if (count <= 0)
		return count;
	if (!options->resume)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--checkpoint "
				     "%s has a checkpoint of step %" PRIu64
				     " already; add --resume to go on from it, "
				     "or name another folder",
				     options->checkpoint, newest);
	if (from && newest <= from->newest)
		return 0;
	return ddp_error_set(error, DDP_ERROR_SYSTEM, "--resume: another run "
			     "has just saved %s/step-%" PRIu64 "; start again "
			     "to go on from it", options->checkpoint, newest);
}

/* Makes the folder, and syncs it as all that lies in it later. */
static int make_folder(const char *dir)
{
	struct ddp_text text = { 0 };
	char *parent;
	int result;

	if (mkdir(dir, 0777) < 0)
		return errno == EEXIST ? 0 : -1;
	ddp_text_add(&text, "%s/..", dir);
	parent = ddp_text_finish(&text);
	result = parent ? folder_sync(parent) : -1;
	free(parent);
	/* One may be allowed to write there, but not to read. */
	return result < 0 && errno == EACCES ? 0 : result;
}

/* Saved steps are looked at again once no other run can save. */
static int take_folder(const struct options *options, char id[CHECKPOINT_ID],
		       struct ddp_error *error)
{
	const char *dir = options->checkpoint;

	if (!options->resume && refuse_saved(options, error) < 0)
		return -1;
	if (draw_id(id, error) < 0)
		return -1;
	if (make_folder(dir) < 0)
		return ddp_error_set(error, find_path_code(errno),
				     "--checkpoint %s: cannot be written: %s; "
				     "%s", dir, strerror(errno),
				     errno == ENOENT ? "make the folder around "
				     "it first" :
				     "name a folder that you may write");
	if (owner_take(dir, id, error) < 0)
		return -1;
	return refuse_saved(options, error);
}

bool checkpoint_must_stop(struct collective *collective)
{
	char id[CHECKPOINT_ID];
	bool stop;

	checkpoint_meet(collective, &(struct options){ 0 }, id, &stop, NULL);
	return stop;
}

int checkpoint_meet(struct collective *collective,
		    const struct options *options, char id[CHECKPOINT_ID],
		    bool *stop, struct ddp_error *error)
{
	const char *dir = options->plan ? NULL : options->checkpoint;
	struct meeting mine = { .stop = signals_have_come() };
	struct meeting *all = calloc((size_t)collective->size, sizeof(*all));
	int result = 0;

	/* The others wait for this rank, so end them. */
	if (!all)
		collective->table->abort(collective, "no memory to meet");
	if (dir && collective->rank == 0)
		result = take_folder(options, mine.id, error);
	if (result < 0)
		mine.id[0] = '\0';
	collective->table->agree(collective, &mine, all, sizeof(mine));
	memcpy(id, all[0].id, CHECKPOINT_ID);
	*stop = false;
	for (int rank = 0; rank < collective->size; rank++)
		*stop = *stop || all[rank].stop;
	free(all);
	if (dir && id[0] && collective->rank > 0 && !*stop)
		result = owner_see(dir, id, error);
	return result;
}
