/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a rank hands to PMIx: its bytes behind a head that says whose they are
 * and of which exchange, because PMIx can hand out another rank's value, or an
 * older one.
 *
 * A record goes into a slot of always the same size and, if it does not fit in
 * there, as a whole into a copy of one of a few sizes as well; a slot tells
 * which. PMIx values are put again and again under the same keys, and PMIx 4.2
 * loses those whose size changes.
 *
 * Both begin, in bytes, numbers little-endian: 0 "DDPR", 4 version,
 * 8 session, 12 round, 16 rank, 20 size, 24 checksum (FNV-1a of all before it,
 * and of what the rank gave), 28 what the rank gave, or its beginning.
 */
#ifndef DDP_JOB_RECORD_H
#define DDP_JOB_RECORD_H

#include <stddef.h>
#include <stdint.h>

#include "layout/error.h"

#define DDP_RECORD_SLOT 128	/* bytes of a slot */
#define DDP_RECORD_HEAD 28	/* of them before what the rank gave */
#define DDP_RECORD_VERSION 1

struct ddp_record_id {
	uint32_t session;	/* jobs of the process that had one, from 1 */
	uint32_t round;		/* exchanges of the job, from 1 */
	uint32_t rank;
};

/*
 * The key of a record's slot (copy_size 0), or of its copy of that size. Two of
 * each in turn: new ones each time would make every fence carry all that was
 * ever put, and one alone could hold a near rank's record of the next exchange
 * before this one's was read. The one after that cannot begin before. As rounds
 * begin anew in the process's next job, so do the keys, and with the same two
 * in turn.
 */
void ddp_record_key(const struct ddp_record_id *id, size_t copy_size,
		    char key[32]);

/* Bytes of the copy of a record of size (up to DDP_RECORD_MAX), or 0 where the
 * slot is enough. */
size_t ddp_record_get_copy_size(size_t size);

/* Write a slot, and behind it the copy. bytes may be NULL if size is 0. */
void ddp_record_write(void *out, const struct ddp_record_id *id,
		      const void *bytes, size_t size);

/*
 * Whether length bytes are the slot or the copy of id's record; *size is then
 * that of the record. Returns 0, or -1: DDP_ERROR_PEER where that rank's libddp
 * is of another kind, or is elsewhere in its program; DDP_ERROR_PMIX where PMIx
 * has mixed something up.
 */
int ddp_record_open(const void *bytes, size_t length,
		    const struct ddp_record_id *id, size_t *size,
		    struct ddp_error *error);

/* After ddp_record_open, of what holds the whole record: write what the rank
 * gave to buffer, and check it. Returns 0, or -1 with DDP_ERROR_PMIX. */
int ddp_record_read(const void *bytes, size_t length, void *buffer,
		    struct ddp_error *error);

#endif
