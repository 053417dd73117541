/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The most that GPUs can do: from their makers' data sheets, the figures for
 * dense matrices. A run's share of that is the model FLOPs utilisation (MFU).
 */
#ifndef DDP_TRAIN_RATES_H
#define DDP_TRAIN_RATES_H

#include <stdint.h>

#include "device.h"
#include "model.h"

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

#endif
