/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CRC-32 as of zlib, PNG and Ethernet, by libgcrypt, which uses the processor's
 * instructions for it.
 */
#ifndef DDP_TRAIN_CRC_H
#define DDP_TRAIN_CRC_H

#include <stddef.h>
#include <stdint.h>

struct ddp_error;
struct crc;

/* Returns NULL with error set if libgcrypt gives none. */
struct crc *crc_create(struct ddp_error *error);

void crc_reset(struct crc *crc);
void crc_add(struct crc *crc, const void *bytes, size_t count);

/* Returns the checksum of all that was added since the last reset; resets. */
uint32_t crc_read(struct crc *crc);

/* Accepts NULL. */
void crc_destroy(struct crc *crc);

#endif
