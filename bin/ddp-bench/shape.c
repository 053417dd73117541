/* SPDX-License-Identifier: BSD-3-Clause */
/* Computes how much a collective moves. Pure. */
#include "shape.h"

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
