/* SPDX-License-Identifier: BSD-3-Clause */
/* Layer norm. */
#include <math.h>
#include <string.h>

#include "cpu/cpu.h"
#include "cpu/value.h"

/* A sum over rows is formed by blocks of ROWS, COLUMNS at once. */
enum { ROWS = 32, COLUMNS = 64 };

/* Returns the bytes of the sums that become dgain and dbias in 16 bit. */
size_t cpu_count_norm_work(const struct device_shape *shape)
{
	return shape->type == DEVICE_FP32 ? 0 :
	       2 * (size_t)shape->width * sizeof(float);
}

static double sum_lanes(const float *lanes)
{
	double sum = 0;

	for (int lane = 0; lane < LANES; lane++)
		sum += lanes[lane];
	return sum;
}

INLINE double sum_values(enum device_type type, const void *x, int n)
{
	float sum[LANES] = { 0 };
	int i = 0;

	for (; i <= n - LANES; i += LANES)
#pragma omp simd
		for (int lane = 0; lane < LANES; lane++)
			sum[lane] += load(type, x, i + lane);
	for (int lane = 0; i < n; i++, lane++)
		sum[lane] += load(type, x, i);
	return sum_lanes(sum);
}

INLINE double sum_squares(enum device_type type, const void *x, float mean,
			  int n)
{
	float sum[LANES] = { 0 };
	int i = 0;

	for (; i <= n - LANES; i += LANES)
#pragma omp simd
		for (int lane = 0; lane < LANES; lane++) {
			float d = load(type, x, i + lane) - mean;

			sum[lane] += d * d;
		}
	for (int lane = 0; i < n; i++, lane++) {
		float d = load(type, x, i) - mean;

		sum[lane] += d * d;
	}
	return sum_lanes(sum);
}

INLINE void add_residual(enum device_type type, const void *x,
			 const void *residual, int width, void *sum)
{
#pragma omp simd
	for (int i = 0; i < width; i++)
		save(type, sum, i, load(type, x, i) + load(type, residual, i));
}

INLINE void normalize(enum device_type type, const struct op_norm *op,
		      const void *x, float mean, float rstd, void *out)
{
	const void *gain = op->gain, *bias = op->bias;
	int width = op->width;

#pragma omp simd
	for (int i = 0; i < width; i++)
		save(type, out, i, (load(type, x, i) - mean) * rstd *
				   load(type, gain, i) + load(type, bias, i));
}

INLINE void norm_row(enum device_type type, const struct op_norm *op, int row)
{
	int width = op->width;
	size_t begin = (size_t)row * (size_t)width;
	const void *x = value_at(type, op->x, begin);
	double squares;
	float mean, rstd;

	if (op->residual) {
		void *sum = value_at(type, op->sum, begin);

		add_residual(type, x, value_at(type, op->residual, begin),
			     width, sum);
		x = sum;
	}
	mean = (float)(sum_values(type, x, width) / width);
	squares = sum_squares(type, x, mean, width);
	rstd = (float)(1 / sqrt(squares / width + (double)op->eps));
	op->mean[row] = mean;
	op->rstd[row] = rstd;
	normalize(type, op, x, mean, rstd, value_at(type, op->out, begin));
}

KERNEL static void norm_rows(enum device_type type, const struct op_norm *op)
{
	for (int row = 0; row < op->rows; row++)
		FOR_TYPE(type, norm_row(T, op, row));
}

void cpu_norm(struct device *device, const struct op_norm *op)
{
	norm_rows(device->type, op);
}

/* The row's sums of dout * gain and of that times the normalised x. */
INLINE void sum_moments(enum device_type type,
			const struct op_norm_backward *op, int row,
			double *first, double *second)
{
	size_t begin = (size_t)row * (size_t)op->width;
	const void *x = value_at(type, op->sum, begin);
	const void *dout = value_at(type, op->dout, begin);
	const void *gain = op->gain;
	float mean = op->mean[row], rstd = op->rstd[row];
	float sum1[LANES] = { 0 }, sum2[LANES] = { 0 };
	int i = 0;

	for (; i <= op->width - LANES; i += LANES)
#pragma omp simd
		for (int lane = 0; lane < LANES; lane++) {
			float dy = load(type, dout, i + lane) *
				   load(type, gain, i + lane);

			sum1[lane] += dy;
			sum2[lane] += dy * ((load(type, x, i + lane) - mean) *
					    rstd);
		}
	for (int lane = 0; i < op->width; i++, lane++) {
		float dy = load(type, dout, i) * load(type, gain, i);

		sum1[lane] += dy;
		sum2[lane] += dy * ((load(type, x, i) - mean) * rstd);
	}
	*first = sum_lanes(sum1);
	*second = sum_lanes(sum2);
}

INLINE void add_gradient(enum device_type type,
			 const struct op_norm_backward *op, int row,
			 float mean1, float mean2)
{
	size_t begin = (size_t)row * (size_t)op->width;
	const void *x = value_at(type, op->sum, begin);
	const void *dout = value_at(type, op->dout, begin);
	void *dx = value_at(type, op->dsum, begin);
	const void *gain = op->gain;
	float mean = op->mean[row], rstd = op->rstd[row];
	int width = op->width;

#pragma omp simd
	for (int i = 0; i < width; i++)
		save(type, dx, i, load(type, dx, i) +
		     rstd * (load(type, dout, i) * load(type, gain, i) -
			     mean1 - (load(type, x, i) - mean) * rstd * mean2));
}

KERNEL static void run_row_backward(enum device_type type,
				    const struct op_norm_backward *op, int row)
{
	int width = op->width;
	double first, second;

	FOR_TYPE(type, sum_moments(T, op, row, &first, &second));
	FOR_TYPE(type, add_gradient(T, op, row, (float)(first / width),
				    (float)(second / width)));
}

/* Sums over some rows, in some columns, and adds that to dgain and dbias. */
INLINE void sum_block(enum device_type type, const struct op_norm_backward *op,
		      int row, int end, int column, int columns, float *dgain,
		      float *dbias)
{
	float gain[COLUMNS] = { 0 }, bias[COLUMNS] = { 0 };

	for (; row < end; row++) {
		size_t begin = (size_t)row * (size_t)op->width +
			       (size_t)column;
		const void *x = value_at(type, op->sum, begin);
		const void *dout = value_at(type, op->dout, begin);
		float mean = op->mean[row], rstd = op->rstd[row];

#pragma omp simd
		for (int i = 0; i < columns; i++) {
			float d = load(type, dout, i);

			gain[i] += d * ((load(type, x, i) - mean) * rstd);
			bias[i] += d;
		}
	}
	for (int i = 0; i < columns; i++) {
		dgain[column + i] += gain[i];
		dbias[column + i] += bias[i];
	}
}

KERNEL static void sum_columns(enum device_type type,
			       const struct op_norm_backward *op, int row,
			       int end, float *dgain, float *dbias)
{
	for (int column = 0; column < op->width; column += COLUMNS) {
		int left = op->width - column;

		FOR_TYPE(type, sum_block(T, op, row, end, column,
					 left < COLUMNS ? left : COLUMNS,
					 dgain, dbias));
	}
}

void cpu_norm_backward(struct device *device,
		       const struct op_norm_backward *op)
{
	enum device_type type = device->type;
	size_t width = (size_t)op->width;
	bool wide = type == DEVICE_FP32;
	float *dgain = wide ? op->dgain : op->work;
	float *dbias = wide ? op->dbias : dgain + width;

	if (!wide || !op->accumulate) {
		memset(dgain, 0, width * sizeof(*dgain));
		memset(dbias, 0, width * sizeof(*dbias));
	}
	for (int row = 0; row < op->rows; row++) {
		run_row_backward(type, op, row);
		if ((row + 1) % ROWS == 0 || row + 1 == op->rows)
			sum_columns(type, op, row - row % ROWS, row + 1, dgain,
				    dbias);
	}
	if (wide)
		return;
	half_round(type, dgain, op->dgain, width);
	half_round(type, dbias, op->dbias, width);
}
