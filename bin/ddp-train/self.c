/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "comm.h"

static void self_open(int *rank, int *size)
{
	*rank = 0;
	*size = 1;
}

static void self_gather(const void *mine, void *all, size_t size)
{
	memcpy(all, mine, size);
}

static void self_keep(float *values, size_t count)
{
	(void)values;
	(void)count;
}

static void self_close(void)
{
}

const struct comm comm_self = {
	.name = "self",
	.open = self_open,
	.gather = self_gather,
	.broadcast = self_keep,
	.sum = self_keep,
	.close = self_close,
	.abort = exit
};
