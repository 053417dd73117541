/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Saves a run, also where a signal asks for it: copies the state, and agrees on
 * when a save is whole.
 *
 * The signals are noted in a thread of its own. A handler could come while a
 * library multiplies: oneDNN's sgemm points the stack pointer into its own
 * memory, and the frame of a handler would overwrite what is there.
 */
#define _GNU_SOURCE
#include <float.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "checkpoint/checkpoint.h"
#include "checkpoint/folder.h"
#include "checkpoint/manifest_text.h"
#include "checkpoint/recall.h"
#include "checkpoint/writer.h"
#include "collective.h"
#include "ddp.h"
#include "log/progress.h"
#include "run/world.h"
#include "step/state.h"
#include "step/trainer.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/text.h"

/* ---- signals */

/* A signal that comes again within this time counts as the first. */
enum { REPEATS_NS = 2000000000 };

static atomic_bool come;

static void *wait_for_signals(void *context)
{
	const sigset_t *set = context;
	int64_t first = 0, now;
	int number;

	while (sigwait(set, &number) == 0) {
		now = ddp_clock_ns();
		if (!atomic_load(&come))
			first = now;
		else if (now - first >= REPEATS_NS)
			_exit(128 + number);
		atomic_store(&come, true);
	}
	return NULL;
}

int signals_catch(struct ddp_error *error)
{
	static bool caught;
	static sigset_t set;
	pthread_t thread;
	int cause;

	if (caught)
		return 0;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	cause = pthread_create(&thread, NULL, wait_for_signals, &set);
	if (cause)
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "no thread to "
				     "wait for signals: %s; allow more "
				     "processes (ulimit -u)", strerror(cause));
	pthread_detach(thread);
	caught = true;
	return 0;
}

/* The thread that takes a signal may run much later, on a busy machine. */
bool signals_have_come(void)
{
	sigset_t pending;

	return atomic_load(&come) ||
	       (sigpending(&pending) == 0 &&
		(sigismember(&pending, SIGUSR1) == 1 ||
		 sigismember(&pending, SIGTERM) == 1));
}

/* ---- saves */

/* Seconds that count between two looks: after more, a step or a stop. */
static const double longest_look = 10;

/* Bits of a share's news: what a rank tells all in a step. */
enum save_news {
	NEWS_STOP = 1,			/* it got a signal */
	NEWS_WRITTEN = 2,		/* its shard is there, with share.crc */
	NEWS_COMMITTED = 4,		/* rank 0: the manifest is, too */
	NEWS_FAILED = 8,		/* it could not be written */
	NEWS_GROWN = 16			/* more of it has been written */
};

/* The phase of the save under way, the same on all ranks. */
enum phase {
	PHASE_NONE,
	PHASE_WRITING,			/* the shards */
	PHASE_COMMITTING		/* all shards are there */
};

struct saver {
	struct saver_plan plan;
	struct writer *writer;
	double looked;			/* at the writer, last; 0: never */
	double waited;			/* seconds without progress */
	enum phase phase;
	bool stop;
	bool left_out;			/* another one, meanwhile */
	bool failed;			/* before its manifest was begun */
	struct state state;
	uint64_t saved;			/* the last step committed; 0: none */
	struct manifest manifest;	/* of the save under way */
	char name[MANIFEST_FILE];	/* of this rank's shard */
	char *text;			/* of the manifest */
	char *parameters, *options;	/* for the manifest */
	/* Rank 0's. */
	struct manifest_shard *shards;	/* [ranks] */
	struct range *ranges;		/* [ranks * buckets] */
};

/*
 * Ends all ranks, as the thread that writes cannot be ended; the sentence names
 * this one and the file.
 */
static void end_ranks(const struct saver *saver)
{
	struct collective *collective = saver->plan.collective;
	struct ddp_text text = { 0 };
	char host[256] = "", *sentence;
	char *file = writer_format_file(saver->writer);

	gethostname(host, sizeof(host) - 1);
	ddp_text_add_quoted(&text, "rank %d on %s: --checkpoint: the save of "
			    "%s has made no progress for %.0f s; see whether "
			    "its file system answers, or choose a longer "
			    "--timeout", collective->rank, host,
			    file ? file : "a file", saver->waited);
	sentence = ddp_text_finish(&text);
	free(file);
	collective->table->abort(collective, sentence ? sentence :
				 "--checkpoint: a save hangs");
}

/*
 * Looks at the writer, often. Returns true if its job has made progress; if it
 * has made none for as long as --timeout says, ends all ranks. Time in which
 * this process was stopped does not count.
 */
static bool look(struct saver *saver)
{
	double timeout = saver->plan.collective->timeout;
	double now = ddp_clock_seconds();
	double passed = saver->looked > 0 ? now - saver->looked : 0;
	bool grown = writer_has_grown(saver->writer);

	saver->looked = now;
	saver->waited += passed < longest_look ? passed : longest_look;
	if (grown || writer_is_idle(saver->writer))
		saver->waited = 0;
	if (timeout > 0 && saver->waited >= timeout)
		end_ranks(saver);
	return grown;
}

static int refuse_memory(struct ddp_error *error)
{
	return ddp_error_set(error, DDP_ERROR_SYSTEM, "no memory for the "
			     "manifest of a checkpoint");
}

static void name_shard(const struct saver *saver, int rank, char *name)
{
	snprintf(name, MANIFEST_FILE, "shard-%d-of-%d.%s", rank,
		 saver->plan.collective->size, saver->plan.id);
}

static bool is_first(const struct saver *saver)
{
	return saver->plan.collective->rank == 0;
}

static int create_texts(struct saver *saver, struct ddp_error *error)
{
	const struct options *options = saver->plan.options;

	saver->parameters = state_format_parameters(saver->plan.trainer);
	saver->options = malloc(CHECKPOINT_OPTIONS);
	if (!saver->parameters || !saver->options ||
	    tool_options_describe(&train_options, options, saver->options,
				  CHECKPOINT_OPTIONS) >= CHECKPOINT_OPTIONS)
		return refuse_memory(error);
	return 0;
}

/* Sets all of the manifest of the save that is begun but its shards. */
static void begin_manifest(struct saver *saver, uint64_t step,
			   const struct step_state *last, uint64_t bad_steps)
{
	const struct state *state = &saver->state;
	bool scaled = saver->plan.options->dtype == DEVICE_FP16;

	saver->manifest = (struct manifest){
		.step = step, .updates = last->updates,
		.loss_scale = scaled ? last->loss_scale : 0,
		.good_steps = last->good,
		.bad_steps = bad_steps,
		.seconds = progress_count_seconds(saver->plan.progress),
		.values = state->length, .state_count = state->count,
		.data = saver->plan.data, .data_sum = saver->plan.data_sum,
		.options = saver->options, .parameters = saver->parameters
	};
	for (int i = 0; i < state->count; i++)
		saver->manifest.states[i] = state->names[i];
}

/* Lists on rank 0 what all ranks write, with the checksums of their shares. */
static void list_shards(struct saver *saver, const struct share *shares)
{
	struct manifest *manifest = &saver->manifest;

	manifest->shards = saver->shards;
	manifest->ranges = saver->ranges;
	for (int rank = 0; rank < saver->plan.collective->size; rank++) {
		int first = manifest->range_count;
		struct manifest_shard *shard =
			&saver->shards[manifest->shard_count];

		*shard = (struct manifest_shard){
			.crc = shares[rank].crc, .first = first,
			.count = state_list_ranges(saver->plan.trainer, rank,
						   saver->ranges + first)
		};
		name_shard(saver, rank, shard->file);
		manifest->shard_count += shard->count > 0;
		manifest->range_count += shard->count;
	}
}

/* Checks on rank 0, before any step, that the longest manifest can be read. */
static int try_manifest(struct saver *saver, struct ddp_error *error)
{
	const struct step_state last = {
		.updates = UINT64_MAX, .good = UINT64_MAX,
		.loss_scale = DBL_MIN	/* none has more digits */
	};
	size_t size = (size_t)saver->plan.collective->size;
	size_t buckets = (size_t)saver->plan.trainer->buckets.count;
	size_t bytes;

	saver->shards = calloc(size, sizeof(*saver->shards));
	saver->ranges = calloc(size * buckets, sizeof(*saver->ranges));
	if (!saver->shards || !saver->ranges)
		return refuse_memory(error);
	begin_manifest(saver, UINT64_MAX, &last, UINT64_MAX);
	saver->manifest.seconds = DBL_MAX;
	list_shards(saver, saver->plan.trainer->shares);
	saver->text = manifest_format(&saver->manifest);
	if (!saver->text)
		return refuse_memory(error);
	bytes = strlen(saver->text);
	if (bytes <= MANIFEST_BYTES)
		return 0;
	return ddp_error_set(error, DDP_ERROR_SYSTEM, "--checkpoint: the "
			     "manifest, with a line for each parameter and "
			     "each rank's ranges of values, would have %zu "
			     "bytes in place of at most %d; choose fewer "
			     "--layers or a larger --bucket-mib", bytes,
			     MANIFEST_BYTES);
}

int saver_create(struct saver **saver, const struct saver_plan *plan,
		 struct ddp_error *error)
{
	struct saver *new = calloc(1, sizeof(*new));

	if (!new)
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "no memory for "
				     "checkpoints");
	new->plan = *plan;
	new->saved = checkpoint_find_step(plan->options);
	state_list(plan->trainer, &new->state);
	name_shard(new, plan->collective->rank, new->name);
	new->writer = writer_create(error);
	if (!new->writer || create_texts(new, error) < 0 ||
	    (is_first(new) && try_manifest(new, error) < 0)) {
		saver_destroy(new);
		return -1;
	}
	/* The first copy shall not wait for pages. */
	if (plan->trainer->snapshot)
		memset(plan->trainer->snapshot, 0,
		       state_count_bytes(&new->state));
	*saver = new;
	return 0;
}

void saver_destroy(struct saver *saver)
{
	if (!saver)
		return;
	/* If another rank has failed, this one may still write, or hang. */
	while (saver->writer && !writer_wait(saver->writer))
		look(saver);
	writer_destroy(saver->writer);
	/* The shards of the other ranks that could be written are no use. */
	if (saver->failed)
		folder_remove_file(saver->plan.options->checkpoint,
				   saver->manifest.step, saver->name);
	free(saver->shards);
	free(saver->ranges);
	free(saver->options);
	free(saver->parameters);
	free(saver->text);
	free(saver);
}

void saver_tell(struct saver *saver, struct share *mine)
{
	unsigned done = NEWS_WRITTEN;

	if (!saver)
		return;
	mine->news |= signals_have_come() ? NEWS_STOP : 0;
	mine->news |= look(saver) ? NEWS_GROWN : 0;
	if (saver->phase == PHASE_NONE || !writer_is_idle(saver->writer))
		return;
	if (saver->phase == PHASE_COMMITTING)
		done = is_first(saver) ? NEWS_COMMITTED : 0;
	if (writer_get_result(saver->writer, &mine->crc, NULL) < 0)
		done = NEWS_FAILED;
	mine->news |= done;
}

/* Print a line of rank 0's; if it cannot, end all ranks, which do not know. */
static void print(struct saver *saver, uint64_t step, const char *what)
{
	struct collective *collective = saver->plan.collective;
	struct ddp_error error = { 0 };
	char line[160];

	snprintf(line, sizeof(line), "step %" PRIu64 "  %s", step, what);
	if (saver->plan.progress &&
	    progress_print_line(saver->plan.progress, line, &error) < 0)
		collective->table->abort(collective, error.text);
}

/* Tells all ranks why one could not write, and which checkpoint is left. */
static int fail(struct saver *saver, struct ddp_error *error)
{
	struct ddp_error mine = { 0 }, cause = { 0 };
	uint32_t crc;

	if (writer_is_idle(saver->writer) &&
	    writer_get_result(saver->writer, &crc, &cause) < 0 && saver->saved)
		ddp_error_set(&mine, cause.code, "%s; the checkpoint of step %"
			      PRIu64 " is whole", cause.text, saver->saved);
	else
		mine = cause;
	saver->failed = saver->phase == PHASE_WRITING;
	saver->phase = PHASE_NONE;
	return world_share_errors(saver->plan.collective, &mine, error);
}

/* Writes on rank 0 the manifest of what all have written. */
static void commit(struct saver *saver, const struct share *shares)
{
	const struct options *options = saver->plan.options;
	struct manifest *manifest = &saver->manifest;

	list_shards(saver, shares);
	free(saver->text);
	saver->text = manifest_format(manifest);
	if (!saver->text)
		saver->plan.collective->table->abort(saver->plan.collective,
			"no memory for the manifest of a checkpoint");
	writer_begin(saver->writer, &(struct writer_job){
		.dir = options->checkpoint, .step = manifest->step,
		.name = FOLDER_MANIFEST, .id = saver->plan.id,
		.bytes = saver->text, .count = strlen(saver->text),
		.commits = manifest,
		.prune = { .dir = options->checkpoint, .step = manifest->step,
			   .before = saver->saved, .keep = options->keep,
			   .id = saver->plan.id,
			   .is_broken = recall_is_broken } });
}

static bool all_have(const struct saver *saver, const struct share *shares,
		     unsigned news)
{
	for (int rank = 0; rank < saver->plan.collective->size; rank++)
		if (!(shares[rank].news & news))
			return false;
	return true;
}

static unsigned join_news(const struct saver *saver,
			  const struct share *shares)
{
	unsigned news = 0;

	for (int rank = 0; rank < saver->plan.collective->size; rank++)
		news |= shares[rank].news;
	return news;
}

int saver_hear(struct saver *saver, const struct share *shares,
	       struct ddp_error *error)
{
	unsigned news;

	if (!saver)
		return 0;
	news = join_news(saver, shares);
	saver->stop = saver->stop || news & NEWS_STOP;
	if (news & NEWS_FAILED)
		return fail(saver, error);
	if (saver->phase == PHASE_WRITING &&
	    all_have(saver, shares, NEWS_WRITTEN)) {
		saver->phase = PHASE_COMMITTING;
		if (is_first(saver))
			commit(saver, shares);
	} else if (saver->phase == PHASE_COMMITTING &&
		   news & NEWS_COMMITTED) {
		saver->phase = PHASE_NONE;
		saver->saved = saver->manifest.step;
		print(saver, saver->saved, "saved");
	}
	return 0;
}

bool saver_must_stop(const struct saver *saver)
{
	return saver && saver->stop;
}

/* Copy the state, and let the thread write it. */
static void begin(struct saver *saver, uint64_t step, uint64_t bad_steps)
{
	struct trainer *trainer = saver->plan.trainer;
	struct collective *collective = saver->plan.collective;
	const struct state *state = &saver->state;
	const struct step_state *last = &trainer->host_state[step % 2];
	struct ddp_error error = { 0 };

	/* End all ranks, as the others do not know. */
	if (state_copy(trainer, state, trainer->snapshot, &error) < 0)
		collective->table->abort(collective, error.text);
	begin_manifest(saver, step, last, bad_steps);
	saver->phase = PHASE_WRITING;
	saver->left_out = false;
	writer_begin(saver->writer, &(struct writer_job){
		.dir = saver->plan.options->checkpoint, .step = step,
		.name = saver->name, .id = saver->plan.id,
		.bytes = trainer->snapshot,
		.count = state_count_bytes(state) });
}

/*
 * Waits until the save under way is committed, and all ranks know it. Ranks
 * meet each second, so that none is missed while it writes; all make progress
 * while one does.
 */
static int finish(struct saver *saver, struct ddp_error *error)
{
	struct collective *collective = saver->plan.collective;
	struct share *shares = saver->plan.trainer->shares;

	while (saver->phase != PHASE_NONE) {
		struct share mine = { 0 };

		writer_wait(saver->writer);
		saver_tell(saver, &mine);
		collective->table->agree(collective, &mine, shares,
					 sizeof(mine));
		if (join_news(saver, shares) & NEWS_GROWN)
			ddp_heartbeat();
		if (saver_hear(saver, shares, error) < 0)
			return -1;
	}
	return 0;
}

/* Prints this for the first of several saves in a row that are left out. */
static void leave_out(struct saver *saver, uint64_t step)
{
	if (!saver->left_out)
		print(saver, step, "not saved, as the save before is still "
		      "under way");
	saver->left_out = true;
}

void saver_finish(struct saver *saver)
{
	struct ddp_error ignored = { 0 };

	if (saver)
		finish(saver, &ignored);
}

int saver_end_step(struct saver *saver, uint64_t step, uint64_t bad_steps,
		   bool last, struct ddp_error *error)
{
	uint64_t every = saver->plan.options->checkpoint_every;

	last = last || saver->stop;
	if (!last && (!every || step % every))
		return 0;
	if (!last && saver->phase != PHASE_NONE) {
		leave_out(saver, step);
		return 0;
	}
	if (finish(saver, error) < 0)
		return -1;
	begin(saver, step, bad_steps);
	return last ? finish(saver, error) : 0;
}
