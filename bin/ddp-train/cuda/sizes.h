/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How much memory the GPU's operators work in, and which shapes they have. This
 * is arithmetic, which needs nothing of CUDA: the module has it, and ddp-train
 * has it too, so that --plan --gpu tells on any machine what the module would
 * take. How a workspace is divided is here, where its size follows from that.
 */
#ifndef DDP_TRAIN_CUDA_SIZES_H
#define DDP_TRAIN_CUDA_SIZES_H

#include "device.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ddp_error;

/* These become members of the device's table: see device.h. */
int sizes_check_shape(const struct device_shape *shape,
		      struct ddp_error *error);
size_t sizes_count_work(const struct device_shape *shape);
size_t sizes_count_own(enum device_type type);

/* A device takes these for itself: floats for sums, bytes for cuBLASLt. */
enum {
	CUDA_SUMS = 4 << 20,
	WORKSPACE = 32 << 20	/* what its fastest ask for on Hopper */
};

/* norm_backward.cu: threads of a block, and blocks of a launch */
enum {
	NORM_VALUES = 8,	/* of a row that a thread holds */
	NORM_ROWS = 2,		/* that it holds at once */
	NORM_THREADS = 512	/* most of a block */
};
unsigned sizes_count_norm_threads(int width);
unsigned sizes_count_norm_blocks(int rows, int width);

/*
 * attention_backward.cu: rows of terms of a head, an even number, for copies of
 * two rows; and bytes of a row
 */
#define ATTENTION_TERMS(context) ((context) + (context) % 2)
enum { ATTENTION_TERM_BYTES = 8 };

/* dnn.c: bytes of delta, and those that the plans of a shape, and all smaller
   ones, are to do with */
size_t sizes_count_dnn_delta(int sequences, int context, int heads);
size_t sizes_count_dnn_workspace(int sequences, int context, int heads);

/* classifier.cu: the parts of its workspace, each at a multiple of 32 bytes */
struct classifier_parts {
	int stride;		/* floats from row to row of the logits: as many
				   as rows of the table */
	int rows;		/* the most of a block */
	bool whole;		/* all rows are one block */
	float *logits;
	float *losses;		/* [rows of all blocks] */
	float *sums;		/* in 16 bit, unless whole: dweight's */
	size_t bytes;
};
struct classifier_parts sizes_divide_classifier(enum device_type type,
						int rows, int width, int vocab,
						void *work);

#ifdef __cplusplus
}
#endif
#endif
