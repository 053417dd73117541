/* SPDX-License-Identifier: BSD-3-Clause */
/* The records of an exchange: their format, and damage. */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>

#include <string.h>

#include "ddp.h"
#include "job/record.h"

#define ROOM (2 * DDP_RECORD_SLOT + DDP_RECORD_MAX)

static const struct ddp_record_id id = { 3, 0x01020304, 70000 };

/* Written by hand: 28 bytes of head, the two bytes given, zeros. */
Test(record, format)
{
	static const unsigned char head[24] = {
		'D', 'D', 'P', 'R', 1, 0, 0, 0, 3, 0, 0, 0, 4, 3, 2, 1,
		0x70, 0x11, 1, 0, 2, 0, 0, 0
	};
	unsigned char slot[DDP_RECORD_SLOT];
	uint32_t sum = 2166136261u, had = 0, i;

	memset(slot, 0xee, sizeof(slot));
	ddp_record_write(slot, &id, "hi", 2);
	cr_expect_arr_eq(slot, head, sizeof(head));
	for (i = 0; i < 26; i++) {
		sum ^= i < 24 ? head[i] : (unsigned char)"hi"[i - 24];
		sum *= 16777619u;
	}
	for (i = 0; i < 4; i++)
		had |= (uint32_t)slot[24 + i] << 8 * i;
	cr_expect_eq(had, sum);
	cr_expect_arr_eq(slot + 28, "hi", 2);
	for (i = 30; i < sizeof(slot); i++)
		cr_expect_eq(slot[i], 0);
}

struct size_row {
	size_t size, copy;
};

/* A slot has room for 100 bytes, a copy for 256, 512, ... */
ParameterizedTestParameters(record, sizes)
{
	static struct size_row table[] = {
		{ 0, 0 }, { 1, 0 }, { 99, 0 }, { 100, 0 }, { 101, 284 },
		{ 256, 284 }, { 257, 540 }, { 512, 540 }, { 513, 1052 },
		{ 32768, 32796 }, { 32769, 65564 }, { 65536, 65564 },
	};

	return cr_make_param_array(struct size_row, table,
				   sizeof(table) / sizeof(table[0]));
}

ParameterizedTest(struct size_row *row, record, sizes)
{
	static unsigned char out[ROOM], bytes[DDP_RECORD_MAX];
	static unsigned char back[DDP_RECORD_MAX + 1];
	unsigned char *whole = row->copy > 0 ? out + DDP_RECORD_SLOT : out;
	size_t length = row->copy > 0 ? row->copy : DDP_RECORD_SLOT;
	struct ddp_error error = { 0 };
	size_t size = 7, i;

	for (i = 0; i < row->size; i++)
		bytes[i] = (unsigned char)(i * 31 + i / 256);
	memset(out, 0xee, sizeof(out));
	memset(back, 0xaa, sizeof(back));
	cr_assert_eq(ddp_record_get_copy_size(row->size), row->copy);
	ddp_record_write(out, &id, bytes, row->size);
	cr_expect_eq(out[DDP_RECORD_SLOT + row->copy], 0xee);
	cr_assert_eq(ddp_record_open(out, DDP_RECORD_SLOT, &id, &size, &error),
		     0, "%s", error.text);
	cr_assert_eq(size, row->size);
	cr_assert_eq(ddp_record_open(whole, length, &id, &size, &error), 0,
		     "%s", error.text);
	cr_assert_eq(size, row->size);
	cr_assert_eq(ddp_record_read(whole, length, back, &error), 0, "%s",
		     error.text);
	cr_expect_eq(memcmp(back, bytes, row->size), 0);
	cr_expect_eq(back[row->size], 0xaa);
	if (row->copy > 0)
		cr_expect_eq(ddp_record_read(out, DDP_RECORD_SLOT, back,
					     NULL), -1);
}

struct wrong_row {
	int at;			/* byte of the slot to change */
	size_t length;
	enum ddp_error_code code;
	char text[40];
};

ParameterizedTestParameters(record, wrong)
{
	static struct wrong_row table[] = {
		{ 0, 128, DDP_ERROR_PMIX, "128 bytes that are no record" },
		{ -1, 7, DDP_ERROR_PMIX, "7 bytes that are no record" },
		{ -1, 0, DDP_ERROR_PMIX, "0 bytes that are no record" },
		{ -1, 127, DDP_ERROR_PMIX, "rank 70000's record was damaged" },
		{ -1, 129, DDP_ERROR_PMIX, "rank 70000's record was damaged" },
		{ 4, 128, DDP_ERROR_PEER, "records of version 0" },
		{ 8, 128, DDP_ERROR_PEER, "is in job 2 of its process" },
		{ 12, 128, DDP_ERROR_PMIX, "exchange 16909061 in exchange 1" },
		{ 16, 128, DDP_ERROR_PMIX, "rank 70001's record as rank 70" },
		{ 22, 128, DDP_ERROR_PMIX, "rank 70000's record was damaged" },
	};

	return cr_make_param_array(struct wrong_row, table,
				   sizeof(table) / sizeof(table[0]));
}

ParameterizedTest(struct wrong_row *row, record, wrong)
{
	unsigned char slot[DDP_RECORD_SLOT + 1] = { 0 };
	struct ddp_error error = { 0 };
	size_t size = 7;

	ddp_record_write(slot, &id, "x", 1);
	if (row->at >= 0)
		slot[row->at] ^= row->at == 22 ? 2 : 1;
	cr_assert_eq(ddp_record_open(slot, row->length, &id, &size, &error),
		     -1);
	cr_expect_eq(error.code, row->code);
	cr_expect(strstr(error.text, row->text) != NULL, "%s", error.text);
	cr_expect_eq(size, 7);
	cr_expect_eq(ddp_record_open(slot, row->length, &id, &size, NULL), -1);
}

/* A change of any bit of what the rank gave is noticed, in slot and copy. */
Test(record, damage)
{
	unsigned char out[DDP_RECORD_SLOT + 284], back[200], bytes[200];
	size_t bit;

	memset(bytes, 0x5a, sizeof(bytes));
	for (bit = 28 * 8; bit < (28 + 60) * 8; bit++) {
		ddp_record_write(out, &id, bytes, 60);
		out[bit / 8] ^= (unsigned char)(1 << bit % 8);
		cr_expect_eq(ddp_record_read(out, DDP_RECORD_SLOT, back, NULL),
			     -1, "bit %zu", bit);
	}
	for (bit = (128 + 28) * 8; bit < (128 + 28 + 200) * 8; bit++) {
		ddp_record_write(out, &id, bytes, sizeof(bytes));
		out[bit / 8] ^= (unsigned char)(1 << bit % 8);
		cr_expect_eq(ddp_record_read(out + DDP_RECORD_SLOT, 284, back,
					     NULL), -1, "bit %zu", bit);
	}
}

/* The keys of what may be there at the same time differ; the rank is no part. */
Test(record, keys_differ_between_exchanges_jobs_and_sizes)
{
	static const struct {
		uint32_t session, round;
		size_t copy;
	} rows[] = {
		{ 1, 1, 0 }, { 1, 2, 0 }, { 2, 1, 0 }, { 2, 2, 0 },
		{ 1, 1, 284 }, { 1, 1, 540 }, { 1, 2, 284 }, { 2, 2, 284 },
	};
	const size_t count = sizeof(rows) / sizeof(rows[0]);
	struct ddp_record_id of = { 0 };
	char keys[8][32], later[32];
	size_t i, k;

	for (i = 0; i < count; i++) {
		of = (struct ddp_record_id){ rows[i].session, rows[i].round,
					     5 };
		ddp_record_key(&of, rows[i].copy, keys[i]);
		for (k = 0; k < i; k++)
			cr_expect_str_neq(keys[i], keys[k]);
		/* A new one each time would let fences carry ever more. */
		of.round += 2;
		of.session += 2;
		of.rank = 6;
		ddp_record_key(&of, rows[i].copy, later);
		cr_expect_str_eq(later, keys[i]);
	}
}
