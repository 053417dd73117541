/* SPDX-License-Identifier: BSD-3-Clause */
/* The embeddings and layer norm. */
#include <math.h>
#include <string.h>

#include "cpu/cpu.h"
#include "fold.h"

/* A sum over rows is formed by blocks of ROWS, COLUMNS at once. */
enum { ROWS = 32, COLUMNS = 64 };

void cpu_embed(struct device *device, const struct op_embed *op)
{
	(void)device;
	for (int row = 0; row < op->rows; row++) {
		size_t token = (size_t)op->tokens[row];
		size_t position = (size_t)(row % op->context);
		size_t width = (size_t)op->width;

		fold_pair(op->token_table + token * width,
			  op->position_table + position * width,
			  op->out + (size_t)row * width, width);
	}
}

void cpu_embed_backward(struct device *device,
			const struct op_embed_backward *op)
{
	size_t width = (size_t)op->width;

	(void)device;
	if (!op->accumulate)
		memset(op->dposition_table, 0, (size_t)op->context * width *
		       sizeof(float));
	for (int row = 0; row < op->rows; row++) {
		const float *dout = op->dout + (size_t)row * width;
		size_t token = (size_t)op->tokens[row];
		size_t position = (size_t)(row % op->context);
		float *dtoken = op->dtoken_table + token * width;
		float *dposition = op->dposition_table + position * width;

		fold_pair(dtoken, dout, dtoken, width);
		fold_pair(dposition, dout, dposition, width);
	}
}

static double sum_lanes(const float *lanes)
{
	double sum = 0;

	for (int lane = 0; lane < LANES; lane++)
		sum += lanes[lane];
	return sum;
}

KERNEL static double sum_row(const float *x, int n)
{
	float sum[LANES] = { 0 };
	int i = 0;

	for (; i <= n - LANES; i += LANES)
#pragma omp simd
		for (int lane = 0; lane < LANES; lane++)
			sum[lane] += x[i + lane];
	for (int lane = 0; i < n; i++, lane++)
		sum[lane] += x[i];
	return sum_lanes(sum);
}

KERNEL static double sum_row_squares(const float *x, float mean, int n)
{
	float sum[LANES] = { 0 };
	int i = 0;

	for (; i <= n - LANES; i += LANES)
#pragma omp simd
		for (int lane = 0; lane < LANES; lane++)
			sum[lane] += (x[i + lane] - mean) *
				     (x[i + lane] - mean);
	for (int lane = 0; i < n; i++, lane++)
		sum[lane] += (x[i] - mean) * (x[i] - mean);
	return sum_lanes(sum);
}

KERNEL static void normalize(const struct op_norm *op, const float *x,
			     float mean, float rstd, float *out)
{
	const float *gain = op->gain, *bias = op->bias;
	int width = op->width;

#pragma omp simd
	for (int i = 0; i < width; i++)
		out[i] = (x[i] - mean) * rstd * gain[i] + bias[i];
}

void cpu_norm(struct device *device, const struct op_norm *op)
{
	int width = op->width;

	(void)device;
	for (int row = 0; row < op->rows; row++) {
		size_t begin = (size_t)row * (size_t)width;
		const float *x = op->x + begin;
		double squares;
		float mean;

		if (op->residual) {
			fold_pair(x, op->residual + begin, op->sum + begin,
				  (size_t)width);
			x = op->sum + begin;
		}
		mean = (float)(sum_row(x, width) / width);
		squares = sum_row_squares(x, mean, width);
		op->mean[row] = mean;
		op->rstd[row] = (float)(1 / sqrt(squares / width +
						 (double)op->eps));
		normalize(op, x, op->mean[row], op->rstd[row], op->out + begin);
	}
}

/* The row's sums of dout * gain and of that times the normalised x. */
KERNEL static void sum_row_moments(const struct op_norm_backward *op, int row,
				   double *first, double *second)
{
	const float *x = op->sum + (size_t)row * (size_t)op->width;
	const float *dout = op->dout + (size_t)row * (size_t)op->width;
	const float *gain = op->gain;
	float mean = op->mean[row], rstd = op->rstd[row];
	float sum1[LANES] = { 0 }, sum2[LANES] = { 0 };
	int i = 0;

	for (; i <= op->width - LANES; i += LANES)
#pragma omp simd
		for (int lane = 0; lane < LANES; lane++) {
			float dy = dout[i + lane] * gain[i + lane];

			sum1[lane] += dy;
			sum2[lane] += dy * ((x[i + lane] - mean) * rstd);
		}
	for (int lane = 0; i < op->width; i++, lane++) {
		float dy = dout[i] * gain[i];

		sum1[lane] += dy;
		sum2[lane] += dy * ((x[i] - mean) * rstd);
	}
	*first = sum_lanes(sum1);
	*second = sum_lanes(sum2);
}

KERNEL static void add_row_gradient(const struct op_norm_backward *op, int row,
				    float mean1, float mean2)
{
	const float *x = op->sum + (size_t)row * (size_t)op->width;
	const float *dout = op->dout + (size_t)row * (size_t)op->width;
	float *dx = op->dsum + (size_t)row * (size_t)op->width;
	const float *gain = op->gain;
	float mean = op->mean[row], rstd = op->rstd[row];
	int width = op->width;

#pragma omp simd
	for (int i = 0; i < width; i++)
		dx[i] += rstd * (dout[i] * gain[i] - mean1 -
				 (x[i] - mean) * rstd * mean2);
}

/* Adds the gain's and the bias's gradients over some rows, in some columns. */
KERNEL static void sum_columns(const struct op_norm_backward *op, int row,
			       int rows, int column, int columns)
{
	float dgain[COLUMNS] = { 0 }, dbias[COLUMNS] = { 0 };

	for (int end = row + rows; row < end; row++) {
		size_t begin = (size_t)row * (size_t)op->width +
			       (size_t)column;
		const float *x = op->sum + begin, *dout = op->dout + begin;
		float mean = op->mean[row], rstd = op->rstd[row];

#pragma omp simd
		for (int i = 0; i < columns; i++) {
			dgain[i] += dout[i] * ((x[i] - mean) * rstd);
			dbias[i] += dout[i];
		}
	}
	for (int i = 0; i < columns; i++) {
		op->dgain[column + i] += dgain[i];
		op->dbias[column + i] += dbias[i];
	}
}

void cpu_norm_backward(struct device *device,
		       const struct op_norm_backward *op)
{
	int width = op->width;

	(void)device;
	if (!op->accumulate) {
		memset(op->dgain, 0, (size_t)width * sizeof(float));
		memset(op->dbias, 0, (size_t)width * sizeof(float));
	}
	for (int row = 0; row < op->rows; row++) {
		double first, second;

		sum_row_moments(op, row, &first, &second);
		add_row_gradient(op, row, (float)(first / width),
				 (float)(second / width));
		if ((row + 1) % ROWS != 0 && row + 1 < op->rows)
			continue;
		for (int column = 0; column < width; column += COLUMNS)
			sum_columns(op, row - row % ROWS, row % ROWS + 1,
				    column, width - column < COLUMNS ?
				    width - column : COLUMNS);
	}
}
