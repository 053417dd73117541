/* SPDX-License-Identifier: BSD-3-Clause */
#include "collective.h"
#include "model.h"
#include "trainer.h"

/* The part of the mean loss that one chunk of held-out sequences has. */
static double chunk_loss(struct trainer *trainer, uint64_t first)
{
	uint64_t left = trainer->held_out - first;
	uint64_t chunk = (uint64_t)trainer->chunk;
	struct device *device = &trainer->device;
	struct batch batch;

	trainer_load_held_out(trainer, first,
			      (int)(left < chunk ? left : chunk), &batch);
	trainer->model->evaluate(trainer->model, device, trainer->param,
				 &batch, 1 / (double)trainer->held_out,
				 trainer->losses);
	device_fetch(device, trainer->host_losses, trainer->losses,
		     sizeof(double));
	return trainer->host_losses[0];
}

/* The ranks take chunks in turn, and all add them up in the same order. */
double trainer_evaluate(struct trainer *trainer)
{
	struct collective *collective = trainer->collective;
	uint64_t chunk = (uint64_t)trainer->chunk;
	uint64_t turn = chunk * (uint64_t)collective->size;
	struct share *shares = trainer->shares;
	double sum = 0;

	for (uint64_t begin = 0; begin < trainer->held_out; begin += turn) {
		uint64_t first = begin + chunk * (uint64_t)collective->rank;
		struct share mine = { 0 };

		if (first < trainer->held_out)
			mine.loss = chunk_loss(trainer, first);
		collective->table->agree(collective, &mine, shares,
					 sizeof(mine));
		for (int rank = 0; rank < collective->size; rank++)
			sum += shares[rank].loss;
	}
	return sum;
}
