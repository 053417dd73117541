/* SPDX-License-Identifier: BSD-3-Clause */
/* The loop over the steps: compute, agree, update, print, compare. */
#define _GNU_SOURCE
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "checkpoint/checkpoint.h"
#include "data/rng.h"
#include "ddp.h"
#include "log/progress.h"
#include "model.h"
#include "run/run.h"
#include "step/sum_tree.h"
#include "step/trainer.h"
#include "util/error.h"

/* Below it the loss scale would make gradients smaller than they are. */
enum { LEAST_LOSS_SCALE = 1 };

/* End all ranks for an error that only this one has. */
static void give_up(struct run *run, const struct ddp_error *error)
{
	progress_close(run->progress);
	run->collective.table->abort(&run->collective, error->text);
}

/* Give every rank the shares of all. */
static void agree(struct run *run, const struct share *mine)
{
	run->collective.table->agree(&run->collective, mine,
				     run->trainer->shares, sizeof(*mine));
}

/*
 * Checks that all ranks have the same parameters after a step; the answer is
 * the same on each. With --zero 1 they were gathered from their owners, so that
 * an owner's error is on all ranks. If the data has shrunk, this ends the run.
 */
static int compare_parameters(struct run *run, uint64_t step,
			      struct ddp_error *error)
{
	const struct share *shares = run->trainer->shares;
	struct share mine = { .hash = trainer_hash_parameters(run->trainer) };
	struct device *device = &run->trainer->device;

	if (device->table->check(device, error) < 0)
		give_up(run, error);
	data_check_size(&run->data);
	agree(run, &mine);
	for (int rank = 1; rank < run->collective.size; rank++)
		if (shares[rank].hash != shares[0].hash)
			return ddp_error_set(error, DDP_ERROR_SYSTEM,
				"the parameters of rank %d on %s are not "
				"those of rank 0 on %s after step %" PRIu64
				"; test the memory of both nodes and what "
				"lies between them", rank, run->hosts[rank],
				run->hosts[0], step);
	return 0;
}

static bool is_same(double one, double other)
{
	return one == other || (isnan(one) && isnan(other));
}

/*
 * Checks that all ranks have the same norm, by which each clips, skips, and
 * changes the loss scale. A rank finds it from its own copy of the gradient.
 * With --zero 1 it adds the sums of squares that all have gathered, so that
 * only how it adds them can differ. The answer is the same on each, as all have
 * these shares.
 */
static int compare_norms(const struct run *run, uint64_t step,
			 struct ddp_error *error)
{
	static const char *const verb[] = { "taken", "skipped" };
	const struct share *shares = run->trainer->shares, *first = shares;

	for (int rank = 1; rank < run->collective.size; rank++)
		if (!is_same(shares[rank].norm, first->norm) ||
		    shares[rank].skipped != first->skipped ||
		    !is_same(shares[rank].loss_scale, first->loss_scale))
			return ddp_error_set(error, DDP_ERROR_SYSTEM,
				"step %" PRIu64 " on rank %d on %s is %s, with "
				"a gradient's norm of %.17g and then a loss "
				"scale of %g, but on rank 0 on %s %s, with "
				"%.17g and %g; test the memory of both nodes "
				"and what lies between them", step, rank,
				run->hosts[rank], verb[shares[rank].skipped],
				shares[rank].norm, shares[rank].loss_scale,
				run->hosts[0], verb[first->skipped],
				first->norm, first->loss_scale);
	return 0;
}

/*
 * A loss that is no number is one rank's, which is named. The gradient is the
 * sum of all ranks', so no rank can be named.
 */
static int stop_for_loss(const struct run *run, uint64_t step,
			 struct ddp_error *error)
{
	const struct share *shares = run->trainer->shares;
	int size = run->collective.size, rank = 0;

	while (rank < size && isfinite(shares[rank].loss))
		rank++;
	if (rank == size)
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "the gradient "
				     "is no longer a number at step %" PRIu64
				     "; choose a smaller --lr", step);
	return ddp_error_set(error, DDP_ERROR_SYSTEM, "the loss is no longer "
			     "a number at step %" PRIu64 ", first on rank %d "
			     "on %s; choose a smaller --lr", step, rank,
			     run->hosts[rank]);
}

/* Halving the loss scale has not helped. */
static int stop_for_overflow(uint64_t step, struct ddp_error *error)
{
	return ddp_error_set(error, DDP_ERROR_SYSTEM, "the gradient is too "
			     "large for fp16 at step %" PRIu64 ", and not only "
			     "for the loss scale; choose a smaller --lr, or "
			     "--dtype bf16", step);
}

/* The step of all ranks, from their shares. */
static void sum_up(const struct run *run, struct progress_step *step)
{
	const struct share *shares = run->trainer->shares;
	int size = run->collective.size;
	double *losses = run->trainer->rank_losses;

	for (int rank = 0; rank < size; rank++) {
		losses[rank] = shares[rank].loss;
		step->busy += shares[rank].busy / size;
		step->waited += shares[rank].exposed / size;
		step->exposed = fmax(step->exposed, shares[rank].exposed);
		if (shares[rank].busy <= step->slowest_busy)
			continue;
		step->slowest_busy = shares[rank].busy;
		step->slowest = rank;
	}
	step->loss = fold_doubles(losses, size);
	step->norm = shares[0].norm;
	step->host = run->hosts[step->slowest];
}

/* A step whose results have not been read, and the steps before it. */
struct steps {
	struct share shares[2];		/* of step n: [n % 2], mine */
	uint64_t read;			/* how many have been */
	uint64_t bad;			/* of these, how many in a row were */
};

static void start_step(struct run *run, struct steps *steps, uint64_t number)
{
	steps->shares[number % 2] = (struct share){ 0 };
	trainer_take_step(run->trainer, number);
	ddp_heartbeat();
}

/* Ends a step: all ranks agree on its results, and rank 0 prints them. */
static int finish_step(struct run *run, struct steps *steps, uint64_t number,
		       struct ddp_error *error)
{
	const struct options *options = &run->options;
	struct share *share = &steps->shares[number % 2];
	struct progress_step step = {
		.step = number, .lr = trainer_find_lr(options, number)
	};
	bool overflow = false;

	if (trainer_read_step(run->trainer, number, share, error) < 0)
		give_up(run, error);
	step.seconds = share->seconds;
	saver_tell(run->saver, share);
	agree(run, share);
	sum_up(run, &step);
	if (saver_hear(run->saver, run->trainer->shares, error) < 0 ||
	    compare_norms(run, number, error) < 0)
		return -1;
	step.skipped = share->skipped;
	if (options->dtype == DEVICE_FP16) {
		step.loss_scale = share->loss_scale;
		overflow = step.skipped && isfinite(step.loss);
	}
	if (overflow && step.loss_scale < LEAST_LOSS_SCALE) {
		run->diverged = true;
		return stop_for_overflow(number, error);
	}
	if (!overflow)
		steps->bad = step.skipped ? steps->bad + 1 : 0;
	if (steps->bad && steps->bad >= options->max_bad_steps) {
		run->diverged = true;
		return stop_for_loss(run, number, error);
	}
	step.exposed = fmin(step.exposed, step.seconds);
	step.waited = fmin(step.waited, step.seconds);
	if (run->progress && progress_print_step(run->progress, &step,
						 error) < 0)
		give_up(run, error);
	return 0;
}

static bool is_multiple(uint64_t number, uint64_t every)
{
	return every && number % every == 0;
}

/* Returns true if more than the next step depends on this one's results. */
static bool must_look(const struct run *run, uint64_t number)
{
	const struct options *options = &run->options;

	return number == options->steps || saver_must_stop(run->saver) ||
	       is_multiple(number, options->check_every) ||
	       is_multiple(number, options->eval_every) ||
	       (run->saver && is_multiple(number, options->checkpoint_every));
}

/* If a device failed in it, no rank has the loss: the same answer on each. */
static int evaluate(struct run *run, uint64_t number, struct ddp_error *error)
{
	struct device *device = &run->trainer->device;
	double loss = trainer_evaluate(run->trainer);
	struct ddp_error mine = { 0 };

	device->table->check(device, &mine);
	if (world_share_errors(&run->collective, &mine, error) < 0)
		return -1;
	if (run->progress &&
	    progress_print_eval(run->progress, number, loss, error) < 0)
		give_up(run, error);
	return 0;
}

/* Compares, evaluates and saves after a step, if that is due. */
static int look_at_state(struct run *run, uint64_t number, uint64_t bad,
			 struct ddp_error *error)
{
	const struct options *options = &run->options;
	bool last = number == options->steps;

	if (options->check_every &&
	    (last || is_multiple(number, options->check_every) ||
	     saver_must_stop(run->saver)) &&
	    compare_parameters(run, number, error) < 0)
		return -1;
	if (is_multiple(number, options->eval_every) &&
	    evaluate(run, number, error) < 0)
		return -1;
	run->stopped = saver_must_stop(run->saver) && !last;
	if (!run->saver)
		return 0;
	return saver_end_step(run->saver, number, bad, last, error);
}

/*
 * A step's results are read once the next one was started, so that a device
 * always has work; but at once where the state is looked at.
 */
static int run_steps(struct run *run, struct steps *steps,
		     struct ddp_error *error)
{
	uint64_t number = steps->read;

	steps->bad = checkpoint_find_bad_steps(&run->options);
	while (number < run->options.steps && !run->stopped) {
		start_step(run, steps, ++number);
		if (steps->read + 1 < number &&
		    finish_step(run, steps, ++steps->read, error) < 0)
			return -1;
		if (!must_look(run, number))
			continue;
		if (finish_step(run, steps, ++steps->read, error) < 0 ||
		    look_at_state(run, number, steps->bad, error) < 0)
			return -1;
	}
	return 0;
}

/* ---- text as the trained model would write it */

/* Draw from softmax(logits) by a uniform number u in [0, 1). */
static int draw_token(const float *logits, int count, double u)
{
	double max = logits[0], sum = 0;

	for (int i = 1; i < count; i++)
		max = logits[i] > max ? logits[i] : max;
	for (int i = 0; i < count; i++)
		sum += exp(logits[i] - max);
	u *= sum;
	for (int i = 0; i < count; i++) {
		u -= exp(logits[i] - max);
		if (u < 0)
			return i;
	}
	return count - 1;
}

/* The token after `length` of trainer->read_tokens; or -1 with error set. */
static int generate_token(struct trainer *trainer, uint64_t length,
			  uint64_t index, struct ddp_error *error)
{
	struct device *device = &trainer->device;
	const struct model *model = trainer->model;
	uint64_t context = model->shape.context, vocab = model->shape.vocab;
	size_t bytes = device_type_bytes(device->type);
	float *row = trainer->piece + vocab;	/* at most half of it */
	struct batch batch = { .sequences = 1, .tokens = trainer->tokens };
	uint64_t bits = rng_draw_bits(trainer->options->seed, RNG_SAMPLE,
				      index);

	/* Attention is masked: what follows the last token has no effect. */
	device->table->copy(device, QUEUE_COMPUTE, trainer->tokens,
			    trainer->read_tokens, context * sizeof(int32_t));
	model->logits(model, device, trainer->param, &batch, trainer->logits);
	device_fetch(device, row, (char *)trainer->logits +
		     (length - 1) * vocab * bytes, vocab * bytes);
	if (device->table->check(device, error) < 0)
		return -1;
	half_widen(device->type, row, trainer->piece, vocab);
	return draw_token(trainer->piece, (int)vocab,
			  (double)(bits >> 11) * 0x1p-53);
}

/* Prints `count` bytes as the trained model would write them. */
static int print_sample(struct trainer *trainer, uint64_t count,
			struct ddp_error *error)
{
	uint64_t context = trainer->model->shape.context, length = 1;
	int32_t *text = trainer->read_tokens;
	int byte = 0;

	text[0] = '\n';
	for (uint64_t i = 0; i < count && !ferror(stdout); i++) {
		byte = generate_token(trainer, length, i, error);
		if (byte < 0)
			break;
		if (length == context)
			memmove(text, text + 1, --length * sizeof(*text));
		text[length++] = byte;
		putchar(isprint(byte) || byte == '\n' || byte == '\t' ||
			byte >= 0x80 ? byte : '.');
		fflush(stdout);
		ddp_heartbeat();
	}
	putchar('\n');
	return byte < 0 ? -1 : 0;
}

/* ---- the whole run */

int run_train(struct run *run, struct ddp_error *error)
{
	struct steps steps = { .read = checkpoint_find_step(&run->options) };
	uint64_t done = steps.read;

	if (run_steps(run, &steps, error) < 0) {
		saver_finish(run->saver);
		return -1;
	}
	if (!run->progress)
		return 0;
	if (steps.read > done && progress_print_end(run->progress, error) < 0)
		give_up(run, error);
	if (run->stopped)
		printf("stopped after step %" PRIu64 " by a signal; --resume "
		       "goes on there\n", steps.read);
	if (run->options.sample && !run->stopped &&
	    print_sample(run->trainer, run->options.sample, error) < 0)
		give_up(run, error);
	return 0;
}
