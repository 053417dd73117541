/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums in the order of sum_tree.h, to the bit. */
#include "operators.h"
#include "step/sum_tree.h"

enum { FOLD_MOST = 300, FOLD_COUNT = 3001 };

static float fold_source[FOLD_MOST][FOLD_COUNT];

/* Of such different size that each order of adding gives other bits. */
static void draw_sources(void)
{
	restart_random();
	for (int i = 0; i < FOLD_MOST; i++)
		for (int j = 0; j < FOLD_COUNT; j++)
			fold_source[i][j] = (float)ldexp(normal(),
							 (int)(uniform() * 20));
}

/* The definition in sum_tree.h, step by step */
static float fold_defined(int n, int column)
{
	float value[FOLD_MOST];

	for (int i = 0; i < n; i++)
		value[i] = fold_source[i][column];
	while (n > 1) {
		int half = 1;

		while (2 * half < n)
			half *= 2;
		for (int i = 0; i < n - half; i++)
			value[i] = value[i] + value[i + half];
		n = half;
	}
	return value[0];
}

/* How many floats differ from the definition. */
static int fold_wrong(const float *out, int n, int count)
{
	int wrong = 0;

	for (int j = 0; j < count; j++) {
		float wanted = fold_defined(n, j);

		wrong += memcmp(&out[j], &wanted, sizeof(wanted)) != 0;
	}
	return wrong;
}

static void test_fold_tree(int n)
{
	static const int counts[] = { 1, 15, 1023, 1024, 1025, FOLD_COUNT };
	static float out[FOLD_COUNT + 1], kept[FOLD_COUNT];
	const void *sources[FOLD_MOST];
	int wrong = 0;

	for (int i = 0; i < n; i++)
		sources[i] = fold_source[i];
	for (int i = 0; i < 6; i++) {
		out[counts[i]] = 42;
		fold_tree(DEVICE_FP32, sources, n, out, (size_t)counts[i]);
		wrong += fold_wrong(out, n, counts[i]) +
			 (out[counts[i]] != 42);
	}
	result(wrong == 0, "fold_tree of %d", n);
	wrong = 0;
	for (int i = 0; i < n; i += n > 16 ? 37 : 1) {
		memcpy(kept, fold_source[i], sizeof(kept));
		fold_tree(DEVICE_FP32, sources, n, fold_source[i], FOLD_COUNT);
		memcpy(out, fold_source[i], sizeof(kept));
		memcpy(fold_source[i], kept, sizeof(kept));
		wrong += fold_wrong(out, n, FOLD_COUNT);
	}
	result(wrong == 0, "fold_tree of %d into each source", n);
}

static void test_fold_doubles(int n)
{
	double value[FOLD_MOST], wanted[FOLD_MOST], had;
	int m = n;

	for (int i = 0; i < n; i++)
		value[i] = wanted[i] = fold_source[i][0] * (1 + 1e-9 * i);
	while (m > 1) {
		int half = 1;

		while (2 * half < m)
			half *= 2;
		for (int i = 0; i < m - half; i++)
			wanted[i] += wanted[i + half];
		m = half;
	}
	had = fold_doubles(value, n);
	result(had == wanted[0], "fold_doubles of %d", n);
}

/* The definition for small n, written out. */
static void test_fold_written_out(void)
{
	float a = 1, b = 0x1p24f, c = -0x1p24f, d = 3, e = 0x1p26f, out;
	const void *sources[] = { &a, &b, &c, &d, &e };
	double doubles[] = { 1, 0x1p53, -0x1p53 };

	fold_tree(DEVICE_FP32, sources, 3, &out, 1);
	result(out == (a + c) + b && out != (a + b) + c,
	       "fold_tree of 3: the first takes in the third, then the second");
	fold_tree(DEVICE_FP32, sources, 4, &out, 1);
	result(out == (a + c) + (b + d) && out != (a + b) + (c + d),
	       "fold_tree of 4: first and third, second and fourth");
	fold_tree(DEVICE_FP32, sources, 5, &out, 1);
	result(out == ((a + e) + c) + (b + d) &&
	       out != ((a + c) + (b + d)) + e,
	       "fold_tree of 5: the first takes in the fifth before the third");
	result(fold_doubles(doubles, 3) == (1 + -0x1p53) + 0x1p53,
	       "fold_doubles of 3: likewise");
}

/* The granules r, r + N, ... folded by rank r, and then the ranks. */
static void test_fold_subtrees(void)
{
	static float part[16][FOLD_COUNT], out[FOLD_COUNT];
	const void *mine[16], *parts[16];

	for (int ranks = 2; ranks <= 16; ranks *= 2) {
		for (int r = 0; r < ranks; r++) {
			for (int i = 0; i < 16 / ranks; i++)
				mine[i] = fold_source[r + i * ranks];
			fold_tree(DEVICE_FP32, mine, 16 / ranks, part[r],
				  FOLD_COUNT);
			parts[r] = part[r];
		}
		fold_tree(DEVICE_FP32, parts, ranks, out, FOLD_COUNT);
		result(fold_wrong(out, 16, FOLD_COUNT) == 0, "fold_tree: %d "
		       "ranks of 16 granules are subtrees", ranks);
	}
}

/* The sources show an order that is not the tree's. */
static void test_fold_sources(void)
{
	int same = 0;

	for (int j = 0; j < FOLD_COUNT; j++) {
		float sum = 0;

		for (int i = 0; i < 8; i++)
			sum += fold_source[i][j];
		same += sum == fold_defined(8, j);
	}
	result(same < FOLD_COUNT / 2, "fold_tree: the order of a sum shows");
}

/* The vectors of a device's fold begin at any value. */
struct fold_case {
	int parts;
	size_t count, skip, stride;
};

static void fold_body(const void *arguments)
{
	const struct fold_case *c = arguments;
	size_t bytes = c->count * sizeof(float);
	float *from = place((c->skip + (size_t)c->parts * c->stride) *
			    sizeof(*from));
	float *to = place(bytes + sizeof(*to)), out[FOLD_COUNT];

	for (int i = 0; i < c->parts; i++)
		copy(from + c->skip + (size_t)i * c->stride, fold_source[i],
		     bytes);
	device.table->fold(&device, QUEUE_COMM, to + 1, from + c->skip,
			   c->parts, c->stride, c->count);
	if (device.table->check(&device, NULL) < 0)
		fail("check", "failed:", -1);
	read_back(out, to + 1, bytes);
	if (fold_wrong(out, c->parts, (int)c->count) > 0)
		fail("fold", "is not the tree's: wrong values",
		     fold_wrong(out, c->parts, (int)c->count));
}

/* A device that computes on the host has none. */
static void test_device_fold(void)
{
	static const struct fold_case cases[] = {
		{ 1, 700, 0, 700 }, { 2, 700, 0, 704 }, { 3, 701, 1, 701 },
		{ 5, 1, 2, 8 }, { 7, 64, 3, 67 }, { 8, 1021, 1, 1024 },
		{ 33, 500, 1, 500 }, { 300, 129, 1, 129 }
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases) &&
	     device.table->fold; i++) {
		char name[128];

		snprintf(name, sizeof(name), "the device's fold of %d vectors "
			 "of %zu", cases[i].parts, cases[i].count);
		test_case(name, fold_body, &cases[i]);
	}
}

void test_fold(void)
{
	static const int numbers[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 33, 300 };
	float values[4] = { 1, NAN, INFINITY, INFINITY };
	float others[4] = { 1, 1, 1, -INFINITY }, out[4];
	const void *sources[] = { values, others };

	draw_sources();
	test_fold_sources();
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		test_fold_tree(numbers[i]);
		test_fold_doubles(numbers[i]);
	}
	test_fold_written_out();
	test_fold_subtrees();
	fold_tree(DEVICE_FP32, sources, 2, out, 4);
	result(out[0] == 2 && isnan(out[1]) && out[2] > 0 && isinf(out[2]) &&
	       isnan(out[3]), "fold_tree: NaN and infinities stay where they "
	       "are");
	test_device_fold();
}
