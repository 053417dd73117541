/* SPDX-License-Identifier: BSD-3-Clause */
/* Sorts by digits, the lowest first: quick, and those that are equal stay. */
#include <stddef.h>

#include "step/order.h"

enum { DIGIT_BITS = 8, DIGITS = 1 << DIGIT_BITS };

/* Writes from (NULL: 0, 1, ...) to `to`, sorted by one digit of the tokens. */
static void sort_digit(int rows, const int32_t *tokens, int shift,
		       const int32_t *from, int32_t *to)
{
	int begin[DIGITS + 1] = { 0 };

	for (int i = 0; i < rows; i++)
		begin[((uint32_t)tokens[i] >> shift) % DIGITS + 1]++;
	for (int digit = 0; digit < DIGITS; digit++)
		begin[digit + 1] += begin[digit];
	for (int i = 0; i < rows; i++) {
		int32_t row = from ? from[i] : i;

		to[begin[((uint32_t)tokens[row] >> shift) % DIGITS]++] = row;
	}
}

void order_by_token(int rows, const int32_t *tokens, int32_t *order,
		    int32_t *room)
{
	sort_digit(rows, tokens, 0, NULL, room);
	sort_digit(rows, tokens, DIGIT_BITS, room, order);
}
