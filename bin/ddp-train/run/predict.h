/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How long a step would take on a GPU, operator by operator: the larger of what
 * its FLOP and what its bytes take, at stated shares of the GPU's rates. It is
 * what ddp-train's own operators read and write; the exchange between ranks,
 * which runs beside them, is not in it.
 */
#ifndef DDP_TRAIN_PREDICT_H
#define DDP_TRAIN_PREDICT_H

#include "device.h"
#include "model.h"
#include "run/rates.h"

/* The shares: what good kernels reach on large shapes. */
#define PREDICT_MATMUL 0.65
#define PREDICT_MEMORY 0.80

struct predict_run {
	const struct model_shape *shape;	/* of a GPT, complete */
	enum device_type type, grad_type;
	int chunk, chunks;		/* of a rank, in a step: sequences at
					   once, and how often */
	double updated;			/* parameters that this rank updates */
	bool adamw, recompute;
	bool tf32;			/* products of fp32 by tensor cores */
};

struct predict_row {
	const char *name;
	double times;			/* in a step */
	double flops, bytes, seconds;	/* of each of these times */
};

enum { PREDICT_ROWS = 20 };

/* Fill rows[PREDICT_ROWS]; returns how many. */
int predict_step(const struct rates *rates, const struct predict_run *run,
		 struct predict_row *rows);

/*
 * The share of attention. Without tensor cores, in fp32 or for heads of widths
 * that the quick kernels lack, it is much less; and mma.sync, in which these
 * are written, has only a part of the tensor cores of capability 9.0 and later.
 */
double predict_attention_share(const struct rates *rates,
			       const struct predict_run *run);

/* Seconds of a step. */
double predict_seconds(const struct rates *rates,
		       const struct predict_run *run);

#endif
