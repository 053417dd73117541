/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts that all collectives compute alike. */
#include "collective.h"

size_t collective_find_slice(size_t count, int rank, int size, size_t *begin)
{
	size_t ranks = (size_t)size;
	size_t length = count / ranks + (count % ranks > 0);

	length += (DEVICE_BLOCK - length % DEVICE_BLOCK) % DEVICE_BLOCK;
	/* Compare so that rank * length cannot overflow. */
	if (length == 0 || (size_t)rank > (count - 1) / length) {
		*begin = count;
		return 0;
	}
	*begin = (size_t)rank * length;
	return count - *begin < length ? count - *begin : length;
}

int32_t collective_find_timeout(const struct collective *collective)
{
	double ms = collective->timeout * 1000;

	if (ms <= 0)
		return -1;
	return ms < INT32_MAX ? (int32_t)ms : INT32_MAX;
}
