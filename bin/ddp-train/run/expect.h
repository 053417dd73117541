/* SPDX-License-Identifier: BSD-3-Clause */
/* The speed that a run should reach with its GPUs: rates.h and predict.h. */
#ifndef DDP_TRAIN_EXPECT_H
#define DDP_TRAIN_EXPECT_H

#include <stdint.h>

struct options;
struct rates;
struct run;
struct trainer;

/* The model's FLOP of a step, of all ranks; 0 of the toy. */
double expect_flops(const struct options *options);

/*
 * Tell rank 0's progress what all GPUs can do, and how long a step should take
 * on the slowest; or print that a GPU is not known. Collective.
 */
void expect_rates(struct run *run);

/* A step on a GPU, operator by operator, to stdout. */
void expect_print(const struct trainer *trainer, const struct rates *rates);

#endif
