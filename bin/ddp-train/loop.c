/* SPDX-License-Identifier: BSD-3-Clause */
/* The loop over the steps: compute, agree, update, print, compare. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <math.h>

#include "ddp.h"
#include "fold.h"
#include "layout/clock.h"
#include "layout/error.h"
#include "progress.h"
#include "run.h"
#include "trainer.h"

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
 * Whether all ranks have the same parameters after a step: the same answer on
 * each. If the data has shrunk, this ends the run.
 */
static int compare_parameters(struct run *run, uint64_t step,
			      struct ddp_error *error)
{
	const struct share *shares = run->trainer->shares;
	struct share mine = { .hash = trainer_hash_parameters(run->trainer) };

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

/*
 * A loss that is no number is one rank's, and its name is printed. The gradient
 * is the sum of all ranks' and the same on each, so no rank can be named.
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

/* Take a step; *bad counts how many in a row were skipped. */
static int take_step(struct run *run, uint64_t number, uint64_t *bad,
		     struct ddp_error *error)
{
	const struct options *options = &run->options;
	struct trainer *trainer = run->trainer;
	struct progress_step step = {
		.step = number, .lr = trainer_find_lr(options, number)
	};
	struct share share = { 0 };
	double begin = ddp_clock_seconds();

	trainer_compute_gradient(trainer, number, &share);
	agree(run, &share);
	sum_up(run, &step);
	step.skipped = !isfinite(step.loss) || !isfinite(step.norm);
	*bad = step.skipped ? *bad + 1 : 0;
	if (*bad && *bad >= options->max_bad_steps)
		return stop_for_loss(run, number, error);
	if (!step.skipped)
		trainer_update(trainer, number, step.norm);
	if (trainer->device.table->check(&trainer->device, error) < 0)
		give_up(run, error);
	step.seconds = ddp_clock_seconds() - begin;
	step.exposed = fmin(step.exposed, step.seconds);
	step.waited = fmin(step.waited, step.seconds);
	if (run->progress && progress_print_step(run->progress, &step,
						 error) < 0)
		give_up(run, error);
	ddp_heartbeat();
	if (options->check_every && (number % options->check_every == 0 ||
				     number == options->steps))
		return compare_parameters(run, number, error);
	return 0;
}

int run_train(struct run *run, struct ddp_error *error)
{
	const struct options *options = &run->options;
	uint64_t bad = 0;

	for (uint64_t number = 1; number <= options->steps; number++) {
		double loss;

		if (take_step(run, number, &bad, error) < 0)
			return -1;
		if (!options->eval_every || number % options->eval_every)
			continue;
		loss = trainer_evaluate(run->trainer);
		if (run->progress &&
		    progress_print_eval(run->progress, number, loss, error) < 0)
			give_up(run, error);
	}
	if (!run->progress)
		return 0;
	if (progress_print_end(run->progress, error) < 0)
		give_up(run, error);
	if (options->sample)
		trainer_print_sample(run->trainer, options->sample);
	return 0;
}
