/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Computes how much a collective moves, in the words and by the rules of
 * NVIDIA's nccl-tests, so that figures can be compared. Makes what ranks send,
 * and what must come of it: whole numbers that are so small that their sum or
 * product is exact in any order. The value of element i of rank r follows from
 * r, a seed and i modulo a prime: a prime, so that parts in the wrong order are
 * seen. Pure.
 */
#ifndef DDP_BENCH_PATTERN_H
#define DDP_BENCH_PATTERN_H

#include <stddef.h>
#include <stdint.h>

enum collective { ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER, BROADCAST };

/* The order is NCCL's: the value is its ncclDataType_t or ncclRedOp_t. */
enum type { INT8, UINT8, INT32, UINT32, INT64, UINT64, HALF, FLOAT, DOUBLE,
	    BFLOAT16 };
enum redop { SUM, PROD, MAX, MIN };

extern const char *const collective_words[];	/* each ends with NULL */
extern const char *const type_words[];
extern const char *const redop_words[];

size_t type_width(enum type type);		/* bytes */

struct shape {
	size_t count;		/* the count argument of the call */
	size_t send, receive;	/* elements in a rank's two buffers */
	size_t size;		/* bytes of the larger of them */
	double bus_factor;	/* bus bandwidth / algorithm bandwidth */
};

/*
 * A collective of at most bytes over ranks ranks. Reduce-scatter and all-gather
 * divide the bytes by the ranks and round each part down to 16 bytes; size is
 * what is really moved.
 */
struct shape shape_make(enum collective collective, enum type type,
			size_t bytes, int ranks);

enum { PATTERN_PERIOD = 4093 };

/* Two periods of elements, from element 0 on. */
struct pattern {
	size_t width;
	unsigned char data[2 * PATTERN_PERIOD * 8];
};

/*
 * Set pattern to what redop makes of what the ranks from first to last send, in
 * a world of ranks ranks; of one rank, to what it sends. No element is 0.
 */
void pattern_make(struct pattern *pattern, enum type type, enum redop redop,
		  int first, int last, int ranks, uint64_t seed);

/* Write count elements, from element at on. */
void pattern_write(const struct pattern *pattern, size_t at, size_t count,
		   void *data);

/* Returns how many of count elements in data differ from those from at on. */
size_t pattern_wrong(const struct pattern *pattern, size_t at, size_t count,
		     const void *data);

#endif
