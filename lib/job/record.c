/* SPDX-License-Identifier: BSD-3-Clause */
/* Records: their bytes, and their keys in PMIx. */
#include "job/record.h"

#include <stdio.h>
#include <string.h>

#include "ddp.h"

enum {
	AT_VERSION = 4,
	AT_SESSION = 8,
	AT_ROUND = 12,
	AT_RANK = 16,
	AT_SIZE = 20,
	AT_SUM = 24
};

static const char magic[4] = { 'D', 'D', 'P', 'R' };

static void encode_number(unsigned char *at, uint32_t number)
{
	int i;

	for (i = 0; i < 4; i++)
		at[i] = (unsigned char)(number >> 8 * i);
}

static uint32_t decode_number(const unsigned char *at)
{
	return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
	       (uint32_t)at[3] << 24;
}

static uint32_t add_sum(uint32_t sum, const void *data, size_t count)
{
	const unsigned char *bytes = data;
	size_t i;

	for (i = 0; i < count; i++)
		sum = (sum ^ bytes[i]) * 16777619u;
	return sum;
}

void ddp_record_key(const struct ddp_record_id *id, size_t copy_size,
		    char key[32])
{
	snprintf(key, 32, "ddp.record.%u.%u%u", (uint32_t)copy_size,
		 id->session % 2, id->round % 2);
}

/* Powers of 2 behind the head, so that there are few sizes. */
size_t ddp_record_get_copy_size(size_t size)
{
	size_t room = 256;

	if (DDP_RECORD_HEAD + size <= DDP_RECORD_SLOT)
		return 0;
	while (room < size)
		room *= 2;
	return DDP_RECORD_HEAD + room;
}

static uint32_t sum_record(const unsigned char *head, const void *bytes,
			   size_t size)
{
	return add_sum(add_sum(2166136261u, head, AT_SUM), bytes, size);
}

static void write_head(unsigned char *head, const struct ddp_record_id *id,
		       const void *bytes, size_t size)
{
	memcpy(head, magic, sizeof(magic));
	encode_number(head + AT_VERSION, DDP_RECORD_VERSION);
	encode_number(head + AT_SESSION, id->session);
	encode_number(head + AT_ROUND, id->round);
	encode_number(head + AT_RANK, id->rank);
	encode_number(head + AT_SIZE, (uint32_t)size);
	encode_number(head + AT_SUM, sum_record(head, bytes, size));
}

void ddp_record_write(void *out, const struct ddp_record_id *id,
		      const void *bytes, size_t size)
{
	size_t copy_size = ddp_record_get_copy_size(size), share = size;
	unsigned char *slot = out, *copy = slot + DDP_RECORD_SLOT;

	memset(slot, 0, DDP_RECORD_SLOT + copy_size);
	write_head(slot, id, bytes, size);
	if (copy_size > 0) {
		share = DDP_RECORD_SLOT - DDP_RECORD_HEAD;
		memcpy(copy, slot, DDP_RECORD_HEAD);
		memcpy(copy + DDP_RECORD_HEAD, bytes, size);
	}
	if (share > 0)
		memcpy(slot + DDP_RECORD_HEAD, bytes, share);
}

static int set_damage_error(uint32_t rank, struct ddp_error *error)
{
	return ddp_error_set(error, DDP_ERROR_PMIX, "rank %u's record was "
			     "damaged on its way through PMIx", rank);
}

/* Check that it is the record that was asked for. */
static int check_id(const unsigned char *head, const struct ddp_record_id *id,
		    struct ddp_error *error)
{
	uint32_t rank = decode_number(head + AT_RANK);
	uint32_t session = decode_number(head + AT_SESSION);
	uint32_t round = decode_number(head + AT_ROUND);

	if (rank != id->rank)
		return ddp_error_set(error, DDP_ERROR_PMIX, "PMIx returned "
				     "rank %u's record as rank %u's", rank,
				     id->rank);
	if (session != id->session)
		return ddp_error_set(error, DDP_ERROR_PEER, "rank %u is in "
				     "job %u of its process, this rank in job "
				     "%u: create as many jobs on all ranks",
				     rank, session, id->session);
	if (round != id->round)
		return ddp_error_set(error, DDP_ERROR_PMIX, "PMIx returned "
				     "rank %u's record of exchange %u in "
				     "exchange %u", rank, round, id->round);
	return 0;
}

int ddp_record_open(const void *bytes, size_t length,
		    const struct ddp_record_id *id, size_t *size,
		    struct ddp_error *error)
{
	const unsigned char *head = bytes;
	uint32_t version, held;

	if (length < AT_SESSION || memcmp(head, magic, sizeof(magic)) != 0)
		return ddp_error_set(error, DDP_ERROR_PMIX, "PMIx returned "
				     "%zu bytes that are no record as rank "
				     "%u's", length, id->rank);
	version = decode_number(head + AT_VERSION);
	if (version != DDP_RECORD_VERSION)
		return ddp_error_set(error, DDP_ERROR_PEER, "rank %u writes "
				     "records of version %u, this rank of %u: "
				     "use the same libddp on all ranks",
				     id->rank, version, DDP_RECORD_VERSION);
	if (length < DDP_RECORD_SLOT)
		return set_damage_error(id->rank, error);
	if (check_id(head, id, error))
		return -1;
	held = decode_number(head + AT_SIZE);
	if (held > DDP_RECORD_MAX || (length != DDP_RECORD_SLOT &&
				      length != ddp_record_get_copy_size(held)))
		return set_damage_error(id->rank, error);
	*size = held;
	return 0;
}

int ddp_record_read(const void *bytes, size_t length, void *buffer,
		    struct ddp_error *error)
{
	const unsigned char *head = bytes;
	uint32_t size = decode_number(head + AT_SIZE);

	if (length < DDP_RECORD_HEAD + size ||
	    decode_number(head + AT_SUM) !=
		    sum_record(head, head + DDP_RECORD_HEAD, size))
		return set_damage_error(decode_number(head + AT_RANK), error);
	if (size > 0)
		memcpy(buffer, head + DDP_RECORD_HEAD, size);
	return 0;
}
