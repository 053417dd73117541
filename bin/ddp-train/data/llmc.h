/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Model files of llm.c, for GPT-2. They begin with 256 int32 (20240326,
 * version, longest context, vocabulary, layers, heads, width, rows of the token
 * table, which pads the vocabulary, 0 ...). The parameters follow, fp32 in
 * version 3 and bf16 in version 5; all little-endian. First come the token
 * table and the positions, then of each kind of tensor those of all layers,
 * then the last norm.
 */
#ifndef DDP_TRAIN_LLMC_H
#define DDP_TRAIN_LLMC_H

struct ddp_error;
struct model;
struct model_shape;

/*
 * Check the header and the size of the file at path and complete shape by it.
 * A field of shape that is not 0 must be the file's, but the context may be
 * shorter. Returns 0, or -1 with error set and shape untouched.
 */
int llmc_complete_shape(const char *path, struct model_shape *shape,
			struct ddp_error *error);

/*
 * Fill param[param_count] of a GPT of such a shape by the file; padding is 0.
 * Returns 0, or -1 with error set.
 */
int llmc_read(const char *path, const struct model *model, float *param,
	      struct ddp_error *error);

#endif
