/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How much a collective moves, the data that ranks send, and what must come of
 * it. Pure.
 */
#include "pattern.h"

#include <string.h>

const char *const collective_words[] = {
	"all_reduce", "reduce_scatter", "all_gather", "broadcast", NULL
};
const char *const type_words[] = {
	"int8", "uint8", "int32", "uint32", "int64", "uint64", "half", "float",
	"double", "bfloat16", NULL
};
const char *const redop_words[] = { "sum", "prod", "max", "min", NULL };

size_t type_width(enum type type)
{
	static const size_t widths[] = { 1, 1, 4, 4, 8, 8, 2, 4, 8, 2 };

	return widths[type];
}

struct shape shape_make(enum collective collective, enum type type,
			size_t bytes, int ranks)
{
	size_t width = type_width(type), n = (size_t)ranks;
	size_t count = bytes / width;
	size_t part = count / n / (16 / width) * (16 / width);
	double others = (double)(n - 1) / (double)n;

	switch (collective) {
	case REDUCE_SCATTER:
		return (struct shape){ part, part * n, part, part * n * width,
				       others };
	case ALL_GATHER:
		return (struct shape){ part, part, part * n, part * n * width,
				       others };
	case BROADCAST:
		return (struct shape){ count, count, count, count * width, 1 };
	case ALL_REDUCE:
		break;
	}
	return (struct shape){ count, count, count, count * width,
			       2 * others };
}

/* The largest n for which 0 to n are all exact, or 2^53 if that is more. */
static const int64_t exact[] = {
	127, 255, INT32_MAX, UINT32_MAX, (int64_t)1 << 53, (int64_t)1 << 53,
	2048, 1 << 24, (int64_t)1 << 53, 256
};

/* The largest k for which 2^k is exact, or 62 if that is more. */
static const int doublings[] = { 6, 7, 30, 31, 62, 62, 15, 62, 62, 62 };

/* The finisher of splitmix64. */
static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15u;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

/*
 * The value that a rank sends. Only some ranks send more than 0 to a sum, or
 * more than 1 to a product, so that the result stays exact over any number of
 * ranks; which ones depends on the element.
 */
static int64_t value(enum type type, enum redop redop, int rank, int ranks,
		     uint32_t index, uint64_t seed)
{
	uint64_t random = mix(mix(seed << 32 | (uint32_t)rank) + index);
	int64_t turn = ((int64_t)rank + index) % ranks;
	int64_t most = exact[type], active;

	switch (redop) {
	case SUM:
		active = ranks < most / 4 ? ranks : most / 4;
		if (turn >= active)
			return 0;
		return 1 + (int64_t)(random % (uint64_t)(most / active));
	case PROD:
		return turn < doublings[type] ? 1 + (int64_t)(random & 1) : 1;
	case MAX:
	case MIN:
		break;
	}
	return 1 + (int64_t)(random % (uint64_t)most);
}

static int64_t fold(enum redop redop, int64_t a, int64_t b)
{
	switch (redop) {
	case SUM: return a + b;
	case PROD: return a * b;
	case MAX: return a > b ? a : b;
	case MIN: break;
	}
	return a < b ? a : b;
}

/* An IEEE half of a whole number that it can hold exactly. */
static uint16_t to_half(int64_t number)
{
	int log = 0;

	if (number == 0)
		return 0;
	while (number >> log > 1)
		log++;
	number = log > 10 ? number >> (log - 10) : number << (10 - log);
	return (uint16_t)((log + 15) << 10 | (number & 0x3ff));
}

static uint16_t to_bfloat16(int64_t number)
{
	float real = (float)number;
	uint32_t bits;

	memcpy(&bits, &real, sizeof(bits));
	return (uint16_t)(bits >> 16);
}

static void encode(enum type type, int64_t number, unsigned char *to)
{
	union {
		uint8_t u8;
		uint16_t u16;
		uint32_t u32;
		uint64_t u64;
		float f32;
		double f64;
	} as = { 0 };

	switch (type) {
	case INT8: case UINT8: as.u8 = (uint8_t)number; break;
	case INT32: case UINT32: as.u32 = (uint32_t)number; break;
	case INT64: case UINT64: as.u64 = (uint64_t)number; break;
	case HALF: as.u16 = to_half(number); break;
	case BFLOAT16: as.u16 = to_bfloat16(number); break;
	case FLOAT: as.f32 = (float)number; break;
	case DOUBLE: as.f64 = (double)number; break;
	}
	memcpy(to, &as, type_width(type));
}

void pattern_make(struct pattern *pattern, enum type type, enum redop redop,
		  int first, int last, int ranks, uint64_t seed)
{
	size_t width = type_width(type);
	size_t bytes = PATTERN_PERIOD * width;

	pattern->width = width;
	for (uint32_t i = 0; i < PATTERN_PERIOD; i++) {
		int64_t number = value(type, redop, first, ranks, i, seed);

		for (int rank = first + 1; rank <= last; rank++)
			number = fold(redop, number,
				      value(type, redop, rank, ranks, i,
					    seed));
		encode(type, number, pattern->data + i * width);
	}
	memcpy(pattern->data + bytes, pattern->data, bytes);
}

void pattern_write(const struct pattern *pattern, size_t at, size_t count,
		   void *data)
{
	size_t width = pattern->width;
	unsigned char *to = data;

	while (count > 0) {
		size_t n = count < PATTERN_PERIOD ? count : PATTERN_PERIOD;

		memcpy(to, pattern->data + at % PATTERN_PERIOD * width,
		       n * width);
		to += n * width;
		at += n;
		count -= n;
	}
}

size_t pattern_wrong(const struct pattern *pattern, size_t at, size_t count,
		     const void *data)
{
	size_t width = pattern->width, wrong = 0;
	const unsigned char *had = data;

	while (count > 0) {
		size_t n = count < PATTERN_PERIOD ? count : PATTERN_PERIOD;
		const unsigned char *want = pattern->data +
			at % PATTERN_PERIOD * width;

		if (memcmp(want, had, n * width) != 0)
			for (size_t i = 0; i < n; i++)
				wrong += memcmp(want + i * width,
						had + i * width, width) != 0;
		had += n * width;
		at += n;
		count -= n;
	}
	return wrong;
}
