/* SPDX-License-Identifier: BSD-3-Clause */
/* The linear layer, with bias and GELU, and the classifier. */
#include "operators.h"

struct matmul_case {
	int rows, in, out;
	bool bias, gelu, dx, accumulate, again;
};

struct matmul_operands {
	int rows, in, out;
	bool gelu;
	struct tensor x, weight, bias, dy;	/* bias.count 0: none */
	struct tensor x_pre;			/* likewise */
	double *pre, *y;
};

/* Hendrycks and Gimpel 2016, by tanh */
static double gelu(double x)
{
	return 0.5 * x * (1 + tanh(0.7978845608028654 *
				   (x + 0.044715 * x * x * x)));
}

static double matmul_reference(const void *operands)
{
	const struct matmul_operands *o = operands;
	double loss = 0;

	for (int i = 0; i < o->rows * o->out; i++) {
		const double *x = o->x.value + i / o->out * o->in;
		const double *weight = o->weight.value + i % o->out * o->in;
		double sum = o->bias.count ? o->bias.value[i % o->out] : 0;

		for (int k = 0; k < o->in; k++)
			sum += x[k] * weight[k];
		o->pre[i] = sum;
		o->y[i] = o->gelu ? gelu(sum) : sum;
		loss += o->dy.value[i] * o->y[i];
	}
	return loss;
}

/* The same without GELU, of an x that is gelu(pre). */
static double gelu_reference(const void *operands)
{
	struct matmul_operands o = *(const struct matmul_operands *)operands;

	o.gelu = false;
	for (size_t i = 0; i < o.x.count && o.x_pre.count; i++)
		o.x.value[i] = gelu(o.x_pre.value[i]);
	return matmul_reference(&o);
}

static void matmul_backward(const struct matmul_case *c,
			    struct matmul_operands *o)
{
	size_t in = (size_t)c->in, out = (size_t)c->out;
	struct tensor dx = blank((size_t)c->rows * in);
	struct tensor dweight = c->accumulate ? draw(out * in, 0, 1) :
						blank(out * in);
	struct tensor dbias = c->accumulate ? draw(out, 0, 1) : blank(out);
	double work = (double)c->rows * c->in * c->out;

	device.table->matmul_backward(&device, &(struct op_matmul_backward){
		c->rows, c->in, c->out, o->x.at, o->weight.at,
		c->gelu ? o->x_pre.at : NULL, o->dy.at, c->dx ? dx.at : NULL,
		dweight.at, c->bias ? dbias.at : NULL, c->accumulate });
	o->gelu = false;
	gradient("dweight", matmul_reference, o, work, &o->weight, &dweight);
	if (c->bias)
		gradient("dbias", matmul_reference, o, work, &o->bias, &dbias);
	if (c->dx)
		gradient("dx", gelu_reference, o, work,
			 c->gelu ? &o->x_pre : &o->x, &dx);
}

/* x becomes gelu(x_pre), by the device. */
static void activate(struct matmul_operands *o)
{
	o->x_pre = draw(o->x.count, 0, 1);
	device.table->gelu(&device, o->x_pre.at, o->x.at, o->x.count);
	fetch(&o->x);
}

/* gelu gives the bits of a matmul that was told so. */
static void compare_gelu(const struct tensor *pre, const struct tensor *y)
{
	struct tensor again = blank(pre->count);
	size_t bytes = pre->count * device_type_bytes(pre->type);
	void *wanted = host_doubles(pre->count);
	void *had = host_doubles(pre->count);

	device.table->gelu(&device, pre->at, again.at, pre->count);
	device_fetch(&device, wanted, y->at, bytes);
	device_fetch(&device, had, again.at, bytes);
	if (memcmp(wanted, had, bytes) != 0)
		fail("gelu", "has other bits than matmul", 0);
}

static void matmul_body(const void *arguments)
{
	const struct matmul_case *c = arguments;
	size_t in = (size_t)c->in, out = (size_t)c->out;
	size_t rows = (size_t)c->rows;
	struct matmul_operands o = {
		c->rows, c->in, c->out, c->gelu, draw(rows * in, 0, 1),
		draw(out * in, 0, 1 / sqrt(c->in)),
		.dy = draw(rows * out, 0, 1),
		.pre = host_doubles(rows * out), .y = host_doubles(rows * out)
	};
	struct tensor bias = draw(out, 0, 1);
	struct tensor pre = blank(rows * out), y = blank(rows * out);

	rounding = 2 * (c->gelu ? TORCH_GELU : TORCH_LINEAR);
	if (c->bias)
		o.bias = bias;
	device.table->matmul(&device, &(struct op_matmul){
		c->rows, c->in, c->out, o.x.at, o.weight.at,
		c->bias ? bias.at : NULL, c->gelu ? pre.at : NULL, y.at,
		c->again });
	matmul_reference(&o);
	compare("y", &y, o.y, FORWARD);
	if (c->gelu) {
		compare("pre", &pre, o.pre, FORWARD);
		if (c->again)
			compare_gelu(&pre, &y);
		activate(&o);
	}
	matmul_backward(c, &o);
}

void test_matmul(void)
{
	static const int shapes[][3] = {
		{ 1, 8, 21 }, { 5, 21, 7 }, { 17, 63, 300 }, { 65, 8, 3 },
		{ 300, 21, 8 }, { 33, 24, 136 }
	};

	for (size_t i = 0; i < 32 * sizeof(shapes) / sizeof(*shapes); i++) {
		const int *shape = shapes[i / 32];
		struct matmul_case c = { shape[0], shape[1], shape[2], i & 1,
					 i & 2, i & 4, i & 8, i & 16 };
		char name[128];

		if ((c.accumulate && device.type != DEVICE_FP32) ||
		    (c.again && !c.gelu))
			continue;
		snprintf(name, sizeof(name), "matmul: %d rows, %d to %d%s%s%s"
			 "%s%s", c.rows, c.in, c.out, c.bias ? ", bias" : "",
			 c.gelu ? ", GELU" : "", c.again ? " again" : "",
			 c.dx ? ", dx" : "",
			 c.accumulate ? ", accumulate" : "");
		test_case(name, matmul_body, &c);
	}
}

struct classifier_case {
	int rows, width, vocab;
	double scale;
	bool gradients, accumulate;
};

struct classifier_operands {
	int rows, width, vocab;
	double scale;
	struct tensor x, weight;
	const int32_t *targets;
};

static double classifier_reference(const void *operands)
{
	const struct classifier_operands *o = operands;
	double loss = 0;

	for (int row = 0; row < o->rows; row++) {
		double sum = 0, wanted = 0;

		for (int v = 0; v < o->vocab; v++) {
			double logit = 0;

			for (int i = 0; i < o->width; i++)
				logit += o->x.value[row * o->width + i] *
					 o->weight.value[v * o->width + i];
			sum += exp(logit);
			if (v == o->targets[row])
				wanted = logit;
		}
		loss += log(sum) - wanted;
	}
	return o->scale * loss;
}

static void classifier_body(const void *arguments)
{
	const struct classifier_case *c = arguments;
	size_t rows = (size_t)c->rows, width = (size_t)c->width;
	double work = (double)c->rows * c->width * c->vocab, loss, wanted;
	struct classifier_operands o = {
		c->rows, c->width, c->vocab, c->scale, draw(rows * width, 0, 1),
		draw_table(c->vocab, c->width, 0, 0.3), NULL
	};
	struct tensor dx = blank(rows * width);
	struct tensor dweight = c->accumulate ?
		draw_table(c->vocab, c->width, 0, c->scale) :
		blank_table(c->vocab, c->width);
	struct op_classifier op = {
		c->rows, c->width, c->vocab, o.x.at, o.weight.at, NULL,
		(float)c->scale, NULL, place(sizeof(loss)),
		c->gradients ? dx.at : NULL, c->gradients ? dweight.at : NULL,
		c->accumulate, place_work(&(struct device_shape){
			c->rows, 1, 1, c->width, c->vocab, 0, 0 })
	};

	rounding = 2 * TORCH_CLASSIFIER;
	o.scale = op.scale;
	o.targets = draw_tokens(c->rows, c->vocab, &op.targets);
	device.table->classifier(&device, &op);
	read_back(&loss, op.loss, sizeof(loss));
	wanted = classifier_reference(&o);
	judge("loss", pow(loss - wanted, 2), wanted * wanted, FORWARD,
	      &worst[0]);
	if (!c->gradients)
		return;
	gradient("dx", classifier_reference, &o, work, &o.x, &dx);
	gradient("dweight", classifier_reference, &o, work, &o.weight,
		 &dweight);
}

void test_classifier(void)
{
	static const struct classifier_case cases[] = {
		{ 1, 8, 7, 1, true, false }, { 1, 8, 7, 0.37, true, true },
		{ 5, 21, 300, 0.2, true, false },
		{ 5, 21, 300, 1, false, false },
		{ 17, 63, 300, 1.0 / 17, true, true },
		{ 65, 24, 7, 3, true, false }, { 65, 24, 7, 3, false, false },
		{ 300, 8, 300, 1.0 / 300, true, false },
		{ 130, 21, 1031, 1.0 / 130, true, false },
		{ 33, 16, 64, 1.0 / 33, true, false }
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct classifier_case *c = &cases[i];
		char name[128];

		if (c->accumulate && device.type != DEVICE_FP32)
			continue;
		snprintf(name, sizeof(name), "classifier: %d rows of %d, vocab "
			 "%d, scale %.3g%s%s", c->rows, c->width, c->vocab,
			 c->scale, c->gradients ? "" : ", only the loss",
			 c->accumulate ? ", accumulate" : "");
		test_case(name, classifier_body, c);
	}
}
