/* SPDX-License-Identifier: BSD-3-Clause */
/* Attention. */
#include "operators.h"

enum { MOST_CONTEXT = 257 };

struct attention_case {
	int sequences, context, heads, size;	/* size: width / heads */
};

struct attention_operands {
	struct attention_case c;
	struct tensor qkv, dout;
	double *out, *lse;
};

/* One row of one head: its output, which it adds to out, and its lse. */
static double attend(const struct attention_case *c, const double *qkv,
		     int row, double *out)
{
	int width = c->heads * c->size;
	double weight[MOST_CONTEXT], sum = 0;

	for (int t = 0; t <= row; t++) {
		double score = 0;

		for (int i = 0; i < c->size; i++)
			score += qkv[row * 3 * width + i] *
				 qkv[t * 3 * width + width + i];
		weight[t] = exp(score / sqrt(c->size));
		sum += weight[t];
	}
	for (int i = 0; i < c->size; i++)
		out[i] = 0;
	for (int t = 0; t <= row; t++)
		for (int i = 0; i < c->size; i++)
			out[i] += weight[t] / sum *
				  qkv[t * 3 * width + 2 * width + i];
	return log(sum);
}

static double attention_reference(const void *operands)
{
	const struct attention_operands *o = operands;
	const struct attention_case *c = &o->c;
	int width = c->heads * c->size;
	double loss = 0;

	for (int i = 0; i < c->sequences * c->heads * c->context; i++) {
		int row = i % c->context, head = i / c->context % c->heads;
		int first = i / c->context / c->heads * c->context;
		int at = (first + row) * width + head * c->size;

		o->lse[i] = attend(c, o->qkv.value + first * 3 * width +
				   head * c->size, row, o->out + at);
		for (int j = 0; j < c->size; j++)
			loss += o->out[at + j] * o->dout.value[at + j];
	}
	return loss;
}

static void attention_body(const void *arguments)
{
	const struct attention_case *c = arguments;
	int rows = c->sequences * c->context, width = c->heads * c->size;
	size_t count = (size_t)rows * (size_t)width;
	struct attention_operands o = {
		*c, draw(3 * count, 0, 1), draw(count, 0, 1),
		host_doubles(count), host_doubles((size_t)(rows * c->heads))
	};
	struct tensor out = blank(count), dqkv = blank(3 * count);
	struct tensor lse = blank_floats((size_t)(rows * c->heads));
	void *work = place_work(&(struct device_shape){
		rows, c->context, c->heads, width, 1, 0, 0 });

	rounding = 2 * TORCH_ATTENTION;
	device.table->attention(&device, &(struct op_attention){
		c->sequences, c->context, c->heads, width, o.qkv.at, out.at,
		lse.at, work });
	attention_reference(&o);
	compare("out", &out, o.out, FORWARD);
	compare("lse", &lse, o.lse, FORWARD);
	device.table->attention_backward(&device,
					 &(struct op_attention_backward){
		c->sequences, c->context, c->heads, width, o.qkv.at, out.at,
		lse.at, o.dout.at, dqkv.at, work });
	gradient("dqkv", attention_reference, &o,
		 4.0 * (double)count * c->context, &o.qkv, &dqkv);
}

static void run_case(const struct attention_case *c)
{
	char name[128];

	snprintf(name, sizeof(name), "attention: %d sequences of %d, "
		 "%d heads of %d", c->sequences, c->context, c->heads, c->size);
	test_case(name, attention_body, c);
}

void test_attention(void)
{
	static const int contexts[] = { 1, 5, 17, 65 };

	/*
	 * Heads for tensor cores: a GPU's kernels have tiles of 32, 64 and 128
	 * rows, so contexts of less, just less, just more, and several.
	 */
	static const struct attention_case tiles[] = {
		{ 2, 1, 2, 16 }, { 3, 33, 3, 16 }, { 1, 31, 2, 32 },
		{ 1, 130, 2, 32 }, { 2, 63, 1, 64 }, { 2, 128, 2, 64 },
		{ 1, MOST_CONTEXT, 1, 64 }, { 2, 65, 1, 128 },
		{ 1, 129, 1, 128 }
	};

	for (int i = 0; i < 16; i++)
		run_case(&(struct attention_case){
			i / 4 == 3 ? 1 : 3, contexts[i / 4], i & 1 ? 3 : 1,
			i & 2 ? 21 : 8 });
	for (size_t i = 0; i < sizeof(tiles) / sizeof(tiles[0]); i++)
		run_case(&tiles[i]);
}
