/* SPDX-License-Identifier: BSD-3-Clause */
/* Computes how much memory the GPU's operators work in. */
#include "cuda/sizes.h"
#include "util/error.h"

/*
 * The most that the logits of a block may take, unless those of a row take
 * more. In 16 bit a further block costs reading and writing the sum of dweight,
 * 1/10 of what its logits cost at this size; tests choose a small one.
 */
#ifndef CLASSIFIER_BYTES
#define CLASSIFIER_BYTES (512 << 20)
#endif

/* A step's workspace (CUDA_SUMS) has room for a row of partial sums. */
int sizes_check_shape(const struct device_shape *shape,
		      struct ddp_error *error)
{
	enum { MOST_WIDTH = CUDA_SUMS / 4, MOST_HEAD = 256 };

	if (shape->width > MOST_WIDTH)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--width %d is "
				     "more than the GPU's kernels compute: at "
				     "most %d", shape->width, MOST_WIDTH);
	if (shape->width / shape->heads > MOST_HEAD)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--heads %d of "
				     "--width %d makes heads of %d, and the "
				     "GPU's attention has at most %d: choose "
				     "more heads", shape->heads, shape->width,
				     shape->width / shape->heads, MOST_HEAD);
	return 0;
}

size_t sizes_count_own(enum device_type type)
{
	(void)type;
	return CUDA_SUMS * sizeof(float) + WORKSPACE;
}

unsigned sizes_count_norm_threads(int width)
{
	int threads = (width + NORM_VALUES * 32 - 1) / (NORM_VALUES * 32) * 32;

	return (unsigned)(threads < NORM_THREADS ? threads : NORM_THREADS);
}

unsigned sizes_count_norm_blocks(int rows, int width)
{
	enum { ENOUGH = 48 << 10 };	/* threads, which an A100 has at once */
	unsigned needed = ((unsigned)rows + NORM_ROWS - 1) / NORM_ROWS;
	unsigned enough = ENOUGH / sizes_count_norm_threads(width);

	return needed < enough ? needed : enough;
}

static size_t count_norm(const struct device_shape *shape)
{
	return sizes_count_norm_blocks(shape->rows, shape->width) *
	       2 * (size_t)shape->width * sizeof(float);
}

static size_t count_attention(const struct device_shape *shape)
{
	size_t heads = (size_t)(shape->rows / shape->context) *
		       (size_t)shape->heads;

	return heads * (size_t)ATTENTION_TERMS(shape->context) *
	       ATTENTION_TERM_BYTES;
}

size_t sizes_count_dnn_delta(int sequences, int context, int heads)
{
	size_t bytes = (size_t)sequences * (size_t)context * (size_t)heads *
		       sizeof(float);

	return (bytes + 255) / 256 * 256;
}

/*
 * cuDNN 9.19 and 9.26 ask for this on GPUs from 8.0 to 12.0: backward for the
 * gradients of scores in 16 bit, of tiles of 64 x 128, and some bytes in both
 * directions.
 */
size_t sizes_count_dnn_workspace(int sequences, int context, int heads)
{
	size_t rows = ((size_t)context + 63) / 64 * 64;
	size_t columns = ((size_t)context + 127) / 128 * 128;

	return (size_t)sequences * (size_t)heads * rows * columns * 2 + 4096;
}

static size_t count_dnn(const struct device_shape *shape)
{
	int sequences = shape->rows / shape->context;

	if (shape->attention != ATTENTION_CUDNN)
		return 0;
	return sizes_count_dnn_delta(sequences, shape->context, shape->heads) +
	       sizes_count_dnn_workspace(sequences, shape->context,
					 shape->heads);
}

enum { LOWER = 8 };

static int round_up(int x)
{
	return (x + LOWER - 1) / LOWER * LOWER;
}

/*
 * Whole tiles of cuBLASLt's, where that many fit; else as many rows that each
 * block of x begins at a multiple of 16 bytes.
 */
static int limit_rows(int rows, int stride)
{
	enum { TILE = 128 };
	size_t most = CLASSIFIER_BYTES / ((size_t)stride * sizeof(float));

	if ((size_t)rows <= most)
		return rows;
	most -= most % (most < TILE ? LOWER : TILE);
	return most > LOWER ? (int)most : LOWER;
}

struct classifier_parts sizes_divide_classifier(enum device_type type,
						int rows, int width, int vocab,
						void *work)
{
	struct classifier_parts parts = { .stride = device_pad_rows(vocab) };
	size_t logits, losses, sums;

	parts.rows = limit_rows(rows, parts.stride);
	parts.whole = parts.rows == rows;
	logits = (size_t)parts.rows * (size_t)parts.stride;
	losses = (size_t)round_up(rows);
	sums = parts.whole || type == DEVICE_FP32 ? 0 :
	       (size_t)parts.stride * (size_t)width;
	parts.bytes = (logits + losses + sums) * sizeof(float);
	if (!work)
		return parts;
	parts.logits = work;
	parts.losses = parts.logits + logits;
	parts.sums = parts.losses + losses;
	return parts;
}

static size_t count_classifier(const struct device_shape *shape)
{
	return sizes_divide_classifier(shape->type, shape->rows, shape->width,
				       shape->vocab, NULL).bytes;
}

size_t sizes_count_work(const struct device_shape *shape)
{
	const size_t counts[] = {
		count_norm(shape), count_attention(shape), count_dnn(shape),
		count_classifier(shape)
	};
	size_t most = 0;

	for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++)
		most = counts[i] > most ? counts[i] : most;
	return most;
}
