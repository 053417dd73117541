/* SPDX-License-Identifier: BSD-3-Clause */
/* Embedding, layer norm, linear layer and GELU. */
#include "operators.h"

struct embed_case {
	int rows, context, width, vocab;
	bool accumulate;
};

/* What out and the gradients of both tables become. */
static void embed_reference(const struct embed_case *c, const int32_t *tokens,
			    const double *const *tables, const double *dout,
			    double *const *wanted)
{
	for (int i = 0; i < c->rows * c->width; i++) {
		int token = tokens[i / c->width] * c->width + i % c->width;
		int position = i % (c->context * c->width);

		wanted[0][i] = tables[0][token] + tables[1][position];
		wanted[1][token] += dout[i];
		wanted[2][position] += dout[i];
	}
}

/* Rows by token, by looking through them for each token. */
static const int32_t *put_order(const struct embed_case *c,
				const int32_t *tokens)
{
	int32_t order[256], count = 0;

	for (int token = 0; token < c->vocab; token++)
		for (int row = 0; row < c->rows; row++)
			if (tokens[row] == token)
				order[count++] = row;
	return put(order, (size_t)count * sizeof(*order));
}

static void embed_body(const void *arguments)
{
	const struct embed_case *c = arguments;
	size_t width = (size_t)c->width, count = (size_t)c->rows * width;
	size_t positions = (size_t)c->context * width;
	const int32_t *at, *tokens = draw_tokens(c->rows, c->vocab, &at);
	struct tensor table = draw((size_t)c->vocab * width, 0, 1);
	struct tensor position = draw(positions, 0, 1), out = blank(count);
	struct tensor dout = draw(count, 0, 1);
	struct tensor dtable = draw(table.count, 0, 1);
	struct tensor dposition = c->accumulate ? draw(positions, 0, 1) :
						  blank(positions);
	double *wanted[] = { host_doubles(count), twin(&dtable),
			     twin(&dposition) };

	rounding = 2 * TORCH_EMBED;
	embed_reference(c, tokens, (const double *[]){ table.value,
						       position.value },
			dout.value, wanted);
	device.table->embed(&device, &(struct op_embed){
		c->rows, c->context, c->width, at, table.at, position.at,
		out.at });
	compare("out", &out, wanted[0], FORWARD);
	device.table->embed_backward(&device, &(struct op_embed_backward){
		c->rows, c->context, c->width, at, put_order(c, tokens),
		dout.at, dtable.at, dposition.at, c->accumulate });
	compare("dtoken_table", &dtable, wanted[1], FORWARD);
	compare("dposition_table", &dposition, wanted[2], FORWARD);
}

void test_embed(void)
{
	static const struct embed_case cases[] = {
		{ 1, 1, 8, 7, false }, { 1, 1, 8, 7, true },
		{ 10, 5, 21, 7, false }, { 15, 5, 21, 300, true },
		{ 130, 65, 63, 300, false }, { 65, 65, 63, 7, true },
		{ 5, 17, 21, 7, false }, { 5, 17, 21, 7, true },
		{ 130, 5, 21, 2, false }, { 250, 2, 264, 3, false }
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct embed_case *c = &cases[i];
		char name[128];

		if (c->accumulate && device.type != DEVICE_FP32)
			continue;
		snprintf(name, sizeof(name), "embed: %d rows, context %d, "
			 "width %d, vocab %d%s", c->rows, c->context, c->width,
			 c->vocab, c->accumulate ? ", accumulate" : "");
		test_case(name, embed_body, c);
	}
}

struct norm_case {
	int rows, width;
	bool residual, accumulate;
	double mean;
};

struct norm_operands {
	int rows, width;
	struct tensor sum, gain, bias, dout;
	double *out, *mean, *rstd;
};

static double norm_reference(const void *operands)
{
	const struct norm_operands *o = operands;
	double loss = 0;

	for (int row = 0; row < o->rows; row++) {
		size_t begin = (size_t)row * (size_t)o->width;
		const double *x = o->sum.value + begin;
		double mean = 0, square = 0, rstd;

		for (int i = 0; i < o->width; i++)
			mean += x[i] / o->width;
		for (int i = 0; i < o->width; i++)
			square += pow(x[i] - mean, 2) / o->width;
		rstd = 1 / sqrt(square + 1e-5);
		o->mean[row] = mean;
		o->rstd[row] = rstd;
		for (int i = 0; i < o->width; i++) {
			double *out = &o->out[begin + (size_t)i];

			*out = (x[i] - mean) * rstd * o->gain.value[i] +
			       o->bias.value[i];
			loss += *out * o->dout.value[begin + (size_t)i];
		}
	}
	return loss;
}

static void norm_forward(const struct norm_case *c, struct norm_operands *o,
			 struct op_norm_backward *back)
{
	size_t width = (size_t)c->width, count = (size_t)c->rows * width;
	struct tensor x = draw(count, c->mean, 1);
	struct tensor residual = draw(count, 0, 0.5);
	struct tensor out = blank(count);
	struct tensor mean = blank_floats((size_t)c->rows);
	struct tensor rstd = blank_floats((size_t)c->rows);
	double *sum = host_doubles(count);

	o->sum = c->residual ? blank(count) : x;
	for (size_t i = 0; i < count && c->residual; i++)
		sum[i] = x.value[i] + residual.value[i];
	device.table->norm(&device, &(struct op_norm){
		c->rows, c->width, 1e-5f, x.at, c->residual ? residual.at :
		NULL, o->gain.at, o->bias.at, c->residual ? o->sum.at : NULL,
		out.at, mean.at, rstd.at });
	if (c->residual)	/* what was rounded is normalised */
		compare("sum", &o->sum, sum, FORWARD);
	norm_reference(o);
	compare("out", &out, o->out, FORWARD);
	compare("mean", &mean, o->mean, FORWARD);
	compare("rstd", &rstd, o->rstd, FORWARD);
	back->sum = o->sum.at;
	back->mean = mean.at;
	back->rstd = rstd.at;
}

static void norm_body(const void *arguments)
{
	const struct norm_case *c = arguments;
	size_t width = (size_t)c->width, rows = (size_t)c->rows;
	size_t count = rows * width;
	struct op_norm_backward back = { .rows = c->rows, .width = c->width };
	struct norm_operands o = {
		c->rows, c->width, .gain = draw(width, 1, 0.5),
		.bias = draw(width, 0, 1), .dout = draw(count, 0, 1),
		.out = host_doubles(count), .mean = host_doubles(rows),
		.rstd = host_doubles(rows)
	};
	struct tensor dsum = draw(count, 0, 1);
	struct tensor dgain = c->accumulate ? draw(width, 0, 1) : blank(width);
	struct tensor dbias = c->accumulate ? draw(width, 0, 1) : blank(width);

	rounding = 2 * TORCH_NORM;
	norm_forward(c, &o, &back);
	back.gain = o.gain.at;
	back.dout = o.dout.at;
	back.dsum = dsum.at;
	back.dgain = dgain.at;
	back.dbias = dbias.at;
	back.accumulate = c->accumulate;
	back.work = place_work(&(struct device_shape){ c->rows, 1, 1, c->width,
						       1, 0, 0 });
	device.table->norm_backward(&device, &back);
	gradient("dgain", norm_reference, &o, (double)count, &o.gain, &dgain);
	gradient("dbias", norm_reference, &o, (double)count, &o.bias, &dbias);
	/* What is rounded is the sum with as much, dsum's first values. */
	rounding = 2 * TORCH_NORM * sqrt(2);
	gradient("dsum", norm_reference, &o, (double)count, &o.sum, &dsum);
}

void test_norm(void)
{
	static const int shapes[][2] = {
		{ 1, 8 }, { 5, 21 }, { 17, 63 }, { 33, 64 }, { 65, 131 }
	};
	static const struct norm_case large[] = {
		{ 3100, 8, true, false, 0 }, { 3101, 3, true, false, 0 },
		{ 9, 768, true, false, 0 }, { 3, 4104, true, false, 0 },
		{ 2, 13008, false, false, 0 }
	};

	for (size_t i = 0; i < 4 * sizeof(shapes) / sizeof(*shapes); i++) {
		struct norm_case c = { shapes[i / 4][0], shapes[i / 4][1],
				       i & 1, i & 2, 0 };
		char name[128];

		if (c.accumulate && device.type != DEVICE_FP32)
			continue;
		snprintf(name, sizeof(name), "norm: %d rows of %d%s%s", c.rows,
			 c.width, c.residual ? ", residual" : "",
			 c.accumulate ? ", accumulate" : "");
		test_case(name, norm_body, &c);
	}
	/* More rows, or longer ones, than a device has at once. */
	for (size_t i = 0; i < sizeof(large) / sizeof(*large); i++) {
		char name[128];

		snprintf(name, sizeof(name), "norm: %d rows of %d",
			 large[i].rows, large[i].width);
		test_case(name, norm_body, &large[i]);
	}
	/* The variance is not the difference of two large numbers. */
	test_case("norm: a mean of 30 deviations", norm_body,
		  &(struct norm_case){ 5, 63, false, false, 30 });
}
