/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DDP_UTIL_CLOSE_RANGE_H
#define DDP_UTIL_CLOSE_RANGE_H

/*
 * Close all descriptors from this one on. Returns 0, or -1 with errno set: the
 * kernel is older than 5.9, and /proc cannot be read.
 */
int ddp_close_from(int first);

#endif
