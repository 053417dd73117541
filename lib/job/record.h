/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A record is what a rank gives to PMIx: its bytes behind a head. The head says
 * whose they are and of which exchange. Without it nobody would notice that
 * PMIx has returned another rank's value, or an older one, which it can.
 *
 * A record goes into a slot, whose size is always the same. A longer record
 * goes as a whole into a copy as well, of one of a few sizes; the slot says
 * which. Values are put under the same keys again and again, and PMIx 4.2 loses
 * a value whose size changes.
 *
 * Both begin, in bytes, numbers little-endian: 0 "DDPR", 4 version, 8 session,
 * 12 round, 16 rank, 20 size, 24 checksum (FNV-1a of all before it, and of what
 * the rank gave), 28 what the rank gave, or its beginning.
 */
#ifndef DDP_JOB_RECORD_H
#define DDP_JOB_RECORD_H

#include <stddef.h>
#include <stdint.h>

#include "util/error.h"

enum {
	DDP_RECORD_SLOT = 128,		/* bytes of a slot */
	DDP_RECORD_HEAD = 28,		/* of them before what the rank gave */
	DDP_RECORD_VERSION = 1
};

struct ddp_record_id {
	uint32_t session;	/* jobs of the process that had one, from 1 */
	uint32_t round;		/* exchanges of the job, from 1 */
	uint32_t rank;
};

/*
 * The key of a record's slot (copy_size 0), or of its copy of that size.
 * Exchanges use two keys in turn. A new key each time would make every fence
 * carry all that was ever put. With one key, a rank of this node could
 * overwrite its record with that of the next exchange before this rank has read
 * it; the exchange after the next cannot begin before it has. Two jobs of a
 * process that follow each other use different keys. A reader must ask for them
 * by its scope (client.c), or PMIx 5 returns an older value.
 */
void ddp_record_key(const struct ddp_record_id *id, size_t copy_size,
		    char key[32]);

/* Bytes of the copy of a record of that size (up to DDP_RECORD_MAX), or 0 if
 * the slot is enough. */
size_t ddp_record_get_copy_size(size_t size);

/* Write a slot, and behind it the copy. bytes may be NULL if size is 0. */
void ddp_record_write(void *out, const struct ddp_record_id *id,
		      const void *bytes, size_t size);

/*
 * Check that length bytes are the slot or the copy of id's record, and set
 * *size to that of the record. Returns 0, or -1: DDP_ERROR_PEER if that rank's
 * libddp differs, or that rank is elsewhere in its program; DDP_ERROR_PMIX if
 * PMIx has returned something else.
 */
int ddp_record_open(const void *bytes, size_t length,
		    const struct ddp_record_id *id, size_t *size,
		    struct ddp_error *error);

/*
 * Copy what the rank gave to buffer, and check it. Call it after
 * ddp_record_open, with the slot or copy that holds the whole record. Returns
 * 0, or -1 with DDP_ERROR_PMIX.
 */
int ddp_record_read(const void *bytes, size_t length, void *buffer,
		    struct ddp_error *error);

#endif
