/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DDP_UTIL_RANDOM_H
#define DDP_UTIL_RANDOM_H

#include <stddef.h>

/* Fill at most 256 bytes that nobody can guess. Returns 0, or -1 with errno. */
int ddp_random_fill(void *bytes, size_t size);

#endif
