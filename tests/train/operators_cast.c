/* SPDX-License-Identifier: BSD-3-Clause */
/* Casts between fp32 and 16 bits. */
#include "operators.h"

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

/* Spaced by 2^-10 from 1 to 2, by 2^-24 below 2^-14; 65504 is the largest. */
static const struct cast_row half_table[] = {
	{ 0x00000000, 0x0000 }, { 0x80000000, 0x8000 },	/* zeros */
	{ 0x3f800000, 0x3c00 }, { 0xbfc00000, 0xbe00 },	/* 1, -1.5 */
	{ 0x3f800fff, 0x3c00 }, { 0x3f801001, 0x3c01 },	/* below, above half */
	{ 0x3f801000, 0x3c00 }, { 0x3f803000, 0x3c02 },	/* ties to even */
	{ 0x3fffffff, 0x4000 },				/* carries to 2 */
	{ 0x477fe000, 0x7bff }, { 0x477fefff, 0x7bff },	/* 65504, 65519.99 */
	{ 0x477ff000, 0x7c00 }, { 0xc77ff000, 0xfc00 },	/* 65520 */
	{ 0x7f7fffff, 0x7c00 },
	{ 0x7f800000, 0x7c00 }, { 0xff800000, 0xfc00 },	/* infinities */
	{ 0x38800000, 0x0400 }, { 0x387fc000, 0x03ff },	/* 2^-14, below it */
	{ 0x387fe000, 0x0400 },				/* 1023.5 * 2^-24 */
	{ 0x33800000, 0x0001 }, { 0xb3c00000, 0x8002 },	/* 1, -1.5 * 2^-24 */
	{ 0x33000000, 0x0000 }, { 0x33000001, 0x0001 },	/* 2^-25, and above */
	{ 0x00000001, 0x0000 }, { 0x007fffff, 0x0000 },
	{ 0x42280000, 0x5140 }				/* 42 */
};

static const struct cast_case {
	enum device_type type;
	const struct cast_row *rows;
	int count;
	uint16_t infinity;
} casts[] = {
	{ DEVICE_BF16, cast_table, sizeof(cast_table) / sizeof(*cast_table),
	  0x7f80 },
	{ DEVICE_FP16, half_table, sizeof(half_table) / sizeof(*half_table),
	  0x7c00 }
};

enum { NANS = 5, MOST_CASTS = 64, ALL = 65536 };

static const uint32_t nans[NANS] = { 0x7fc00000, 0x7f800001, 0xff800001,
				     0x7fffffff, 0xffffffff };

static bool is_nan(const struct cast_case *c, uint16_t value)
{
	return (value & 0x7fff) > c->infinity;
}

static void cast_body(const void *arguments)
{
	const struct cast_case *c = arguments;
	uint32_t from[MOST_CASTS];
	uint16_t had[MOST_CASTS], *to = place(sizeof(had));

	for (int i = 0; i < c->count + NANS; i++)
		from[i] = i < c->count ? c->rows[i].from : nans[i - c->count];
	device.table->cast(&device, c->type, to, DEVICE_FP32,
			   put(from, sizeof(from)), c->count + NANS);
	copy(had, to, sizeof(had));
	for (int i = 0; i < c->count; i++)
		if (had[i] != c->rows[i].to)
			fail("cast", "wrong is row", i);
	for (int i = 0; i < NANS; i++)
		if (!is_nan(c, had[c->count + i]))
			fail("cast", "no NaN any more is NaN", i);
}

/* By the definition: sign, exponent, fraction. */
static double find_value(const struct cast_case *c, uint16_t bits)
{
	int digits = c->type == DEVICE_BF16 ? 7 : 10;
	int bias = c->type == DEVICE_BF16 ? 127 : 15;
	int exponent = (bits & 0x7fff) >> digits;
	int fraction = bits & ((1 << digits) - 1);
	double size = exponent == 0 ? ldexp(fraction, 1 - bias - digits) :
		      ldexp(fraction + (1 << digits), exponent - bias - digits);

	if ((bits & 0x7fff) == c->infinity)
		size = INFINITY;
	return bits & 0x8000 ? -size : size;
}

/* Each 16-bit value is that float, and comes back the same. */
static void widen_body(const void *arguments)
{
	const struct cast_case *c = arguments;
	uint16_t *all = malloc(ALL * sizeof(*all)), *back;
	float *had = malloc(ALL * sizeof(*had)), *wide;
	int wrong = 0;

	for (int i = 0; i < ALL; i++)
		all[i] = (uint16_t)i;
	wide = place(ALL * sizeof(*wide));
	back = place(ALL * sizeof(*back));
	device.table->cast(&device, DEVICE_FP32, wide, c->type,
			   put(all, ALL * sizeof(*all)), ALL);
	device.table->cast(&device, c->type, back, DEVICE_FP32, wide, ALL);
	read_back(had, wide, ALL * sizeof(*had));
	read_back(all, back, ALL * sizeof(*all));
	for (int i = 0; i < ALL; i++) {
		if (is_nan(c, (uint16_t)i))
			wrong += !isnan(had[i]) || !is_nan(c, all[i]);
		else
			wrong += (double)had[i] !=
				 find_value(c, (uint16_t)i) || all[i] != i;
	}
	if (wrong)
		fail("widening", "wrong values:", wrong);
	free(all);
	free(had);
}

/* The value above a finite one of the same sign, also where that is infinite. */
static double find_next(const struct cast_case *c, uint16_t bits)
{
	double value = find_value(c, bits);
	uint16_t below = (uint16_t)(bits - 1);

	if ((bits & 0x7fff) + 1 < c->infinity)
		return find_value(c, (uint16_t)(bits + 1));
	return value + (value - find_value(c, below));
}

/*
 * Between each two neighbours: the middle goes to the even one, and the floats
 * beside it to the nearer one. So does then all that lies between.
 */
static void ties_body(const void *arguments)
{
	const struct cast_case *c = arguments;
	float *from = malloc(3 * ALL * sizeof(*from));
	uint16_t *had = malloc(3 * ALL * sizeof(*had)), *to;
	int wrong = 0;

	for (int i = 0; i < ALL; i++) {
		double value = find_value(c, (uint16_t)i);
		float middle = isfinite(value) ? (float)((value + find_next(
			c, (uint16_t)i)) / 2) : (float)value;

		from[3 * i] = nextafterf(middle, (float)value);
		from[3 * i + 1] = middle;
		from[3 * i + 2] = nextafterf(middle, i & 0x8000 ? -INFINITY :
					     INFINITY);
	}
	to = place(3 * ALL * sizeof(*to));
	device.table->cast(&device, c->type, to, DEVICE_FP32,
			   put(from, 3 * ALL * sizeof(*from)), 3 * ALL);
	read_back(had, to, 3 * ALL * sizeof(*had));
	for (int i = 0; i < ALL; i++)
		if ((i & 0x7fff) < c->infinity)
			wrong += had[3 * i] != i ||
				 had[3 * i + 1] != i + (i & 1) ||
				 had[3 * i + 2] != i + 1;
	if (wrong)
		fail("rounding", "wrong values:", wrong);
	free(from);
	free(had);
}

/* Each NaN of fp32 whose fraction has one bit, or all below one. */
static void nan_body(const void *arguments)
{
	enum { FRACTION = 23, NANS_HERE = 4 * FRACTION };
	const struct cast_case *c = arguments;
	uint32_t from[NANS_HERE];
	uint16_t had[NANS_HERE], *to = place(sizeof(had));

	for (int i = 0; i < NANS_HERE; i++) {
		uint32_t bit = UINT32_C(1) << i % FRACTION;
		uint32_t sign = i / FRACTION % 2 ? 0x80000000 : 0;

		from[i] = sign | 0x7f800000 |
			  (i / FRACTION < 2 ? bit : 2 * bit - 1);
	}
	device.table->cast(&device, c->type, to, DEVICE_FP32,
			   put(from, sizeof(from)), NANS_HERE);
	read_back(had, to, sizeof(had));
	for (int i = 0; i < NANS_HERE; i++)
		if (!is_nan(c, had[i]))
			fail("NaN", "is none any more, number", i);
}

void test_casts(void)
{
	for (size_t i = 0; i < sizeof(casts) / sizeof(*casts); i++) {
		const char *type = i == 0 ? "bf16" : "fp16";
		char name[128];

		snprintf(name, sizeof(name), "cast to %s: ties, NaN, overflow, "
			 "subnormals", type);
		test_case(name, cast_body, &casts[i]);
		snprintf(name, sizeof(name), "cast of all %s there and back",
			 type);
		test_case(name, widen_body, &casts[i]);
		snprintf(name, sizeof(name), "cast to %s: beside the middle "
			 "of each two neighbours", type);
		test_case(name, ties_body, &casts[i]);
		snprintf(name, sizeof(name), "cast to %s: NaN of any payload",
			 type);
		test_case(name, nan_body, &casts[i]);
	}
}
