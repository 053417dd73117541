/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzzes the model files that ddp-train --init reads. The input is a byte of
 * bits, a shorter context, the version and six small fields of the header, or
 * with bit 0 a whole file; then parameters, which are repeated.
 */
#define _GNU_SOURCE
#include <sys/mman.h>
#include <unistd.h>

#include "data/llmc.h"
#include "ddp.h"
#include "fuzz.h"
#include "model/gpt.h"

enum { HEADER = 1024, FIELDS = 6, FILE_MAX = 1 << 20 };

static unsigned char file[FILE_MAX];

void ddp_heartbeat(void)
{
}

/* Only fields in range, of a file of the right size, come here. */
int gpt_complete_shape(struct model_shape *shape, const char *preset,
		       struct ddp_error *error)
{
	(void)preset, (void)error;
	CHECK(shape->layers >= 1 && shape->width % shape->heads == 0);
	CHECK(shape->context >= 1 && shape->vocab >= 1);
	return 0;
}

static void put_word(int index, uint32_t word)
{
	for (int i = 0; i < 4; i++)
		file[4 * index + i] = (unsigned char)(word >> 8 * i);
}

/* A header and as many parameters as it counts, or bits 1 and 2: not quite. */
static size_t make_file(unsigned bits, const unsigned char *fields,
			const unsigned char *body, size_t size)
{
	uint64_t layers = fields[3], width = fields[5], padded = fields[6];
	uint64_t count = layers * (12 * width + 13) * width +
			 (padded + fields[1] + 2) * width;
	uint64_t length = HEADER + count * (fields[0] == 3 ? 4 : 2);

	memset(file, 0, HEADER);
	put_word(0, 20240326);
	for (int i = 0; i <= FIELDS; i++)
		put_word(1 + i, fields[i]);
	if (length + 2 > FILE_MAX || size == 0)
		return HEADER;
	for (size_t i = HEADER; i < length; i++)
		file[i] = body[i % size];
	return length + (bits >> 1 & 1) - (bits >> 2 & 1);
}

/* A GPT of this shape, its tensors from the last in PyTorch's order on. */
static struct gpt *make_gpt(const struct model_shape *shape)
{
	static const int rows[GPT_PARTS] = { 0, 0, 3, 0, 1, 0, 0, 0, 4, 0, 1 };
	static const int columns[GPT_PARTS] = { 1, 1, 1, 3, 1, 1, 1, 1, 1, 4,
						4, 1 };
	int count = GPT_LAYERS + (int)shape->layers * GPT_PARTS + 2;
	int width = (int)shape->width;
	struct gpt *gpt = calloc(1, sizeof(*gpt) + (size_t)count *
				 sizeof(struct tensor));

	CHECK(gpt);
	gpt->layers = (int)shape->layers;
	gpt->model.tensor_count = count;
	gpt->model.shape = *shape;
	for (int i = 0; i < count; i++) {
		struct tensor *tensor = &gpt->tensors[count - 1 - i];
		int part = (i - GPT_LAYERS) % GPT_PARTS;

		tensor->rows = i == 0 ? (int)shape->vocab :
			       i == 1 ? (int)shape->context :
			       rows[part] ? rows[part] * width : 1;
		tensor->columns = i < 2 ? width : columns[part] * width;
	}
	gpt->model.param_count = model_lay_out(gpt->tensors, count);
	return gpt;
}

static void check_read(const char *path, const struct model_shape *shape)
{
	struct gpt *gpt = make_gpt(shape);
	float *param = malloc(gpt->model.param_count * sizeof(*param));
	struct ddp_error error = { 0 };

	CHECK(param);
	/* What has the size that it says can only have no numbers in it. */
	if (llmc_read(path, &gpt->model, param, &error))
		fuzz_check_error(&error, DDP_ERROR_ARGUMENT);
	else
		for (size_t i = 0; i < gpt->model.param_count; i++)
			CHECK(param[i] - param[i] == 0);
	free(param);
	free(gpt);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	struct ddp_error error = { 0 };
	struct model_shape shape = { 0 };
	static int fd = -1;
	size_t length;
	char path[32];

	if (size < 3 + FIELDS || size > FILE_MAX)
		return 0;
	if (fd < 0)
		fd = memfd_create("model", MFD_CLOEXEC);
	length = size - 2;
	if (data[0] & 1)
		memcpy(file, data + 2, length);
	else
		length = make_file(data[0], data + 2, data + 3 + FIELDS,
				   size - 3 - FIELDS);
	CHECK(fd >= 0 && ftruncate(fd, (off_t)length) == 0);
	CHECK(pwrite(fd, file, length, 0) == (ssize_t)length);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	shape.context = data[1];
	if (llmc_complete_shape(path, &shape, &error)) {
		CHECK(error.code == DDP_ERROR_SYSTEM ||
		      error.code == DDP_ERROR_ARGUMENT);
		fuzz_check_error(&error, error.code);
		CHECK(shape.layers == 0);
		return 0;
	}
	CHECK(length > HEADER);
	check_read(path, &shape);
	return 0;
}
