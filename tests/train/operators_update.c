/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of optimisers. */
#include "operators.h"

enum { STEPS = 10 };

struct optimiser_case {
	size_t count;
	double decay, scale, momentum;	/* AdamW has no momentum */
};

/* A gradient, in one element always 0. */
static void draw_gradient(const struct tensor *grad)
{
	for (size_t i = 0; i < grad->count; i++)
		grad->value[i] = i == 1 ? 0 : normal();
	store(grad);
}

static struct tensor zeros(size_t count)
{
	struct tensor tensor = blank_floats(count);

	memset(tensor.value, 0, count * sizeof(double));
	store(&tensor);
	return tensor;
}

static const struct step_state *put_state(const struct step_state *state)
{
	return put(state, sizeof(*state));
}

/* In fp32 there is none. */
static void *copy_of(const struct tensor *rounded)
{
	return rounded->type == DEVICE_FP32 ? NULL : rounded->at;
}

/* The nearest values of its type: at most half of their distance off. */
static void compare_copy(const struct tensor *rounded,
			 const struct tensor *param)
{
	if (rounded->type == DEVICE_FP32)
		return;
	fetch(rounded);
	for (size_t i = 0; i < param->count; i++) {
		double p = param->value[i], off = rounded->value[i] - p;
		int digits = rounded->type == DEVICE_BF16 ? 8 : 11;

		if (!(fabs(off) <= ldexp(0.5, ilogb(p) + 1 - digits) ||
		      fabs(off) <= 0x1p-25))
			fail("copy", "is off by", off);
	}
}

/* With an eps that shows in the result. */
static void adamw_body(const void *arguments)
{
	const struct optimiser_case *c = arguments;
	struct tensor param = draw_floats(c->count, 0, 1);
	struct tensor m = zeros(c->count), v = zeros(c->count);
	struct tensor grad = blank(c->count), rounded = blank(c->count);
	double *p = twin(&param), *wanted_m = twin(&m), *wanted_v = twin(&v);
	struct op_adamw op = {
		.count = c->count, .param = param.at, .copy = copy_of(&rounded),
		.grad_type = grad.type, .grad = grad.at, .m = m.at, .v = v.at,
		.lr = 0.1, .beta1 = 0.9, .beta2 = 0.95, .eps = 0.01,
		.decay = c->decay
	};

	for (int step = 1; step <= STEPS; step++) {
		struct step_state state = {
			.factor = c->scale,
			.correction1 = 1 - pow(op.beta1, step),
			.correction2 = 1 - pow(op.beta2, step)
		};

		draw_gradient(&grad);
		op.state = put_state(&state);
		device.table->adamw(&device, &op);
		for (size_t i = 0; i < c->count; i++) {
			double g = grad.value[i] * c->scale;
			double *mean = &wanted_m[i], *square = &wanted_v[i];

			*mean = op.beta1 * *mean + (1 - op.beta1) * g;
			*square = op.beta2 * *square + (1 - op.beta2) * g * g;
			p[i] -= op.lr * op.decay * p[i];
			p[i] -= op.lr * (*mean / state.correction1) /
				(sqrt(*square / state.correction2) + op.eps);
		}
	}
	compare("param", &param, p, FORWARD);
	compare("m", &m, wanted_m, FORWARD);
	compare("v", &v, wanted_v, FORWARD);
	compare_copy(&rounded, &param);
}

/* A tensor's values from i on */
static void *from(const struct tensor *tensor, size_t i)
{
	return value_at(tensor->type, tensor->at, i);
}

/* The same values again, from value `skip` of another tensor on. */
static struct tensor shift(const struct tensor *tensor, size_t skip)
{
	struct tensor other = tensor->type == DEVICE_FP32 ?
		blank_floats(tensor->count + skip) :
		blank(tensor->count + skip);

	copy(from(&other, skip), tensor->at,
	     tensor->count * device_type_bytes(tensor->type));
	return other;
}

static void expect_equal(const char *what, const struct tensor *had,
			 const struct tensor *other, size_t skip)
{
	size_t bytes = had->count * device_type_bytes(had->type);
	char *a = (char *)host_doubles(had->count);
	char *b = (char *)host_doubles(had->count);

	copy(a, had->at, bytes);
	copy(b, from(other, skip), bytes);
	if (memcmp(a, b, bytes) != 0)
		fail(what, "has other bits in pieces, from value", (double)skip);
}

/*
 * AdamW, and then SGD whose copy is rounded by chance: param, m, v, grad, copy;
 * tensor n from n * skip on.
 */
static void update_values(const struct tensor *of, size_t skip, size_t i,
			  size_t count, const struct step_state *state)
{
	void *param = from(&of[0], i), *copy = from(&of[4], i + 4 * skip);
	const void *grad = from(&of[3], i + 3 * skip);
	float *v = from(&of[2], i + 2 * skip);

	device.table->adamw(&device, &(struct op_adamw){
		count, param, copy, device.type, grad, from(&of[1], i + skip),
		v, 0.1, 0.9, 0.95, 0.01, 0.1, state, { 0 } });
	device.table->sgd(&device, &(struct op_sgd){
		count, param, copy, device.type, grad, v, 0.1, 0.9, 0.1,
		state, { true, 3, i } });
}

/* At once, and in pieces that begin at any value of their tensors. */
static void pieces_body(const void *arguments)
{
	size_t count = *(const size_t *)arguments, piece;
	struct tensor all[] = {
		draw_floats(count, 0, 1), draw_floats(count, 0, 1),
		draw_floats(count, 3, 0.1), draw(count, 0, 1), draw(count, 0, 1)
	}, other[5];
	const struct step_state *state = put_state(&(struct step_state){
		.factor = 0.3, .correction1 = 0.19, .correction2 = 0.0975 });

	for (size_t n = 0; n < 5; n++)
		other[n] = shift(&all[n], n);
	update_values(all, 0, 0, count, state);
	for (size_t i = 0; i < count; i += piece) {
		piece = 1 + (size_t)(uniform() * 20);
		piece = piece < count - i ? piece : count - i;
		update_values(other, 1, i, piece, state);
	}
	for (size_t n = 0; n < 5; n++)
		expect_equal("a tensor", &all[n], &other[n], n);
}

static void sgd_body(const void *arguments)
{
	const struct optimiser_case *c = arguments;
	struct tensor param = draw_floats(c->count, 0, 1);
	struct tensor v = zeros(c->count), grad = blank(c->count);
	struct tensor rounded = blank(c->count);
	double *p = twin(&param), *wanted_v = twin(&v);
	struct op_sgd op = {
		.count = c->count, .param = param.at, .copy = copy_of(&rounded),
		.grad_type = grad.type, .grad = grad.at,
		.v = c->momentum > 0 ? v.at : NULL, .lr = 0.1,
		.momentum = c->momentum, .decay = c->decay,
		.state = put_state(&(struct step_state){ .factor = c->scale })
	};

	for (int step = 1; step <= STEPS; step++) {
		draw_gradient(&grad);
		device.table->sgd(&device, &op);
		for (size_t i = 0; i < c->count; i++) {
			wanted_v[i] = c->momentum * wanted_v[i] +
				      grad.value[i] * c->scale +
				      op.decay * p[i];
			p[i] -= op.lr * wanted_v[i];
		}
	}
	compare("param", &param, p, FORWARD);
	if (c->momentum > 0)
		compare("v", &v, wanted_v, FORWARD);
	compare_copy(&rounded, &param);
}

static void test_optimisers(void)
{
	static const struct optimiser_case cases[] = {
		{ 1, 0.1, 1, 0 }, { 17, 0.1, 0.125, 0.9 }, { 1000, 0, 3, 0.9 },
		{ 1003, 0.1, 0.3, 0 }
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct optimiser_case *c = &cases[i];
		char name[128];

		snprintf(name, sizeof(name), "AdamW: %zu parameters, decay %g, "
			 "scale %g", c->count, c->decay, c->scale);
		test_case(name, adamw_body, c);
		snprintf(name, sizeof(name), "SGD: %zu parameters, decay %g, "
			 "scale %g, momentum %g", c->count, c->decay, c->scale,
			 c->momentum);
		test_case(name, sgd_body, c);
	}
}

/* The sum of one block alone, at another place: the second value of a tensor. */
static double sum_alone(const void *x, size_t count)
{
	void *there = (char *)place(count_bytes(count + 1)) + count_bytes(1);
	double *at = place(sizeof(*at)), sum;

	copy(there, x, count_bytes(count));
	device.table->sum_squares(&device, &(struct op_sum_squares){
		count, device.type, there, at });
	copy(&sum, at, sizeof(sum));
	return sum;
}

static void squares_body(const void *arguments)
{
	size_t count = *(const size_t *)arguments;
	size_t blocks = (count + DEVICE_BLOCK - 1) / DEVICE_BLOCK;
	struct tensor x = draw(count, 0, 1);
	double *had = host_doubles(blocks), *at = place(blocks * sizeof(*at));

	device.table->sum_squares(&device, &(struct op_sum_squares){
		count, device.type, x.at, at });
	read_back(had, at, blocks * sizeof(*at));
	for (size_t i = 0; i < blocks; i++) {
		size_t begin = i * DEVICE_BLOCK, end = begin + DEVICE_BLOCK;
		double wanted = 0;

		end = end < count ? end : count;
		for (size_t j = begin; j < end; j++)
			wanted += x.value[j] * x.value[j];
		if (!(fabs(had[i] - wanted) <= 1e-13 * wanted))
			fail("block", "is off by", had[i] - wanted);
		if (had[i] != sum_alone((char *)x.at + count_bytes(begin),
				       end - begin))
			fail("block", "has other bits alone, number", i);
	}
}

static void test_squares(void)
{
	static const size_t counts[] = {
		1, 15, 1000, DEVICE_BLOCK - 1, DEVICE_BLOCK, DEVICE_BLOCK + 1,
		3 * DEVICE_BLOCK + 17
	};

	for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
		char name[128];

		snprintf(name, sizeof(name), "sum of squares of %zu",
			 counts[i]);
		test_case(name, squares_body, &counts[i]);
	}
}

static void simple_body(const void *arguments)
{
	size_t count = *(const size_t *)arguments;
	struct tensor x = draw_floats(count, 0, 1), y = draw(count, 0, 1);
	struct tensor z = blank_floats(count);
	double *wanted = host_doubles(count);

	for (size_t i = 0; i < count; i++)
		wanted[i] = (float)(x.value[i] + y.value[i]);
	device.table->add(&device, x.at, device.type, y.at, count);
	compare("add", &x, wanted, 0);
	for (size_t i = 0; i < count; i++)
		wanted[i] = 0;
	device.table->zero(&device, z.at, count * sizeof(float));
	compare("zero", &z, wanted, 0);
}

void test_updates(void)
{
	static const size_t counts[] = { 1, 15, 1003 };

	test_optimisers();
	test_case("AdamW and SGD in pieces", pieces_body, &counts[2]);
	test_squares();
	for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
		char name[128];

		snprintf(name, sizeof(name), "add and zero of %zu",
			 counts[i]);
		test_case(name, simple_body, &counts[i]);
	}
}
