/* SPDX-License-Identifier: BSD-3-Clause */
/* The rows of a batch by their tokens: see op_embed_backward. */
#ifndef DDP_TRAIN_ORDER_H
#define DDP_TRAIN_ORDER_H

#include <stdint.h>

/*
 * order[rows] = the numbers 0 .. rows - 1 by token, and those of one token
 * upwards. Tokens are 0 .. 65535; room[rows] is overwritten.
 */
void order_by_token(int rows, const int32_t *tokens, int32_t *order,
		    int32_t *room);

#endif
