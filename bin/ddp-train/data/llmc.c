/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the model files of llm.c: --init. */
#define _GNU_SOURCE
#include <byteswap.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/llmc.h"
#include "data/path_code.h"
#include "ddp.h"
#include "model/gpt.h"
#include "util/error.h"

enum {
	MAGIC = 20240326, VERSION_FP32 = 3, VERSION_BF16 = 5, WORDS = 256,
	FIELD_MAX = 65536, PIECE = 16384
};

/* A file that is being read. */
struct llmc {
	FILE *stream;
	const char *path;		/* borrowed */
	struct model_shape shape;	/* the context is the longest one */
	uint64_t padded;		/* rows of the token table */
	size_t size;			/* bytes of a parameter */
};

/* Open a regular file and get its size; NULL with error set. */
static FILE *open_file(const char *path, uint64_t *bytes,
		       struct ddp_error *error)
{
	/* O_NONBLOCK: a pipe without a writer would block the job. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat status;
	FILE *stream;

	if (fd < 0 || fstat(fd, &status) < 0) {
		ddp_error_set(error, find_path_code(errno), "cannot open "
			      "--init %s: %s; name a file that every node "
			      "can read", path, strerror(errno));
	} else if (!S_ISREG(status.st_mode)) {
		ddp_error_set(error, DDP_ERROR_ARGUMENT, "--init %s is not a "
			      "regular file; name a model file of llm.c",
			      path);
	} else {
		*bytes = (uint64_t)status.st_size;
		stream = fdopen(fd, "r");
		if (stream)
			return stream;
		ddp_error_set(error, DDP_ERROR_SYSTEM, "cannot read --init "
			      "%s: %s", path, strerror(errno));
	}
	if (fd >= 0)
		close(fd);
	return NULL;
}

static int check_magic(const char *path, uint32_t magic, uint32_t version,
		       struct ddp_error *error)
{
	if (magic == bswap_32(MAGIC))
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--init %s is "
				     "a model file in the wrong byte order; "
				     "write its numbers little-endian", path);
	if (magic != MAGIC)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--init %s "
				     "begins with %" PRIu32 ", not with %d as "
				     "a model file of llm.c does; name one as "
				     "gpt2_124M.bin", path, magic, MAGIC);
	if (version != VERSION_FP32 && version != VERSION_BF16)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--init %s is "
				     "a model file of version %" PRIu32 "; "
				     "only versions %d, fp32, and %d, bf16, "
				     "can be read: write it by a newer llm.c",
				     path, version, VERSION_FP32, VERSION_BF16);
	return 0;
}

/* Checks that the header's numbers can be those of a model. */
static int check_fields(const struct llmc *file, struct ddp_error *error)
{
	const struct model_shape *shape = &file->shape;
	const struct {
		uint64_t value, max;
		const char *what;
	} fields[] = {
		{ shape->context, FIELD_MAX, "positions" },
		{ shape->vocab, FIELD_MAX, "tokens in its vocabulary" },
		{ shape->layers, FIELD_MAX, "layers" },
		{ shape->heads, FIELD_MAX, "heads" },
		{ shape->width, FIELD_MAX, "as its width" },
		{ file->padded, 2 * FIELD_MAX, "rows in its token table" }
	};

	for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++)
		if (fields[i].value < 1 || fields[i].value > fields[i].max)
			return ddp_error_set(error, DDP_ERROR_ARGUMENT,
					     "--init %s: its header states %"
					     PRId32 " %s, not 1 to %" PRIu64
					     "; copy or write the file again",
					     file->path,
					     (int32_t)fields[i].value,
					     fields[i].what, fields[i].max);
	if (file->padded < shape->vocab)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--init %s: "
				     "its header states %" PRIu64 " rows in "
				     "its token table for %" PRIu64 " tokens; "
				     "copy or write the file again", file->path,
				     file->padded, shape->vocab);
	if (shape->width % shape->heads)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--init %s: "
				     "its header states %" PRIu64 " heads, "
				     "which do not divide its width %" PRIu64
				     "; copy or write the file again",
				     file->path, shape->heads, shape->width);
	return 0;
}

/* A layer has 12 width^2 + 13 width parameters, the last norm 2 width. */
static int check_size(const struct llmc *file, uint64_t bytes,
		      struct ddp_error *error)
{
	uint64_t width = file->shape.width;
	uint64_t count = file->shape.layers * (12 * width + 13) * width +
			 (file->padded + file->shape.context + 2) * width;
	uint64_t wanted = WORDS * sizeof(uint32_t) + count * file->size;

	if (bytes == wanted)
		return 0;
	return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--init %s has %"
			     PRIu64 " bytes, but the %" PRIu64 " parameters "
			     "that its header states make %" PRIu64 "; "
			     "copy or write the file again", file->path, bytes,
			     count, wanted);
}

static int read_header(struct llmc *file, uint64_t bytes,
		       struct ddp_error *error)
{
	uint32_t words[WORDS];

	if (fread(words, sizeof(words), 1, file->stream) != 1)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--init %s "
				     "has %" PRIu64 " bytes, fewer than the "
				     "%zu of the header of a model file of "
				     "llm.c; copy or write the file again",
				     file->path, bytes, sizeof(words));
	for (int i = 0; i < WORDS; i++)
		words[i] = le32toh(words[i]);
	if (check_magic(file->path, words[0], words[1], error) < 0)
		return -1;
	file->size = words[1] == VERSION_FP32 ? 4 : 2;
	file->shape = (struct model_shape){
		.context = words[2], .vocab = words[3], .layers = words[4],
		.heads = words[5], .width = words[6]
	};
	file->padded = words[7];
	if (check_fields(file, error) < 0)
		return -1;
	return check_size(file, bytes, error);
}

static int open_llmc(struct llmc *file, const char *path,
		     struct ddp_error *error)
{
	uint64_t bytes;

	file->path = path;
	file->stream = open_file(path, &bytes, error);
	if (!file->stream)
		return -1;
	if (read_header(file, bytes, error) == 0)
		return 0;
	fclose(file->stream);
	return -1;
}

/* Compares the numbers of shape that were given, not 0, with the file's. */
static int compare_shape(const struct llmc *file,
			 const struct model_shape *shape,
			 struct ddp_error *error)
{
	const struct model_shape *found = &file->shape;
	const struct {
		const char *what, *fix;
		uint64_t given, found;
	} fields[] = {
		{ "--layers", "leave --layers out", shape->layers,
		  found->layers },
		{ "--heads", "leave --heads out", shape->heads, found->heads },
		{ "--width", "leave --width out", shape->width, found->width },
		{ "a vocabulary of", "use --tokens and leave --vocab out",
		  shape->vocab, found->vocab }
	};

	for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++)
		if (fields[i].given && fields[i].given != fields[i].found)
			return ddp_error_set(error, DDP_ERROR_ARGUMENT,
					     "%s %" PRIu64 " is not the %"
					     PRIu64 " that --init %s has; %s",
					     fields[i].what, fields[i].given,
					     fields[i].found, file->path,
					     fields[i].fix);
	if (shape->context > found->context)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--context %"
				     PRIu64 " is more than the %" PRIu64
				     " positions of --init %s; choose a "
				     "smaller one", shape->context,
				     found->context, file->path);
	return 0;
}

int llmc_complete_shape(const char *path, struct model_shape *shape,
			struct ddp_error *error)
{
	struct model_shape full;
	struct llmc file;

	if (open_llmc(&file, path, error) < 0)
		return -1;
	fclose(file.stream);
	if (compare_shape(&file, shape, error) < 0)
		return -1;
	full = file.shape;
	if (shape->context)
		full.context = shape->context;
	/* Complete, so that no preset matters; its tensors may be too large. */
	if (gpt_complete_shape(&full, "tiny", error) < 0)
		return -1;
	*shape = full;
	return 0;
}

/* Parameters as they stand in a file. */
union piece {
	uint32_t wide[PIECE];
	uint16_t narrow[PIECE];
};

/* Convert count values; returns how many are numbers, before any other. */
static size_t convert(const union piece *piece, size_t size, size_t count,
		      float *values)
{
	const uint32_t exponent = 0x7f800000;

	for (size_t i = 0; i < count; i++) {
		uint32_t bits = size == sizeof(uint16_t) ?
				(uint32_t)le16toh(piece->narrow[i]) << 16 :
				le32toh(piece->wide[i]);

		if ((bits & exponent) == exponent)
			return i;
		memcpy(&values[i], &bits, sizeof(bits));
	}
	return count;
}

/* Read a tensor of which the file has so many rows; ours may have fewer. */
static int read_tensor(const struct llmc *file, const struct tensor *tensor,
		       uint64_t rows, float *values, struct ddp_error *error)
{
	uint64_t rest = rows * (uint64_t)tensor->columns - tensor->count;
	size_t length, numbers;
	union piece piece;

	for (size_t i = 0; i < tensor->count; i += length) {
		length = tensor->count - i < PIECE ? tensor->count - i : PIECE;
		if (fread(&piece, file->size, length, file->stream) != length)
			return ddp_error_set(error, DDP_ERROR_SYSTEM, "cannot "
					     "read --init %s: %s", file->path,
					     ferror(file->stream) ?
					     strerror(errno) : "it shrank; "
					     "leave the file alone");
		numbers = convert(&piece, file->size, length, values + i);
		if (numbers < length)
			return ddp_error_set(error, DDP_ERROR_ARGUMENT,
					     "--init %s: value %zu of %s, "
					     "counted from 0, is not a number; "
					     "name a file of an earlier step",
					     file->path, i + numbers,
					     tensor->name);
		ddp_heartbeat();
	}
	if (fseeko(file->stream, (off_t)(rest * file->size), SEEK_CUR) == 0)
		return 0;
	return ddp_error_set(error, DDP_ERROR_SYSTEM, "cannot read --init %s: "
			     "%s", file->path, strerror(errno));
}

/* The place in PyTorch's order, by layers, of tensor i of the file. */
static int find_number(const struct gpt *gpt, int i)
{
	int inner = i - GPT_LAYERS;

	if (inner < 0 || inner >= gpt->layers * GPT_PARTS)
		return i;
	return GPT_LAYERS + inner % gpt->layers * GPT_PARTS +
	       inner / gpt->layers;
}

int llmc_read(const char *path, const struct model *model, float *param,
	      struct ddp_error *error)
{
	const struct gpt *gpt = (const struct gpt *)model;
	struct llmc file;
	int result;

	if (open_llmc(&file, path, error) < 0)
		return -1;
	result = compare_shape(&file, &model->shape, error);
	memset(param, 0, model->param_count * sizeof(*param));
	for (int i = 0; i < model->tensor_count && result == 0; i++) {
		int number = find_number(gpt, i);
		const struct tensor *tensor =
			&gpt->tensors[gpt_find_tensor(gpt, number)];
		uint64_t rows = number == GPT_TOKENS ? file.padded :
				number == GPT_POSITIONS ? file.shape.context :
				(uint64_t)tensor->rows;

		result = read_tensor(&file, tensor, rows,
				     param + tensor->offset, error);
	}
	fclose(file.stream);
	return result;
}
