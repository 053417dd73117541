/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The classifier with softmax and cross entropy, in blocks of rows: the logits
 * of a block in fp32, as the loss needs them, and then their gradient on the
 * same memory, rounded to the type; products by cuBLASLt.
 */
#include "cuda/gpu.h"
#include "cuda/cuda.h"

#include <math.h>

enum { THREADS = 512, N = 4, SPAN = THREADS * N };

/* Reduces x over the threads of a block; partial has a place for each warp. */
template <bool MAXIMUM>
__device__ static inline float reduce_block(float x, float *partial)
{
	int lane = threadIdx.x % 32, warp = threadIdx.x / 32;

	x = MAXIMUM ? warp_max(x) : warp_sum(x);
	if (lane == 0)
		partial[warp] = x;
	__syncthreads();
	x = lane < THREADS / 32 ? partial[lane] : MAXIMUM ? -INFINITY : 0;
	x = MAXIMUM ? warp_max(x) : warp_sum(x);
	__syncthreads();		/* before partial is used again */
	return x;
}

/* The largest logit, at least -FLT_MAX, and the sum of exp below it. */
__device__ static inline void read_row(int vocab, const float *x, float *top,
				       float *sum, float *partial)
{
	float most = -3.402823466e38f, total = 0, all;

	for (int i = threadIdx.x * N; i < vocab; i += SPAN) {
		pack<float, N> values = load_pack<N>(x + i);
		float before = most;

#pragma unroll
		for (int j = 0; j < N; j++)
			if (i + j < vocab)
				most = fmaxf(most, values.at[j]);
		total *= expf(before - most);
#pragma unroll
		for (int j = 0; j < N; j++)
			if (i + j < vocab)
				total += expf(values.at[j] - most);
	}
	all = reduce_block<true>(most, partial);
	*top = all;
	*sum = reduce_block<false>(total * expf(most - all), partial);
}

/*
 * scale * (softmax - one hot) over the logits, and 0 beyond the vocabulary. A
 * value of 16 bits lands on a logit of the same or of an earlier round: all have
 * been read by then.
 */
template <class T>
__device__ static inline void write_row(int vocab, int padded, const float *x,
					T *to, float top, float factor,
					int target, float scale)
{
	for (int begin = 0; begin < padded; begin += SPAN) {
		int i = begin + threadIdx.x * N;
		pack<float, N> values = {};
		pack<T, N> out;

		if (i < padded)
			values = load_pack<N>(x + i);
		__syncthreads();
#pragma unroll
		for (int j = 0; j < N; j++) {
			float d = factor * expf(values.at[j] - top);

			d = i + j == target ? d - scale : d;
			out.at[j] = narrow<T>(i + j < vocab ? d : 0);
		}
		if (i < padded)
			store_pack(to + i, out);
	}
}

/* A block a row: its loss and, with gradient, the logits' gradient. */
template <class T>
__global__ void __launch_bounds__(THREADS)
cross_entropy_kernel(int vocab, int stride, float *logits,
		     const int32_t *targets, float scale,
		     const double *loss_scale, bool gradient, float *losses)
{
	float *partial = (float *)dynamic_shared();
	float *x = logits + (size_t)blockIdx.x * stride, top, sum, loss;
	int target = targets[blockIdx.x];
	float wanted = x[target];

	read_row(vocab, x, &top, &sum, partial);
	loss = top - wanted + logf(sum);
	if (threadIdx.x == 0)
		losses[blockIdx.x] = loss;
	if (!gradient)
		return;
	if (loss_scale)
		scale = (float)(scale * *loss_scale);
	if (!isfinite(loss))
		scale = NAN;
	write_row(vocab, stride, x, (T *)x, top, scale / sum, target, scale);
}

/* The sum of the losses in fp64: by each thread of some, then of threads. */
__global__ void __launch_bounds__(THREADS)
sum_losses_kernel(int rows, const float *losses, float scale, double *loss)
{
	double *sums = (double *)dynamic_shared(), sum = 0;

	for (int row = threadIdx.x; row < rows; row += THREADS)
		sum += losses[row];
	sums[threadIdx.x] = sum;
	for (int half = THREADS / 2; half > 0; half /= 2) {
		__syncthreads();
		if (threadIdx.x < (unsigned)half)
			sums[threadIdx.x] += sums[threadIdx.x + half];
	}
	if (threadIdx.x == 0)
		*loss = scale * sums[0];
}

/* A block of rows: its first one, and how many. */
struct rows {
	int begin, count;
};

static void multiply_logits(struct device *device,
			    const struct op_classifier *op,
			    const struct classifier_parts *parts,
			    struct rows rows)
{
	struct product product = {};

	product.transpose_b = product.wide = true;
	product.m = rows.count;
	product.n = parts->stride;
	product.k = op->width;
	product.a = value_at(device->type, op->x,
			     (size_t)rows.begin * op->width);
	product.lda = product.ldb = op->width;
	product.b = op->weight;
	product.c = parts->logits;
	product.ldc = parts->stride;
	linear_multiply(device, &product);
}

/* dx = dlogits weight, of which each row is complete */
static void multiply_dx(struct device *device, const struct op_classifier *op,
			const struct classifier_parts *parts, int stride,
			struct rows rows)
{
	struct product product = {};

	product.m = rows.count;
	product.n = product.ldb = product.ldc = op->width;
	product.k = parts->stride;
	product.a = parts->logits;
	product.lda = stride;
	product.b = op->weight;
	product.c = value_at(device->type, op->dx,
			     (size_t)rows.begin * op->width);
	linear_multiply(device, &product);
}

/* dweight += dlogits^T x; in 16 bit the sum of several blocks is of fp32. */
static void multiply_dweight(struct device *device,
			     const struct op_classifier *op,
			     const struct classifier_parts *parts, int stride,
			     struct rows rows)
{
	bool floats = device->type == DEVICE_FP32;
	struct product product = {};

	product.transpose_a = true;
	product.wide = !floats && !parts->whole;
	product.add = rows.begin > 0 || (floats && op->accumulate);
	product.m = parts->stride;
	product.n = product.ldb = product.ldc = op->width;
	product.k = rows.count;
	product.a = parts->logits;
	product.lda = stride;
	product.b = value_at(device->type, op->x,
			     (size_t)rows.begin * op->width);
	product.c = product.wide ? parts->sums : op->dweight;
	linear_multiply(device, &product);
	if (product.wide && rows.begin + rows.count == op->rows)
		cuda_cast(device, device->type, op->dweight, DEVICE_FP32,
			  parts->sums, (size_t)op->vocab * op->width);
}

template <class T>
static void run_rows(struct device *device, const struct op_classifier *op,
		     const struct classifier_parts *parts, struct rows rows)
{
	int stride = parts->stride * (int)(sizeof(float) / sizeof(T));

	multiply_logits(device, op, parts, rows);
	cuda_check(device, launch(cuda_stream(device, QUEUE_COMPUTE),
				  rows.count, THREADS,
				  THREADS / 32 * sizeof(float),
				  cross_entropy_kernel<T>, op->vocab,
				  parts->stride, parts->logits,
				  op->targets + rows.begin, op->scale,
				  op->loss_scale, op->dx != NULL,
				  parts->losses + rows.begin),
		   "the classifier");
	if (!op->dx)
		return;
	multiply_dx(device, op, parts, stride, rows);
	multiply_dweight(device, op, parts, stride, rows);
}

void cuda_classifier(struct device *device, const struct op_classifier *op)
{
	struct classifier_parts parts = sizes_divide_classifier(
		device->type, op->rows, op->width, op->vocab, op->work);

	for (int begin = 0; begin < op->rows; begin += parts.rows) {
		int left = op->rows - begin;
		struct rows rows = { begin, left < parts.rows ? left :
						    parts.rows };

		FOR_TYPE(device->type, run_rows<T>(device, op, &parts, rows));
	}
	cuda_check(device, launch(cuda_stream(device, QUEUE_COMPUTE), 1,
				  THREADS, THREADS * sizeof(double),
				  sum_losses_kernel, op->rows, parts.losses,
				  op->scale, op->loss), "the loss");
}
