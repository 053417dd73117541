/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of optimisers, and casts. */
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
	struct tensor tensor = blank(count);

	memset(tensor.value, 0, count * sizeof(double));
	store(&tensor);
	return tensor;
}

/* With an eps that shows in the result. */
static void adamw_body(const void *arguments)
{
	const struct optimiser_case *c = arguments;
	struct tensor param = draw(c->count, 0, 1), m = zeros(c->count);
	struct tensor v = zeros(c->count), grad = blank(c->count);
	double *p = twin(&param), *wanted_m = twin(&m), *wanted_v = twin(&v);
	struct op_adamw op = {
		c->count, param.at, grad.at, m.at, v.at, .lr = 0.1,
		.beta1 = 0.9, .beta2 = 0.95, .eps = 0.01, .decay = c->decay,
		.scale = c->scale
	};

	for (int step = 1; step <= STEPS; step++) {
		draw_gradient(&grad);
		op.correction1 = 1 - pow(op.beta1, step);
		op.correction2 = 1 - pow(op.beta2, step);
		device.table->adamw(&device, &op);
		for (size_t i = 0; i < c->count; i++) {
			double g = grad.value[i] * op.scale;
			double *mean = &wanted_m[i], *square = &wanted_v[i];

			*mean = op.beta1 * *mean + (1 - op.beta1) * g;
			*square = op.beta2 * *square + (1 - op.beta2) * g * g;
			p[i] -= op.lr * op.decay * p[i];
			p[i] -= op.lr * (*mean / op.correction1) /
				(sqrt(*square / op.correction2) + op.eps);
		}
	}
	compare("param", &param, p, FORWARD);
	compare("m", &m, wanted_m, FORWARD);
	compare("v", &v, wanted_v, FORWARD);
}

static void sgd_body(const void *arguments)
{
	const struct optimiser_case *c = arguments;
	struct tensor param = draw(c->count, 0, 1), v = zeros(c->count);
	struct tensor grad = blank(c->count);
	double *p = twin(&param), *wanted_v = twin(&v);
	struct op_sgd op = {
		c->count, param.at, grad.at, c->momentum > 0 ? v.at : NULL,
		0.1, c->momentum, c->decay, c->scale
	};

	for (int step = 1; step <= STEPS; step++) {
		draw_gradient(&grad);
		device.table->sgd(&device, &op);
		for (size_t i = 0; i < c->count; i++) {
			wanted_v[i] = c->momentum * wanted_v[i] +
				      grad.value[i] * op.scale +
				      op.decay * p[i];
			p[i] -= op.lr * wanted_v[i];
		}
	}
	compare("param", &param, p, FORWARD);
	if (c->momentum > 0)
		compare("v", &v, wanted_v, FORWARD);
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

/* The sum of one block alone, at another place. */
static double sum_alone(const float *x, size_t count)
{
	float *there = place(count * sizeof(*there));
	double *at = place(sizeof(*at)), sum;

	copy(there, x, count * sizeof(*there));
	device.table->sum_squares(&device, &(struct op_sum_squares){
		count, there, at });
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
		count, x.at, at });
	read_back(had, at, blocks * sizeof(*at));
	for (size_t i = 0; i < blocks; i++) {
		size_t begin = i * DEVICE_BLOCK, end = begin + DEVICE_BLOCK;
		double wanted = 0;

		end = end < count ? end : count;
		for (size_t j = begin; j < end; j++)
			wanted += x.value[j] * x.value[j];
		if (!(fabs(had[i] - wanted) <= 1e-13 * wanted))
			fail("block", "is off by", had[i] - wanted);
		if (had[i] != sum_alone(x.at + begin, end - begin))
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
	struct tensor x = draw(count, 0, 1), y = draw(count, 0, 1);
	struct tensor z = blank(count);
	double *wanted = host_doubles(count);

	for (size_t i = 0; i < count; i++)
		wanted[i] = (float)(x.value[i] * 0.75);
	device.table->scale(&device, x.at, 0.75, count);
	compare("scale", &x, wanted, 0);
	for (size_t i = 0; i < count; i++)
		wanted[i] = (float)(x.value[i] + y.value[i]);
	device.table->add(&device, x.at, y.at, count);
	compare("add", &x, wanted, 0);
	for (size_t i = 0; i < count; i++)
		wanted[i] = -1.5;
	device.table->fill(&device, z.at, -1.5f, count);
	compare("fill", &z, wanted, 0);
}

struct cast_row {
	uint32_t from;
	uint16_t to;
};

/* The upper half is kept, and one more if the lower is above 0x8000, or is
 * 0x8000 and the upper is odd; with that it overflows to infinity by itself. */
static const struct cast_row cast_table[] = {
	{ 0x00000000, 0x0000 }, { 0x80000000, 0x8000 },	/* zeros */
	{ 0x3f800000, 0x3f80 }, { 0xbfc00000, 0xbfc0 },	/* 1, -1.5 */
	{ 0x3f807fff, 0x3f80 }, { 0x3f808001, 0x3f81 },	/* below, above half */
	{ 0x3f808000, 0x3f80 }, { 0x3f818000, 0x3f82 },	/* ties to even */
	{ 0xbf808000, 0xbf80 }, { 0xbf818000, 0xbf82 },
	{ 0x3fffffff, 0x4000 },				/* carries to 2 */
	{ 0x7f7f7fff, 0x7f7f }, { 0x7f7f8000, 0x7f80 },	/* the largest */
	{ 0x7f7fffff, 0x7f80 }, { 0xff7fffff, 0xff80 },	/* overflow */
	{ 0x7f800000, 0x7f80 }, { 0xff800000, 0xff80 },	/* infinities */
	{ 0x00000001, 0x0000 }, { 0x00008000, 0x0000 },	/* subnormals */
	{ 0x00008001, 0x0001 }, { 0x00018000, 0x0002 },
	{ 0x80008001, 0x8001 }, { 0x007fffff, 0x0080 },
	{ 0x42280000, 0x4228 }				/* 42 */
};

enum { CASTS = sizeof(cast_table) / sizeof(*cast_table), NANS = 5 };

static const uint32_t nans[NANS] = { 0x7fc00000, 0x7f800001, 0xff800001,
				     0x7fffffff, 0xffffffff };

static bool is_nan(uint16_t bfloat)
{
	return (bfloat & 0x7fff) > 0x7f80;
}

static void cast_body(const void *arguments)
{
	uint32_t from[CASTS + NANS];
	uint16_t had[CASTS + NANS], *to = place(sizeof(had));

	(void)arguments;
	for (int i = 0; i < CASTS + NANS; i++)
		from[i] = i < CASTS ? cast_table[i].from : nans[i - CASTS];
	device.table->cast(&device, FLOAT_TO_BFLOAT, to,
			   put(from, sizeof(from)), CASTS + NANS);
	read_back(had, to, sizeof(had));
	for (int i = 0; i < CASTS; i++)
		if (had[i] != cast_table[i].to)
			fail("cast", "wrong is row", i);
	for (int i = 0; i < NANS; i++)
		if (!is_nan(had[CASTS + i]))
			fail("cast", "no NaN any more is NaN", i);
}

/* Each bfloat16 is the float of that upper half, and comes back the same. */
static void widen_body(const void *arguments)
{
	enum { ALL = 65536 };
	uint16_t *all = malloc(ALL * sizeof(*all)), *back;
	uint32_t *had = malloc(ALL * sizeof(*had)), *wide;
	int wrong = 0;

	(void)arguments;
	for (int i = 0; i < ALL; i++)
		all[i] = (uint16_t)i;
	wide = place(ALL * sizeof(*wide));
	back = place(ALL * sizeof(*back));
	device.table->cast(&device, BFLOAT_TO_FLOAT, wide,
			   put(all, ALL * sizeof(*all)), ALL);
	device.table->cast(&device, FLOAT_TO_BFLOAT, back, wide, ALL);
	read_back(had, wide, ALL * sizeof(*had));
	read_back(all, back, ALL * sizeof(*all));
	for (int i = 0; i < ALL; i++) {
		wrong += had[i] != (uint32_t)i << 16;
		wrong += is_nan((uint16_t)i) ? !is_nan(all[i]) : all[i] != i;
	}
	if (wrong)
		fail("bfloat16", "wrong values:", wrong);
	free(all);
	free(had);
}

void test_updates(void)
{
	static const size_t counts[] = { 1, 15, 1003 };

	test_optimisers();
	test_squares();
	for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
		char name[128];

		snprintf(name, sizeof(name), "scale, add and fill of %zu",
			 counts[i]);
		test_case(name, simple_body, &counts[i]);
	}
	test_case("cast to bfloat16: ties, NaN, overflow, subnormals",
		  cast_body, NULL);
	test_case("cast of all bfloat16 there and back", widen_body, NULL);
}
