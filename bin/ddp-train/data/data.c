/* SPDX-License-Identifier: BSD-3-Clause */
/* Opens, checks and reads the training data. */
#define _GNU_SOURCE
#include <byteswap.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/data.h"
#include "data/mix.h"
#include "data/path_code.h"
#include "util/error.h"

enum {
	MAGIC = 20240520, VERSION = 1, HEADER_BYTES = 1024,
	MAGIC_WIDE = 20240801,	/* llm.c's files of Llama 3 */
	SUM_PIECE = 4096, SUM_PIECES = 256
};

static const char *const names[] = {
	[DATA_BYTES] = "--data", [DATA_TOKENS] = "--tokens"
};

/* The handler of SIGBUS reads this, as it gets no argument of ours. */
static struct {
	const unsigned char *begin, *end;
	const char *name, *path;
	data_end *end_run;
	void *context;
} mapped;

/* The file has changed since the check, and no error can be returned. */
static void end_run(const char *what)
{
	char text[PATH_MAX + 512];

	snprintf(text, sizeof(text), "%s %s %s", mapped.name, mapped.path,
		 what);
	mapped.end_run(mapped.context, text);
}

static void end_shrunk(void)
{
	end_run("shrank while it was read; leave the file alone during a run");
}

/*
 * Reading a page that the file no longer has raises SIGBUS. It interrupts the
 * reader, so that this may call whatever the reader may call.
 */
static void handle_bus_error(int number, siginfo_t *info, void *context)
{
	const unsigned char *address = info->si_addr;

	(void)context;
	if (address < mapped.begin || address >= mapped.end) {
		signal(number, SIG_DFL);
		return;
	}
	end_shrunk();
}

/* Open path for reading and get its status; -1 with error set. */
static int open_file(const char *path, const char *name, struct stat *status,
		     struct ddp_error *error)
{
	/* O_NONBLOCK: a pipe without a writer would block the job. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0 && errno == ENOENT && strpbrk(path, "*?"))
		ddp_error_set(error, DDP_ERROR_ARGUMENT, "%s %s is a pattern; "
			      "name one file", name, path);
	else if (fd < 0 || fstat(fd, status) < 0)
		ddp_error_set(error, find_path_code(errno), "cannot open %s "
			      "%s: %s; name a file that every node can read",
			      name, path, strerror(errno));
	else if (S_ISDIR(status->st_mode))
		ddp_error_set(error, DDP_ERROR_ARGUMENT, "%s %s is a directory"
			      "; name a file", name, path);
	else if (!S_ISREG(status->st_mode))
		ddp_error_set(error, DDP_ERROR_ARGUMENT, "%s %s is not a "
			      "regular file; copy the data to one", name,
			      path);
	else if (status->st_size == 0)
		ddp_error_set(error, DDP_ERROR_ARGUMENT, "%s %s is empty; name "
			      "a file with data", name, path);
	else
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

static uint32_t read_header_word(const struct data *data, int index)
{
	uint32_t word;

	memcpy(&word, data->bytes + sizeof(word) * (size_t)index,
	       sizeof(word));
	return le32toh(word);
}

/* Checks that the header is right, and that the file has the stated length. */
static int check_header(const struct data *data, struct ddp_error *error)
{
	const char *path = data->path;
	uint32_t magic, version;
	uint64_t wanted;

	if (data->size < HEADER_BYTES)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--tokens %s "
				     "has %zu bytes, fewer than the %d of a "
				     "token file's header; for the bytes of "
				     "any file use --data", path, data->size,
				     HEADER_BYTES);
	magic = read_header_word(data, 0);
	version = read_header_word(data, 1);
	wanted = HEADER_BYTES + UINT64_C(2) * read_header_word(data, 2);
	if (magic == bswap_32(MAGIC))
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--tokens %s "
				     "is a token file in the wrong byte order; "
				     "write its numbers little-endian", path);
	if (magic == MAGIC_WIDE)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--tokens %s "
				     "is a token file of 32-bit tokens, as for "
				     "Llama 3; only 16-bit tokens, as GPT-2's, "
				     "can be read", path);
	if (magic != MAGIC)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--tokens %s "
				     "begins with %" PRIu32 ", not with %d as "
				     "a token file does; for the bytes of any "
				     "file use --data", path, magic, MAGIC);
	if (version != VERSION)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--tokens %s "
				     "is a token file of version %" PRIu32 "; "
				     "only version %d, of 16-bit tokens, can "
				     "be read", path, version, VERSION);
	if (data->size != wanted)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--tokens %s "
				     "has %zu bytes, but %" PRIu32 " tokens, "
				     "which its header counts, make %" PRIu64
				     "; copy or write the file again", path,
				     data->size, read_header_word(data, 2),
				     wanted);
	return 0;
}

static int check_data(struct data *data, uint64_t min_tokens,
		      struct ddp_error *error)
{
	data->tokens = data->size;
	if (data->format == DATA_TOKENS) {
		if (check_header(data, error) < 0)
			return -1;
		data->tokens = (data->size - HEADER_BYTES) / 2;
	}
	if (data->tokens >= min_tokens)
		return 0;
	return ddp_error_set(error, DDP_ERROR_ARGUMENT, "%s %s has %" PRIu64
			     " tokens, but --context %" PRIu64 " needs at "
			     "least %" PRIu64 "; name a larger file or choose "
			     "a smaller --context", names[data->format],
			     data->path, data->tokens, min_tokens - 1,
			     min_tokens);
}

/* Takes a read that fails from now on as a sign that the file has shrunk. */
static void watch_mapping(const struct data *data, data_end *end, void *context)
{
	struct sigaction action = {
		.sa_sigaction = handle_bus_error, .sa_flags = SA_SIGINFO
	};

	mapped.begin = data->bytes;
	mapped.end = data->bytes + data->size;
	mapped.name = names[data->format];
	mapped.path = data->path;
	mapped.end_run = end;
	mapped.context = context;
	sigaction(SIGBUS, &action, NULL);
}

int data_open(struct data *data, const char *path, enum data_format format,
	      uint64_t min_tokens, data_end *end, void *context,
	      struct ddp_error *error)
{
	struct data opened = { .format = format, .path = path };
	struct stat status;
	void *bytes;
	int fd = open_file(path, names[format], &status, error);

	if (fd < 0)
		return -1;
	opened.size = (size_t)status.st_size;
	opened.device = status.st_dev;
	opened.inode = status.st_ino;
	bytes = mmap(NULL, opened.size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (bytes == MAP_FAILED)
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "cannot map %s "
				     "%s: %s; raise the limit on address "
				     "space (ulimit -v)", names[format], path,
				     strerror(errno));
	opened.bytes = bytes;
	watch_mapping(&opened, end, context);
	if (check_data(&opened, min_tokens, error) < 0) {
		data_close(&opened);
		return -1;
	}
	*data = opened;
	return 0;
}

static uint16_t read_token(const struct data *data, uint64_t index)
{
	uint16_t token;

	memcpy(&token, data->bytes + HEADER_BYTES + 2 * index, sizeof(token));
	return le16toh(token);
}

/* Look at all: with an early exit the compiler could not use vectors. */
static uint16_t find_largest_token(const struct data *data, uint64_t begin,
				   uint64_t end)
{
	uint16_t largest = 0;

	for (uint64_t i = begin; i < end; i++) {
		uint16_t token = read_token(data, i);

		largest = token > largest ? token : largest;
	}
	return largest;
}

int data_check(struct data *data, uint64_t vocab, int part, int parts,
	       struct ddp_error *error)
{
	uint64_t begin = data->tokens * (uint64_t)part / (uint64_t)parts;
	uint64_t end = data->tokens * ((uint64_t)part + 1) / (uint64_t)parts;

	/* A byte is always below 256, the vocabulary of bytes. */
	if (data->format == DATA_BYTES)
		return 0;
	data->vocab = vocab;
	if (begin == end || find_largest_token(data, begin, end) < vocab)
		return 0;
	while (read_token(data, begin) < vocab)
		begin++;
	return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--tokens %s: token %"
			     PRIu64 ", counted from 0, is %u, past the "
			     "vocabulary of --vocab %" PRIu64 "; give the "
			     "--vocab that it was written with", data->path,
			     begin, (unsigned)read_token(data, begin), vocab);
}

void data_read(const struct data *data, uint64_t first, size_t count,
	       int32_t *tokens)
{
	if (data->format == DATA_BYTES) {
		for (size_t i = 0; i < count; i++)
			tokens[i] = data->bytes[first + i];
		return;
	}
	for (size_t i = 0; i < count; i++) {
		tokens[i] = read_token(data, first + i);
		/* It will be an index, and another rank checked it. */
		if ((uint64_t)tokens[i] >= data->vocab)
			end_run("has a token past the vocabulary that was not "
				"there when it was checked: the file was "
				"changed, or this node's differs from the "
				"other nodes'; give every node the same file "
				"and leave it alone during a run");
	}
}

uint64_t data_hash(const struct data *data)
{
	size_t pieces = (data->size + SUM_PIECE - 1) / SUM_PIECE;
	size_t most = pieces < SUM_PIECES ? pieces : SUM_PIECES;
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < most; i++) {
		/* The last piece is that of the end of the file. */
		size_t piece = most == 1 ? 0 : i * (pieces - 1) / (most - 1);
		size_t begin = piece * SUM_PIECE;
		size_t end = data->size - begin < SUM_PIECE ? data->size :
							begin + SUM_PIECE;

		for (; begin < end; begin++)
			hash = (hash ^ data->bytes[begin]) *
			       UINT64_C(0x100000001b3);
	}
	return hash;
}

static uint64_t mix_word(const struct data *data, uint64_t index, size_t bytes)
{
	uint64_t word = 0;

	memcpy(&word, data->bytes + sizeof(word) * index, bytes);
	return mix_bits(le64toh(word) + MIX_GOLDEN * index);
}

/* Values begin .. end - 1 of 8 bytes: pages that count as this rank's memory */
static void forget_words(const struct data *data, uint64_t begin, uint64_t end)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t from = (uintptr_t)data->bytes + begin * 8;
	uintptr_t to = (uintptr_t)data->bytes + end * 8;

	from -= from % page;
	to -= to % page;
	if (to > from)
		madvise((void *)from, to - from, MADV_DONTNEED);
}

uint64_t data_sum(const struct data *data, int part, int parts)
{
	size_t whole = data->size / 8, rest = data->size % 8;
	uint64_t begin = whole * (uint64_t)part / (uint64_t)parts;
	uint64_t end = whole * ((uint64_t)part + 1) / (uint64_t)parts;
	uint64_t sum = 0;

	for (uint64_t i = begin; i < end; i++)
		sum += mix_word(data, i, 8);
	if (part == parts - 1 && rest)
		sum += mix_word(data, whole, rest);
	forget_words(data, begin, end);
	return sum;
}

/* Returns true if path names the open file, with its status now. */
static bool look_at(const struct data *data, const char *path,
		    struct stat *status)
{
	return data->bytes && stat(path, status) == 0 &&
	       status->st_dev == data->device &&
	       status->st_ino == data->inode;
}

void data_check_size(const struct data *data)
{
	struct stat status;

	if (look_at(data, data->path, &status) &&
	    (size_t)status.st_size < data->size)
		end_shrunk();
}

bool data_is_path(const struct data *data, const char *path)
{
	struct stat status;

	return look_at(data, path, &status);
}

void data_close(struct data *data)
{
	if (!data->bytes)
		return;
	signal(SIGBUS, SIG_DFL);
	munmap((void *)data->bytes, data->size);
	data->bytes = NULL;
}
