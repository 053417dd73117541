/* SPDX-License-Identifier: BSD-3-Clause */
/* Stochastic rounding of parameters to bf16. */
#include "operators.h"

enum { MANY = 40000, BY_CHANCE = true };

static const struct step_state *put_updates(uint64_t updates)
{
	return put(&(struct step_state){ .updates = updates },
		   sizeof(struct step_state));
}

/* The copies of these floats, in bits; value 0 has this number in the model. */
static void round_bits(const uint32_t *from, uint16_t *to, size_t count,
		       uint64_t seed, uint64_t updates, uint64_t first)
{
	uint16_t *at = place(count * sizeof(*to));

	device.table->round(&device, &(struct op_round){
		count, put(from, count * sizeof(*from)), at,
		put_updates(updates), { BY_CHANCE, seed, first } });
	read_back(to, at, count * sizeof(*to));
}

struct bits_case {
	uint64_t seed, updates, value;
	uint32_t part;
};

/*
 * What is added to the lower 16 bits: as much as is missing to the upper
 * neighbour reaches it, and one less does not.
 */
static void bits_body(const void *arguments)
{
	const struct bits_case *c = arguments;
	uint32_t up = 0x3f800000 | (0x10000 - c->part), down = up - 1;
	uint16_t had[2];

	round_bits(&up, &had[0], 1, c->seed, c->updates, c->value);
	round_bits(&down, &had[1], 1, c->seed, c->updates, c->value);
	if (had[0] != 0x3f81 || had[1] != 0x3f80)
		fail("bits", "are others", had[0] + had[1] * 0x1p-16);
}

struct mean_case {
	uint32_t bits;			/* of a float that is rounded often */
	double up;			/* how often up in size, by hand */
};

/*
 * Of n roundings n p go up, but for sqrt(n p (1 - p)); six times that is one
 * run in 10^9. None goes beyond the two neighbours.
 */
static void mean_body(const void *arguments)
{
	const struct mean_case *c = arguments;
	double most = 6 * sqrt(MANY * c->up * (1 - c->up));
	uint32_t *from = malloc(MANY * sizeof(*from));
	uint16_t *had = malloc(MANY * sizeof(*had));
	uint16_t below = (uint16_t)(c->bits >> 16);
	int up = 0, wrong = 0;

	for (int i = 0; i < MANY; i++)
		from[i] = c->bits;
	round_bits(from, had, MANY, 3, 11, 1000);
	for (int i = 0; i < MANY; i++) {
		up += had[i] == below + 1;
		wrong += had[i] != below && had[i] != below + 1;
	}
	if (wrong)
		fail("values", "are no neighbours, of them", wrong);
	if (!(fabs(up - MANY * c->up) <= most))
		fail("mean", "is another, ups:", up);
	free(from);
	free(had);
}

/* Rounded as to nearest, whatever the bits of chance are. */
static void special_body(const void *arguments)
{
	static const struct {
		uint32_t from;
		uint16_t to;
	} rows[] = {
		{ 0x00000000, 0x0000 }, { 0x80000000, 0x8000 },
		{ 0x3f800000, 0x3f80 }, { 0xbfc00000, 0xbfc0 },
		{ 0x00010000, 0x0001 }, { 0x807f0000, 0x807f },
		{ 0x7f7f0000, 0x7f7f }, { 0xff7f0000, 0xff7f },
		{ 0x7f7f7fff, 0x7f7f }, { 0xff7f7fff, 0xff7f },
		{ 0x7f7f8000, 0x7f80 }, { 0xff7fffff, 0xff80 },
		{ 0x7f800000, 0x7f80 }, { 0xff800000, 0xff80 }
	};
	enum { ROWS = sizeof(rows) / sizeof(*rows), NANS = 5, EACH = 200,
	       ALL = (ROWS + NANS) * EACH };
	static const uint32_t nans[NANS] = {
		0x7fc00000, 0x7f800001, 0xff800001, 0x7fffffff, 0xffffffff
	};
	uint32_t from[ALL];
	uint16_t had[ALL];

	(void)arguments;
	for (int i = 0; i < ALL; i++)
		from[i] = i / EACH < ROWS ? rows[i / EACH].from :
			  nans[i / EACH - ROWS];
	round_bits(from, had, ALL, 1, 1, 0);
	for (int i = 0; i < ALL; i++) {
		int row = i / EACH;

		if (row < ROWS ? had[i] != rows[row].to :
		    (had[i] & 0x7fff) <= 0x7f80)
			fail("special value", "is another in row", row);
	}
}

/*
 * Two roundings of MANY halves, of which these differ, are equal for half of
 * them, but for 6 sqrt(MANY) / 2.
 */
static void chance_body(const void *arguments)
{
	static const uint64_t others[][3] = {
		{ 4, 11, 0 }, { 3, 12, 0 }, { 3, 11, 1 }, { 3, 11, 2 },
		{ 3, 11, 64 }, { 3, 11, 4096 }, { 3, 11, UINT64_C(1) << 32 }
	};
	uint32_t *from = malloc(MANY * sizeof(*from));
	uint16_t *had = malloc(2 * MANY * sizeof(*had));

	(void)arguments;
	for (int i = 0; i < MANY; i++)
		from[i] = 0x3f808000;
	round_bits(from, had, MANY, 3, 11, 0);
	for (size_t n = 0; n < sizeof(others) / sizeof(*others); n++) {
		const uint64_t *other = others[n];
		int same = 0;

		round_bits(from, had + MANY, MANY, other[0], other[1],
			   other[2]);
		for (int i = 0; i < MANY; i++)
			same += had[i] == had[MANY + i];
		if (!(fabs(same - MANY / 2.) <= 3 * sqrt(MANY)))
			fail("roundings", "are alike, in row", (double)n);
	}
	free(from);
	free(had);
}

enum { COUNT = 1003 };

/* In 16 bits, the copy of AdamW or SGD by chance, and the parameters. */
static struct tensor update(bool sgd, const struct step_state *state,
			    struct rounding by_chance, void *copy)
{
	struct tensor param = draw_floats(COUNT, 0, 1);
	struct tensor m = draw_floats(COUNT, 0, 1), grad = draw(COUNT, 0, 1);
	struct tensor v = draw_floats(COUNT, 3, 0.1);

	if (sgd)
		device.table->sgd(&device, &(struct op_sgd){
			COUNT, param.at, copy, device.type, grad.at, v.at, 0.1,
			0.9, 0.1, state, by_chance });
	else
		device.table->adamw(&device, &(struct op_adamw){
			COUNT, param.at, copy, device.type, grad.at, m.at, v.at,
			0.1, 0.9, 0.95, 0.01, 0.1, state, by_chance });
	return param;
}

/*
 * A run that goes on rounds parameters as the last update did. In fp16 it is to
 * nearest in any case.
 */
static void update_body(const void *arguments)
{
	const struct rounding by_chance = { BY_CHANCE, 3, 77 };
	const struct step_state *state = put(&(struct step_state){
		.factor = 0.3, .correction1 = 0.19, .correction2 = 0.0975,
		.updates = 5 }, sizeof(*state));
	struct tensor copies[3] = { blank(COUNT), blank(COUNT), blank(COUNT) };
	struct tensor param = update(*(const bool *)arguments, state,
				     by_chance, copies[0].at);
	int others = 0, off = 0;

	device.table->round(&device, &(struct op_round){
		COUNT, param.at, copies[1].at, state, by_chance });
	device.table->round(&device, &(struct op_round){
		COUNT, param.at, copies[2].at, state, { .first = 77 } });
	for (int i = 0; i < 3; i++)
		fetch(&copies[i]);
	for (int i = 0; i < COUNT; i++) {
		others += copies[0].value[i] != copies[1].value[i];
		off += copies[0].value[i] != copies[2].value[i];
	}
	if (others)
		fail("round", "differs from the update, of values", others);
	if ((off > COUNT / 10) != (device.type == DEVICE_BF16))
		fail("by chance", "and to nearest, differ:", off);
}

/* By another implementation of the formula in rounding.h, in Python. */
static void test_bits(void)
{
	static const struct bits_case cases[] = {
		{ 1, 0, 0, 0x4e93 }, { 1, 1, 0, 0xadb6 }, { 1, 1, 1, 0x40a9 },
		{ 1, 2, 7, 0x69c5 }, { 0, 3, UINT64_C(1) << 32, 0x8a87 },
		{ UINT64_MAX, 1000000000, 3000000000, 0xbaf4 },
		{ 42, 17, UINT64_C(1) << 40, 0xf38f },
		{ 7, 5, 123456789, 0xb503 }
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char name[128];

		snprintf(name, sizeof(name), "rounding by chance: the bits of "
			 "value %llu after %llu updates",
			 (unsigned long long)cases[i].value,
			 (unsigned long long)cases[i].updates);
		test_case(name, bits_body, &cases[i]);
	}
}

static void test_means(void)
{
	static const struct mean_case cases[] = {
		{ 0x3f800001, 0x1p-16 }, { 0x3f804000, 0.25 },
		{ 0xbf808000, 0.5 }, { 0x3fffc000, 0.75 },
		{ 0xc228ffff, 1 - 0x1p-16 }, { 0x00006000, 0.375 },
		{ 0x807fa000, 0.625 }, { 0x7f7e8000, 0.5 }
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char name[128];

		snprintf(name, sizeof(name), "rounding by chance: %08x goes "
			 "up with %.3g", (unsigned)cases[i].bits, cases[i].up);
		test_case(name, mean_body, &cases[i]);
	}
}

void test_rounding(void)
{
	if (device.type == DEVICE_FP32)
		return;
	test_case("rounding by chance: AdamW", update_body, &(bool){ false });
	test_case("rounding by chance: SGD", update_body, &(bool){ true });
	if (device.type != DEVICE_BF16)
		return;
	test_bits();
	test_case("rounding by chance: what stays, and NaN", special_body,
		  NULL);
	test_case("rounding by chance: seeds, updates and values differ",
		  chance_body, NULL);
	test_means();
}
