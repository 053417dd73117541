/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A model: a table of functions over flat float arrays that the caller owns.
 * Gradients lie where their parameters lie, so that one buffer holds them all.
 */
#ifndef DDP_TRAIN_MODEL_H
#define DDP_TRAIN_MODEL_H

#include <stddef.h>
#include <stdint.h>

struct data;

/* Samples first .. first + count - 1 of the run's one sequence of samples. */
struct batch {
	const struct data *data;	/* NULL where data_size is 0 */
	uint64_t seed;
	uint64_t first;
	int count;			/* at least 1 */
};

struct model {
	const char *name;
	double lr;			/* learning rate unless given */
	size_t data_size;		/* least bytes of data; 0: takes none */
	size_t param_count;		/* floats */
	size_t work_count;		/* floats of workspace a sample */

	/* Fill param[param_count]. */
	void (*init)(float *param, uint64_t seed);

	/*
	 * Write the gradient of the batch's mean loss to grad[param_count] and
	 * return that loss.  work[work_count * batch->count] is scratch.
	 */
	double (*gradient)(const float *param, const struct batch *batch,
			   float *work, float *grad);
};

extern const struct model model_toy;	/* Linear 10-10, ReLU, Linear 10-5 */
extern const struct model model_mlp;	/* the next byte of a file */

#endif
