/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzzes the records of an exchange. The input is four bytes, how many bytes
 * the rank gave and which of the record is changed how, then what PMIx hands
 * out.
 */
#include "fuzz.h"
#include "ddp.h"
#include "job/record.h"

enum { ROOM = 2 * DDP_RECORD_SLOT + DDP_RECORD_MAX, GIVEN_MAX = 600 };

static const struct ddp_record_id id = { 3, 7, 1 };

/* Returns 0 and what the rank gave, or -1; buffer has the room that it needs
 * and no more. */
static int read_record(const void *bytes, size_t length, char **buffer,
		       size_t *size)
{
	struct ddp_error error = { 0 };
	size_t held = SIZE_MAX;

	if (ddp_record_open(bytes, length, &id, &held, &error)) {
		fuzz_check_error(&error, error.code);
		CHECK(error.code == DDP_ERROR_PMIX ||
		      error.code == DDP_ERROR_PEER);
		CHECK(held == SIZE_MAX);
		return -1;
	}
	CHECK(held <= DDP_RECORD_MAX);
	*buffer = malloc(held + 1);
	CHECK(*buffer);
	*size = held;
	if (ddp_record_read(bytes, length, *buffer, &error) == 0)
		return 0;
	fuzz_check_error(&error, DDP_ERROR_PMIX);
	free(*buffer);
	return -1;
}

/* What is written reads back; a byte that changed is noticed, or no matter. */
static void check_written(const unsigned char *given, size_t size,
			  const unsigned char *change)
{
	static unsigned char out[ROOM];
	size_t copy = ddp_record_get_copy_size(size), length, held, at;
	unsigned char *whole = out;
	char *buffer;

	length = copy > 0 ? copy : DDP_RECORD_SLOT;
	if (copy > 0)
		whole += DDP_RECORD_SLOT;
	ddp_record_write(out, &id, given, size);
	CHECK(read_record(whole, length, &buffer, &held) == 0);
	CHECK(held == size && memcmp(buffer, given, size) == 0);
	free(buffer);
	at = (change[0] | (size_t)change[1] << 8) % length;
	whole[at] ^= change[2];
	if (read_record(whole, length, &buffer, &held))
		return;
	CHECK(held == size && memcmp(buffer, given, size) == 0);
	free(buffer);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	unsigned char given[GIVEN_MAX];
	size_t held, i;
	char *buffer;

	if (size < 4)
		return 0;
	for (i = 0; i < sizeof(given); i++)
		given[i] = (unsigned char)(data[i % size] + i);
	check_written(given, data[0] * 2u, data + 1);
	if (read_record(data + 4, size - 4, &buffer, &held) == 0) {
		CHECK(size - 4 >= DDP_RECORD_HEAD + held);
		free(buffer);
	}
	return 0;
}
