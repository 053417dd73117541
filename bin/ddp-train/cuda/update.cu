/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The operators on parameters and gradients, value by value. Memory bounds all
 * of them. What they are given may begin at any value of a tensor: see part.h.
 */
#include "cuda/cuda.h"
#include "cuda/gpu.h"
#include "cuda/part.h"
#include "step/rounding.h"

/* The numbers that all values share; the host computes them as the CPU does. */
struct adamw {
	float keep, lr, rest1, beta2, rest2, eps;
};

struct factors {
	float factor, step, correction2;
};

/*
 * a b, rounded. The compiler must not join the product with a sum, as it may in
 * a * b + c: a value has the same bits wherever it is computed.
 */
__device__ static float times(float a, float b)
{
	return __fmul_rn(a, b);
}

/* Updates one value by the formula of device.h. */
__device__ static void update_adamw(const struct adamw &adamw,
				    const struct factors &now, float grad,
				    float *param, float *m, float *v)
{
	float g = times(grad, now.factor);
	float mean = *m + times(adamw.rest1, g - *m);
	float square = times(adamw.beta2, *v) + times(times(adamw.rest2, g), g);

	*m = mean;
	*v = square;
	*param = times(*param, adamw.keep) - times(now.step, mean) /
		 (sqrtf(square / now.correction2) + adamw.eps);
}

__device__ inline bool is_bf16(const __nv_bfloat16 *) { return true; }
__device__ inline bool is_bf16(const void *) { return false; }

/* Parameters, rounded. */
template <class Copy>
__device__ static void write_copy(Copy *copy, part at, floats param,
				  const struct rounding &rounding,
				  const struct step_state *state)
{
	uint64_t key, value = rounding.first + (uint64_t)at.begin;

	if (is_bf16(copy) && rounding.stochastic) {
		key = rounding_find_key(&rounding, state);
#pragma unroll
		for (int j = 0; j < PART; j++)
			param.at[j] = __uint_as_float(rounding_choose(
				__float_as_uint(param.at[j]), key, value + j));
	}
	write_part(copy, at, param);
}

template <class Grad, class Copy>
__global__ __launch_bounds__(PART_THREADS)
void adamw_kernel(struct op_adamw op, struct adamw adamw, int shift)
{
	const struct factors now = {
		(float)op.state->factor,
		adamw.lr / (float)op.state->correction1,
		(float)op.state->correction2
	};

	if (op.state->skip)
		return;
	for (int i = 0; i < PARTS; i++) {
		const struct part at = find_part(i, shift, op.count);
		floats param = read_part(op.param, at);
		floats m = read_part(op.m, at), v = read_part(op.v, at);
		floats grad = read_part((const Grad *)op.grad, at);

#pragma unroll
		for (int j = 0; j < PART; j++)
			update_adamw(adamw, now, grad.at[j], &param.at[j],
				     &m.at[j], &v.at[j]);
		write_part(op.param, at, param);
		write_part(op.m, at, m);
		write_part(op.v, at, v);
		if (op.copy)
			write_copy((Copy *)op.copy, at, param, op.rounding,
				   op.state);
	}
}

struct sgd {
	float lr, momentum, decay;
};

template <class Grad, class Copy>
__global__ __launch_bounds__(PART_THREADS)
void sgd_kernel(struct op_sgd op, struct sgd sgd, int shift)
{
	const float factor = (float)op.state->factor;

	if (op.state->skip)
		return;
	for (int i = 0; i < PARTS; i++) {
		const struct part at = find_part(i, shift, op.count);
		floats param = read_part(op.param, at), v = {};
		floats grad = read_part((const Grad *)op.grad, at);

		if (op.v)
			v = read_part(op.v, at);
#pragma unroll
		for (int j = 0; j < PART; j++) {
			float g = times(grad.at[j], factor) +
				  times(sgd.decay, param.at[j]);

			v.at[j] = op.v ? times(sgd.momentum, v.at[j]) + g : g;
			param.at[j] -= times(sgd.lr, v.at[j]);
		}
		write_part(op.param, at, param);
		if (op.v)
			write_part(op.v, at, v);
		if (op.copy)
			write_copy((Copy *)op.copy, at, param, op.rounding,
				   op.state);
	}
}

template <class Copy>
__global__ __launch_bounds__(PART_THREADS)
void round_kernel(struct op_round op, int shift)
{
	for (int i = 0; i < PARTS; i++) {
		const struct part at = find_part(i, shift, op.count);

		write_copy((Copy *)op.copy, at, read_part(op.param, at),
			   op.rounding, op.state);
	}
}

template <class T>
__global__ __launch_bounds__(PART_THREADS)
void add_kernel(float *x, const T *y, size_t count, int shift)
{
	for (int i = 0; i < PARTS; i++) {
		const struct part at = find_part(i, shift, count);
		floats sum = read_part(x, at), more = read_part(y, at);

#pragma unroll
		for (int j = 0; j < PART; j++)
			sum.at[j] += more.at[j];
		write_part(x, at, sum);
	}
}

template <class To, class From>
__global__ __launch_bounds__(PART_THREADS)
void cast_kernel(To *to, const From *from, size_t count, int shift)
{
	for (int i = 0; i < PARTS; i++) {
		const struct part at = find_part(i, shift, count);

		write_part(to, at, read_part(from, at));
	}
}

template <class Grad>
static cudaError_t run_adamw(struct device *device, const struct op_adamw *op)
{
	cudaStream_t stream = cuda_stream(device, QUEUE_COMPUTE);
	int shift = find_shift(op->param);
	const struct adamw adamw = {
		(float)(1 - op->lr * op->decay), (float)op->lr,
		(float)(1 - op->beta1), (float)op->beta2,
		(float)(1 - op->beta2), (float)op->eps
	};

	FOR_TYPE(device->type, return launch(
		stream, count_part_blocks(op->count, shift), PART_THREADS, 0,
		adamw_kernel<Grad, T>, *op, adamw, shift));
	return cudaErrorInvalidValue;
}

template <class Grad>
static cudaError_t run_sgd(struct device *device, const struct op_sgd *op)
{
	cudaStream_t stream = cuda_stream(device, QUEUE_COMPUTE);
	int shift = find_shift(op->param);
	const struct sgd sgd = {
		(float)op->lr, (float)op->momentum, (float)op->decay
	};

	FOR_TYPE(device->type, return launch(
		stream, count_part_blocks(op->count, shift), PART_THREADS, 0,
		sgd_kernel<Grad, T>, *op, sgd, shift));
	return cudaErrorInvalidValue;
}

template <class To>
static cudaError_t run_cast(cudaStream_t stream, To *to,
			    enum device_type from_type, const void *from,
			    size_t count)
{
	int shift = find_shift(to);

	FOR_TYPE(from_type, return launch(
		stream, count_part_blocks(count, shift), PART_THREADS, 0,
		cast_kernel<To, T>, to, (const T *)from, count, shift));
	return cudaErrorInvalidValue;
}

extern "C" {

void cuda_adamw(struct device *device, const struct op_adamw *op)
{
	if (op->count > 0)
		FOR_TYPE(op->grad_type, cuda_check(
			device, run_adamw<T>(device, op), "AdamW"));
}

void cuda_sgd(struct device *device, const struct op_sgd *op)
{
	if (op->count > 0)
		FOR_TYPE(op->grad_type, cuda_check(
			device, run_sgd<T>(device, op), "SGD"));
}

void cuda_round(struct device *device, const struct op_round *op)
{
	cudaStream_t stream = cuda_stream(device, QUEUE_COMPUTE);
	int shift = find_shift(op->param);

	if (op->count > 0)
		FOR_TYPE(device->type, cuda_check(device, launch(
			stream, count_part_blocks(op->count, shift),
			PART_THREADS, 0, round_kernel<T>, *op, shift),
			"rounding of parameters"));
}

void cuda_add(struct device *device, float *x, enum device_type type,
	      const void *y, size_t count)
{
	cudaStream_t stream = cuda_stream(device, QUEUE_COMPUTE);
	int shift = find_shift(x);

	if (count > 0)
		FOR_TYPE(type, cuda_check(device, launch(
			stream, count_part_blocks(count, shift), PART_THREADS,
			0, add_kernel<T>, x, (const T *)y, count, shift),
			"sum of two tensors"));
}

void cuda_cast(struct device *device, enum device_type to_type, void *to,
	       enum device_type from_type, const void *from, size_t count)
{
	cudaStream_t stream = cuda_stream(device, QUEUE_COMPUTE);

	if (count > 0)
		FOR_TYPE(to_type, cuda_check(device, run_cast(
			stream, (T *)to, from_type, from, count),
			"change of type"));
}

}
