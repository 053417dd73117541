/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How long a step would take on a GPU, operator by operator: the larger of what
 * its FLOP and what its bytes take, at stated shares of the GPU's rates. It is
 * what ddp-train's own operators read and write; the exchange between ranks,
 * which runs beside them, is not in it.
 */
#ifndef DDP_TRAIN_PREDICT_H
#define DDP_TRAIN_PREDICT_H

#include <stdint.h>

#include "device.h"
#include "model.h"

/*
 * The most that a GPU can do: from its maker's data sheet, the figures for
 * dense matrices. A run's share of that is the model FLOPs utilisation (MFU).
 */
struct rates {
	const char *name;		/* as users say it: "H100" */
	const char *model;		/* the driver's name without "NVIDIA "
					   and "GeForce " */
	double half, single;		/* FLOP/s: 16 bit with fp32 sums on
					   tensor cores; fp32 without them */
	double bandwidth;		/* of its memory, bytes/s */
	int mebibytes;			/* of its memory, as nvidia-smi has it */
	int capability;			/* 80: compute capability 8.0 */
};

/*
 * Finds a GPU by the driver's name, as "NVIDIA H100 80GB HBM3", or as users say
 * it, in either case; NULL: unknown.
 */
const struct rates *rates_find(const char *name);

/* The names that users say, with commas. */
const char *rates_names(void);

/* TF32, of which all of these do half as much as of 16 bit, is for fp32. */
static inline double rates_flops(const struct rates *rates,
				 enum device_type type, bool tf32)
{
	double wide = tf32 ? rates->half / 2 : rates->single;

	return type == DEVICE_FP32 ? wide : rates->half;
}

/*
 * The FLOP of a step of a GPT, as Chowdhery et al. 2022 (PaLM), appendix B,
 * count them, but of attention only what a causal mask leaves: per token
 * 6 N + 6 L C T, where N counts the parameters but the table of positions.
 */
double rates_count_model_flops(const struct model_shape *shape,
			       uint64_t tokens);

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
