/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The operators on parameters and gradients, value by value. 16-bit ones are
 * widened and rounded in pieces that stay in the nearest cache.
 */
#include <math.h>

#include "cpu/cpu.h"
#include "cpu/value.h"
#include "step/sum_tree.h"
#include "step/rounding.h"

enum { PART = 1024 };

/* Values begin .. begin + count - 1 of x: where they lie, or in room. */
static const float *read_part(enum device_type type, const void *x,
			      size_t begin, size_t count, float *room)
{
	const void *at = value_at(type, x, begin);

	if (type == DEVICE_FP32)
		return at;
	half_widen(type, at, room, count);
	return room;
}

static size_t count_part(size_t count, size_t begin)
{
	return count - begin < PART ? count - begin : PART;
}

KERNEL static double sum_part_squares(const float *x, size_t count)
{
	double sum[LANES] = { 0 };
	size_t i = 0;

	for (; i + LANES <= count; i += LANES)
#pragma omp simd
		for (int lane = 0; lane < LANES; lane++)
			sum[lane] += (double)x[i + lane] * x[i + lane];
	for (int lane = 0; i < count; i++, lane++)
		sum[lane] += (double)x[i] * x[i];
	for (int lane = 1; lane < LANES; lane++)
		sum[0] += sum[lane];
	return sum[0];
}

void cpu_sum_squares(struct device *device, const struct op_sum_squares *op)
{
	float room[DEVICE_BLOCK];

	(void)device;
	for (size_t begin = 0; begin < op->count; begin += DEVICE_BLOCK) {
		size_t rest = op->count - begin;
		size_t count = rest < DEVICE_BLOCK ? rest : DEVICE_BLOCK;

		op->blocks[begin / DEVICE_BLOCK] = sum_part_squares(
			read_part(op->type, op->x, begin, count, room), count);
	}
}

static void change_loss_scale(struct step_state *state)
{
	if (state->skip)
		state->loss_scale /= 2;
	else if (state->good < LOSS_SCALE_STEPS)
		return;
	else
		state->loss_scale *= 2;
	state->good = 0;
}

void cpu_step(struct device *device, const struct op_step *op)
{
	struct step_state *state = op->state;
	double sum = 0, factor = 1;

	(void)device;
	for (size_t i = 0; i < op->count; i++)
		sum += op->blocks[op->order ? op->order[i] : i];
	state->norm = sqrt(sum) / state->loss_scale;
	state->skip = !isfinite(state->norm);
	if (op->clip > 0 && state->norm + 1e-6 > op->clip)
		factor = op->clip / (state->norm + 1e-6);
	state->factor = factor / state->loss_scale;
	state->updates += !state->skip;
	state->good += !state->skip;
	state->correction1 = 1 - pow(op->beta1, (double)state->updates);
	state->correction2 = 1 - pow(op->beta2, (double)state->updates);
	if (op->dynamic)
		change_loss_scale(state);
}

KERNEL static void update_adamw(const struct op_adamw *op, const float *grad,
				size_t begin, size_t count)
{
	const struct step_state *state = op->state;
	const float keep = (float)(1 - op->lr * op->decay);
	const float factor = (float)state->factor, eps = (float)op->eps;
	const float rest1 = (float)(1 - op->beta1);
	const float beta2 = (float)op->beta2, rest2 = (float)(1 - op->beta2);
	const float step = (float)(op->lr / state->correction1);
	const float correction2 = (float)state->correction2;
	float *param = op->param + begin;
	float *m = op->m + begin, *v = op->v + begin;

#pragma omp simd
	for (size_t i = 0; i < count; i++) {
		float g = grad[i] * factor;
		float mean = m[i] + rest1 * (g - m[i]);
		float square = beta2 * v[i] + rest2 * g * g;

		m[i] = mean;
		v[i] = square;
		param[i] = param[i] * keep -
			   step * mean / (sqrtf(square / correction2) + eps);
	}
}

KERNEL static void update_sgd(const struct op_sgd *op, const float *grad,
			      size_t begin, size_t count)
{
	const float lr = (float)op->lr, factor = (float)op->state->factor;
	const float decay = (float)op->decay, momentum = (float)op->momentum;
	float *param = op->param + begin, *v = op->v ? op->v + begin : NULL;

	if (!v) {
#pragma omp simd
		for (size_t i = 0; i < count; i++)
			param[i] -= lr * (grad[i] * factor + decay * param[i]);
		return;
	}
#pragma omp simd
	for (size_t i = 0; i < count; i++) {
		float g = grad[i] * factor + decay * param[i];

		v[i] = momentum * v[i] + g;
		param[i] -= lr * v[i];
	}
}

KERNEL static void choose_neighbours(const float *from, float *to,
				     uint64_t key, uint64_t first,
				     size_t count)
{
#pragma omp simd
	for (size_t i = 0; i < count; i++)
		to[i] = half_make_float(rounding_choose(half_get_bits(from[i]),
							key, first + i));
}

/* Rounds at most PART parameters to their copy. */
static void write_copy(const struct device *device, const struct op_round *op,
		       size_t begin, size_t count)
{
	const float *from = op->param + begin;
	float chosen[PART];

	if (!op->copy)
		return;
	if (op->rounding.stochastic && device->type == DEVICE_BF16) {
		choose_neighbours(from, chosen,
				  rounding_find_key(&op->rounding, op->state),
				  op->rounding.first + begin, count);
		from = chosen;
	}
	half_round(device->type, from, value_at(device->type, op->copy, begin),
		   count);
}

void cpu_round(struct device *device, const struct op_round *op)
{
	for (size_t begin = 0; begin < op->count; begin += PART)
		write_copy(device, op, begin, count_part(op->count, begin));
}

void cpu_adamw(struct device *device, const struct op_adamw *op)
{
	const struct op_round copy = { op->count, op->param, op->copy,
				       op->state, op->rounding };
	float room[PART];

	if (op->state->skip)
		return;
	for (size_t begin = 0; begin < op->count; begin += PART) {
		size_t count = count_part(op->count, begin);

		update_adamw(op, read_part(op->grad_type, op->grad, begin,
					   count, room), begin, count);
		write_copy(device, &copy, begin, count);
	}
}

void cpu_sgd(struct device *device, const struct op_sgd *op)
{
	const struct op_round copy = { op->count, op->param, op->copy,
				       op->state, op->rounding };
	float room[PART];

	if (op->state->skip)
		return;
	for (size_t begin = 0; begin < op->count; begin += PART) {
		size_t count = count_part(op->count, begin);

		update_sgd(op, read_part(op->grad_type, op->grad, begin, count,
					 room), begin, count);
		write_copy(device, &copy, begin, count);
	}
}

void cpu_add(struct device *device, float *x, enum device_type type,
	     const void *y, size_t count)
{
	float room[PART];

	(void)device;
	for (size_t begin = 0; begin < count; begin += PART) {
		size_t part = count_part(count, begin);

		fold_pair(x + begin, read_part(type, y, begin, part, room),
			  x + begin, part);
	}
}

void cpu_cast(struct device *device, enum device_type to_type, void *to,
	      enum device_type from_type, const void *from, size_t count)
{
	float room[PART];

	(void)device;
	for (size_t begin = 0; begin < count; begin += PART) {
		size_t part = count_part(count, begin);

		half_round(to_type, read_part(from_type, from, begin, part,
					      room),
			   value_at(to_type, to, begin), part);
	}
}
