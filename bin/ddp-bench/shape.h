/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Computes how much a collective moves, in the words and by the rules of
 * NVIDIA's nccl-tests, so that figures can be compared. Pure.
 */
#ifndef DDP_BENCH_SHAPE_H
#define DDP_BENCH_SHAPE_H

#include <stddef.h>

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

#endif
