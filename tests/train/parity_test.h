/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What parity.c computes with: a model on a device, whose memory is reached by
 * the device's copies only; the host's copies; the input and the output.
 */
#ifndef DDP_TEST_PARITY_TEST_H
#define DDP_TEST_PARITY_TEST_H

#include <stdint.h>
#include <stdio.h>

#include "device.h"
#include "model.h"

struct settings {
	float lr, min_lr, beta1, beta2, eps, momentum, decay, clip;
};

struct header {
	int32_t layers, heads, width, context, vocab;
	int32_t sequences, batches, tensors;
	int32_t warmup, skipped;	/* a step without an update */
	struct settings adamw, sgd;
};

enum { MOST_TENSORS = 1024 };

struct test {
	struct header header;
	struct model *model;
	struct device device;
	FILE *in, *out;
	int order[MOST_TENSORS];	/* tensors of the input, by the model's
					   numbers */
	double loss_scale;		/* of the gradient, in fp16 */

	/* On the device: values of its type, */
	void *param, *grad, *other, *logits;
	/* and of fp32; in an fp32 run the master is param. */
	float *start, *master, *sum, *m, *v;
	int32_t *tokens, *targets, *rows;	/* [sequences][context] */
	double *loss, *blocks;
	struct step_state *state;

	/* On the host; both rooms have the largest of what is compared. */
	int32_t *all_tokens, *all_targets;	/* [batches][sequences]
						   [context] */
	int32_t *sorted;		/* [2][sequences][context] */
	float *values, *more;

	size_t final;			/* values that are final */
};

/* One line to stderr, and the end. */
_Noreturn void die(const char *text, const char *what);

/* Open files, device (a module, or "cpu") and model by the input's header. */
void open_test(struct test *test, char **files, const char *module,
	       enum device_type type);
void close_test(struct test *test);

/* A model like the test's, with its memory on the device. */
struct model *create_model(struct test *test, bool recompute);

/* Bytes of the device's memory, now. */
void fetch(struct test *test, void *to, const void *from, size_t bytes);

/* Whether values of the device's type have the same bits. */
bool are_same(struct test *test, const void *one, const void *other,
	      size_t count);

/* How far such values are apart: the L2 norm of the difference, by the one's. */
double measure_difference(struct test *test, const void *one,
			  const void *other, size_t count);

/* Write to the output: float64. */
void put_double(struct test *test, double value);

/* Values on the device, by `scale`. */
void put_values(struct test *test, enum device_type type, const void *from,
		size_t count, double scale);

/* Values of all tensors, by the input's order: test->values as they are, */
void put_tensors(struct test *test, double scale);

/* or what there is on the device. */
void put_device_tensors(struct test *test, enum device_type type,
			const void *from, double scale);

#endif
