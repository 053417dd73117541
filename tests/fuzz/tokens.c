/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzzes the files that ddp-train learns. The input is a byte of bits, the
 * format and how the file is made, one for the least number of tokens, one for
 * the vocabulary, then the file; in most files the header's zeros are left out.
 */
#define _GNU_SOURCE
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"
#include "data/data.h"

enum { HEADER = 1024, WORDS = 12, FILE_MAX = 4096, PARTS = 3 };

/* The file is not touched while it is read, so nothing may end the run. */
static void end_run(void *context, const char *text)
{
	(void)context;
	fuzz_fail(__FILE__, __LINE__, text);
}

/* The file as it is, or with the zeros that a header has behind its words. */
static size_t make_file(unsigned char *file, const unsigned char *data,
			size_t size, int whole)
{
	size_t words = size < WORDS ? size : WORDS;

	memset(file, 0, FILE_MAX);
	if (size > FILE_MAX - HEADER)
		size = FILE_MAX - HEADER;
	if (whole || size < WORDS) {
		memcpy(file, data, size);
		return size;
	}
	memcpy(file, data, words);
	memcpy(file + HEADER, data + words, size - words);
	return HEADER + size - words;
}

static uint64_t expected_token(const unsigned char *file,
			       enum data_format format, uint64_t i)
{
	if (format == DATA_BYTES)
		return file[i];
	return file[HEADER + 2 * i] | file[HEADER + 2 * i + 1] << 8;
}

/* What is read is what the file has; parts are good if the whole is. */
static void check_data(struct data *data, const unsigned char *file,
		       uint64_t vocab)
{
	struct ddp_error error = { 0 };
	static int32_t tokens[FILE_MAX];
	int good = 1, bad_parts = 0, part;
	uint64_t i;

	for (i = 0; i < data->tokens; i++)
		good &= data->format == DATA_BYTES ||
			expected_token(file, data->format, i) < vocab;
	if (data_check(data, vocab, 0, 1, &error)) {
		fuzz_check_error(&error, DDP_ERROR_ARGUMENT);
		CHECK(!good);
	} else {
		CHECK(good);
		data_read(data, 0, data->tokens, tokens);
		for (i = 0; i < data->tokens; i++)
			CHECK((uint64_t)tokens[i] ==
			      expected_token(file, data->format, i));
	}
	for (part = 0; part < PARTS; part++)
		bad_parts += data_check(data, vocab, part, PARTS, NULL) < 0;
	CHECK(good == (bad_parts == 0));
	data_hash(data);
	data_check_size(data);
}

static void check_file(const unsigned char *file, size_t size,
		       enum data_format format, uint64_t least, uint64_t vocab,
		       int fd)
{
	struct ddp_error error = { 0 };
	struct data data;
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (data_open(&data, path, format, least, end_run, NULL, &error)) {
		fuzz_check_error(&error, DDP_ERROR_ARGUMENT);
		return;
	}
	CHECK(data.size == size && data.tokens >= least);
	CHECK(data.tokens == (format == DATA_BYTES ? size :
			      (size - HEADER) / 2));
	CHECK(data_is_path(&data, path));
	check_data(&data, file, vocab);
	data_close(&data);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	static unsigned char file[FILE_MAX];
	static int fd = -1;
	size_t length;

	if (size < 3)
		return 0;
	if (fd < 0)
		fd = memfd_create("tokens", MFD_CLOEXEC);
	length = make_file(file, data + 3, size - 3, data[0] & 2);
	CHECK(fd >= 0 && ftruncate(fd, (off_t)length) == 0);
	CHECK(pwrite(fd, file, length, 0) == (ssize_t)length);
	check_file(file, length, data[0] & 1 ? DATA_TOKENS : DATA_BYTES,
		   data[1], data[2] > 0 ? data[2] * 256u : 1, fd);
	return 0;
}
