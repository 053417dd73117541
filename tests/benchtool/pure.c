/* SPDX-License-Identifier: BSD-3-Clause */
/* ddp-bench's pure parts against values reasoned by hand; TAP. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pattern.h"
#include "outliers.h"

static int count, failed;

static void check(int passed, const char *name)
{
	printf("%sok %d - %s\n", passed ? "" : "not ", ++count, name);
	failed |= !passed;
}

static int is_shape(enum collective collective, enum type type, size_t bytes,
		    int ranks, size_t calls, size_t send, size_t receive,
		    size_t size, double factor)
{
	struct shape s = shape_make(collective, type, bytes, ranks);

	return s.count == calls && s.send == send && s.receive == receive &&
		s.size == size && fabs(s.bus_factor - factor) < 1e-12;
}

static void test_shapes(void)
{
	check(is_shape(ALL_REDUCE, FLOAT, 1027, 4, 256, 256, 256, 1024, 1.5),
	      "an all-reduce of 1027 bytes moves 256 floats, factor 2*3/4");
	/* 256 / 3 = 85, of which 84 are whole 16 bytes */
	check(is_shape(ALL_GATHER, FLOAT, 1024, 3, 84, 84, 252, 1008, 2 / 3.),
	      "an all-gather over 3 ranks is rounded to 16 bytes each");
	check(is_shape(REDUCE_SCATTER, DOUBLE, 1024, 3, 42, 126, 42, 1008,
		       2 / 3.), "and so is a reduce-scatter");
	check(is_shape(REDUCE_SCATTER, INT8, 63, 4, 0, 0, 0, 0, .75),
	      "of less than 16 bytes each, nothing is left");
	check(is_shape(BROADCAST, BFLOAT16, 7, 4, 3, 3, 3, 6, 1),
	      "a broadcast has factor 1");
}

/* What an element says as a number. */
static double decode(enum type type, const void *at)
{
	uint16_t u16;
	uint32_t u32;
	float f32;
	double f64;
	int64_t i64;
	int32_t i32;

	switch (type) {
	case INT8: return *(const int8_t *)at;
	case UINT8: return *(const uint8_t *)at;
	case INT32: case UINT32:
		memcpy(&i32, at, 4);
		return type == INT32 ? i32 : (double)(uint32_t)i32;
	case INT64: case UINT64:
		memcpy(&i64, at, 8);
		return (double)i64;
	case FLOAT: memcpy(&f32, at, 4); return f32;
	case DOUBLE: memcpy(&f64, at, 8); return f64;
	case HALF:	/* 1 sign, 5 exponent, 10 fraction bits */
		memcpy(&u16, at, 2);
		return ldexp(1 + (u16 & 0x3ff) / 1024., (u16 >> 10) - 15) *
			(u16 != 0);
	case BFLOAT16:	/* the upper half of a float */
		memcpy(&u16, at, 2);
		u32 = (uint32_t)u16 << 16;
		memcpy(&f32, &u32, 4);
		return f32;
	}
	return 0;
}

static double fold(enum redop redop, double a, double b)
{
	return redop == SUM ? a + b : redop == PROD ? a * b :
		redop == MAX ? fmax(a, b) : fmin(a, b);
}

/* The largest n so that all up to n, or for products all powers of two up to
 * it, are exact. */
static double limit(enum type type, enum redop redop)
{
	static const double exact[] = { 127, 255, 2147483647., 4294967295.,
		9007199254740992., 9007199254740992., 2048, 16777216,
		9007199254740992., 256 };

	if (redop != PROD || type < HALF)
		return redop == PROD && type >= INT64 ? 0x1p62 : exact[type];
	return type == HALF ? 32768 : 0x1p62;
}

/* Fold what each rank sends, here; compare; and keep to the limit, so that no
 * other order could give anything else. */
static int is_fold(enum type type, enum redop redop, int ranks)
{
	static struct pattern one, all;
	double *sum = calloc(PATTERN_PERIOD, sizeof(double));
	int good = 1;

	pattern_make(&all, type, redop, 0, ranks - 1, ranks, 7);
	for (int rank = 0; rank < ranks; rank++) {
		pattern_make(&one, type, redop, rank, rank, ranks, 7);
		for (int i = 0; i < PATTERN_PERIOD; i++) {
			double x = decode(type, one.data +
					  (size_t)i * one.width);

			sum[i] = rank == 0 ? x : fold(redop, sum[i], x);
		}
	}
	for (int i = 0; i < PATTERN_PERIOD; i++)
		good &= sum[i] > 0 && sum[i] <= limit(type, redop) &&
			sum[i] == decode(type, all.data +
					 (size_t)i * all.width);
	free(sum);
	return good;
}

static void test_folds(void)
{
	static const int worlds[] = { 1, 2, 5, 64, 300 };
	char name[80];

	for (int type = INT8; type <= BFLOAT16; type++) {
		int good = 1;

		for (int redop = SUM; redop <= MIN; redop++)
			for (int i = 0; i < 5; i++)
				good &= is_fold((enum type)type,
						(enum redop)redop, worlds[i]);
		snprintf(name, sizeof(name), "folds of %s are exact",
			 type_words[type]);
		check(good, name);
	}
}

static void test_wrong(void)
{
	static struct pattern pattern, other;
	size_t n = 3 * PATTERN_PERIOD + 5;
	float *data = calloc(n, sizeof(float));

	pattern_make(&pattern, FLOAT, SUM, 0, 3, 4, 1);
	pattern_write(&pattern, 100, n, data);
	check(pattern_wrong(&pattern, 100, n, data) == 0,
	      "what was written is right");
	data[0]++;
	data[n / 2]++;
	data[n - 1] = -data[n - 1];
	check(pattern_wrong(&pattern, 100, n, data) == 3,
	      "three elements are wrong");
	pattern_write(&pattern, 101, n, data);
	check(pattern_wrong(&pattern, 100, n, data) > n / 2,
	      "shifted by one, most are wrong");
	pattern_write(&pattern, 100 + 4096, n, data);
	check(pattern_wrong(&pattern, 100, n, data) > n / 2,
	      "shifted by 4096, most are wrong");
	pattern_make(&other, FLOAT, SUM, 0, 3, 4, 2);
	pattern_write(&other, 100, n, data);
	check(pattern_wrong(&pattern, 100, n, data) > n / 2,
	      "those of the call before are wrong");
	pattern_make(&other, FLOAT, SUM, 0, 2, 4, 1);
	pattern_write(&other, 100, n, data);
	check(pattern_wrong(&pattern, 100, n, data) == n,
	      "without the last rank, all are wrong");
	free(data);
}

/* Each pair of so many nodes meets once, nobody twice in a round. */
static int is_tournament(int nodes)
{
	char *met = calloc((size_t)nodes * (size_t)nodes, 1);
	int rounds = nodes - 1 + nodes % 2, pairs = 0, good = 1;

	for (int round = 0; round < rounds; round++) {
		for (int a = 0; a < nodes; a++) {
			int b = pair_partner(a, round, nodes);

			good &= b >= 0 && b < nodes &&
				pair_partner(b, round, nodes) == a;
			if (b > a && good)
				pairs += !met[a * nodes + b]++;
		}
	}
	free(met);
	return good && pairs == nodes * (nodes - 1) / 2;
}

static void test_tournament(void)
{
	int good = 1;

	for (int nodes = 2; nodes <= 65; nodes++)
		good &= is_tournament(nodes);
	check(good, "in tournaments of 2 to 65, each meets each once");
}

/* (0,1), (0,2), (1,2), (0,3), (1,3), (2,3) */
static void test_slow(void)
{
	const double node[] = { 10, 1.1, 10, 1, 10, 1.05 };
	const double link[] = { 5, 1, 1, 1, 1.05, 1.1 };
	const double even[] = { 1, 1.1, 1.15, 1.05, 1.1, 1.19 };
	const double three[] = { 9, 1, 9 };
	const double fifth[] = { 1.3, 1, 1.3 };
	const double less[] = { 1.19, 1, 1.19 };
	struct outliers slow;

	check(outliers_find(&slow, node, 4) == 0 && slow.node_count == 1 &&
	      slow.nodes[1] && slow.pair_count == 0,
	      "a slow node is one, and its pairs are not");
	/* times of nodes 1, 10, 1.05, 1: median 1.025, deviations 0.025, 8.975,
	 * 0.025, 0.025; a fifth more is 1.23 */
	check(fabs(slow.node_bounds.median - 1.025) < 1e-9 &&
	      fabs(slow.node_bounds.mad - .025) < 1e-9 &&
	      fabs(slow.node_bounds.above - 1.23) < 1e-9,
	      "median, deviation and bound");
	outliers_clear(&slow);
	check(outliers_find(&slow, link, 4) == 0 && slow.node_count == 0 &&
	      slow.pair_count == 1 && slow.pairs[pair_index(1, 0)],
	      "a slow pair is one, and its nodes are not");
	outliers_clear(&slow);
	check(outliers_find(&slow, even, 4) == 0 && slow.node_count == 0 &&
	      slow.pair_count == 0, "of alike ones, none is slow");
	outliers_clear(&slow);
	check(outliers_find(&slow, three, 3) == 0 && slow.node_count == 1 &&
	      slow.nodes[1] && slow.pair_count == 0,
	      "of three nodes, the slow one is told");
	outliers_clear(&slow);
	check(outliers_find(&slow, fifth, 3) == 0 && slow.nodes[1],
	      "30 % more is slow where all others are the same");
	outliers_clear(&slow);
	check(outliers_find(&slow, less, 3) == 0 && slow.node_count == 0,
	      "19 % more is not");
	outliers_clear(&slow);
	check(outliers_find(&slow, three, 2) == 0 && slow.node_count == 0 &&
	      slow.pair_count == 0, "of two nodes nothing is said");
	outliers_clear(&slow);
}

int main(void)
{
	test_shapes();
	test_folds();
	test_wrong();
	test_tournament();
	test_slow();
	printf("1..%d\n", count);
	return failed;
}
