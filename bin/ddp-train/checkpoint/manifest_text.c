/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes and reads the manifest of a checkpoint, and its checksums. */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <gcrypt.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint/manifest_text.h"
#include "config.h"
#include "util/error.h"
#include "util/file.h"
#include "util/text.h"

/* ---- CRC-32 */

struct crc {
	gcry_md_hd_t handle;
};

/*
 * libgcrypt must be asked for its version once before it is used. This is no
 * cryptography, so it may run where only approved kinds of that may.
 */
static void prepare_gcrypt(void)
{
	if (gcry_control(GCRYCTL_INITIALIZATION_FINISHED_P))
		return;
#if GCRYPT_VERSION_NUMBER >= 0x010a00
	gcry_control(GCRYCTL_NO_FIPS_MODE, 0);
#endif
	gcry_check_version(NULL);
	gcry_control(GCRYCTL_DISABLE_SECMEM, 0);
	gcry_control(GCRYCTL_INITIALIZATION_FINISHED, 0);
}

struct crc *crc_create(struct ddp_error *error)
{
	struct crc *crc = malloc(sizeof(*crc));
	gcry_error_t cause = 0;

	prepare_gcrypt();
	if (crc)
		cause = gcry_md_open(&crc->handle, GCRY_MD_CRC32, 0);
	if (crc && !cause)
		return crc;
	ddp_error_set(error, DDP_ERROR_SYSTEM, "no checksum for checkpoints: "
		      "%s; see whether libgcrypt has CRC32 here",
		      crc ? gcry_strerror(cause) : "no memory");
	free(crc);
	return NULL;
}

void crc_reset(struct crc *crc)
{
	gcry_md_reset(crc->handle);
}

void crc_add(struct crc *crc, const void *bytes, size_t count)
{
	gcry_md_write(crc->handle, bytes, count);
}

uint32_t crc_read(struct crc *crc)
{
	const unsigned char *sum = gcry_md_read(crc->handle, GCRY_MD_CRC32);
	uint32_t value = (uint32_t)sum[0] << 24 | (uint32_t)sum[1] << 16 |
			 (uint32_t)sum[2] << 8 | sum[3];

	crc_reset(crc);
	return value;
}

void crc_destroy(struct crc *crc)
{
	if (crc)
		gcry_md_close(crc->handle);
	free(crc);
}

/* ---- the manifest */

#define TITLE "ddp-train checkpoint, version "

/* Bytes of all states of so many values can be counted. */
static const size_t most_values = SIZE_MAX / (sizeof(float) * MANIFEST_STATES);

size_t manifest_count_bytes(const struct manifest *manifest,
			    const struct manifest_shard *shard)
{
	const struct range *ranges = &manifest->ranges[shard->first];
	size_t values = 0;

	for (int i = 0; i < shard->count; i++)
		values += ranges[i].end - ranges[i].begin;
	return values * sizeof(float) * (size_t)manifest->state_count;
}

int manifest_compare_size(const struct manifest *manifest,
			  const struct manifest_shard *shard, size_t size,
			  struct ddp_error *error)
{
	size_t bytes = manifest_count_bytes(manifest, shard);

	if (size == bytes)
		return 0;
	return ddp_error_set(error, DDP_ERROR_ARGUMENT, "%s has %zu bytes in "
			     "place of %zu", shard->file, size, bytes);
}

static void add_shards(struct ddp_text *text, const struct manifest *manifest)
{
	for (int i = 0; i < manifest->shard_count; i++) {
		const struct manifest_shard *shard = &manifest->shards[i];
		const struct range *range = &manifest->ranges[shard->first];

		ddp_text_add(text, "shard %s %08" PRIx32 "\n", shard->file,
			     shard->crc);
		for (int j = 0; j < shard->count; j++)
			ddp_text_add(text, "range %zu %zu\n", range[j].begin,
				     range[j].end);
	}
}

/* Adds each line of `lines`, after a word. */
static void add_lines(struct ddp_text *text, const char *word,
		      const char *lines)
{
	while (*lines) {
		size_t length = strcspn(lines, "\n");

		ddp_text_add(text, "%s %.*s\n", word, (int)length, lines);
		lines += length + (lines[length] == '\n');
	}
}

char *manifest_format(const struct manifest *manifest)
{
	struct ddp_text text = { 0 };
	struct crc *crc = crc_create(NULL);

	ddp_text_add(&text, TITLE "%d\nwritten-by ddp-train " DDP_VERSION "\n"
		     "step %" PRIu64 "\nupdates %" PRIu64 "\nbad-steps %"
		     PRIu64 "\nseconds %.9g\nvalues %zu\n",
		     MANIFEST_VERSION, manifest->step, manifest->updates,
		     manifest->bad_steps, manifest->seconds,
		     manifest->values);
	if (manifest->loss_scale > 0)
		ddp_text_add(&text, "loss-scale %.17g\ngood-steps %" PRIu64
			     "\n", manifest->loss_scale,
			     manifest->good_steps);
	if (manifest->data)
		ddp_text_add(&text, "data %s\n", manifest->data);
	if (manifest->data_sum)
		ddp_text_add(&text, "data-sum %s\n", manifest->data_sum);
	for (int i = 0; i < manifest->state_count; i++)
		ddp_text_add(&text, "state %s\n", manifest->states[i]);
	add_lines(&text, "option", manifest->options);
	add_lines(&text, "parameter", manifest->parameters);
	add_shards(&text, manifest);
	if (crc && !text.failed) {
		crc_add(crc, text.data, text.length);
		ddp_text_add(&text, "crc %08" PRIx32 "\n", crc_read(crc));
	}
	text.failed = text.failed || !crc;
	crc_destroy(crc);
	return ddp_text_finish(&text);
}

/* Sets error to what is wrong with the text. Returns -1. */
static int refuse(struct ddp_error *error, const char *what)
{
	return ddp_error_set(error, DDP_ERROR_ARGUMENT, "%s", what);
}

int manifest_open_file(const char *path, const char *name, size_t *size,
		       struct ddp_error *error)
{
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	bool broken = errno == ENOENT || errno == ELOOP || errno == ENXIO;
	struct stat status;

	if (fd >= 0 && fstat(fd, &status) == 0) {
		*size = (size_t)status.st_size;
		if (S_ISREG(status.st_mode))
			return fd;
		ddp_error_set(error, DDP_ERROR_ARGUMENT, "%s is not a file",
			      name);
	} else {
		ddp_error_set(error, fd < 0 && broken ? DDP_ERROR_ARGUMENT :
			      DDP_ERROR_SYSTEM, "%s: %s", name,
			      strerror(errno));
	}
	if (fd >= 0)
		close(fd);
	return -1;
}

static char *read_file(const char *path, struct ddp_error *error)
{
	char *whole;
	size_t size;
	int fd = manifest_open_file(path, "manifest", &size, error);

	if (fd < 0)
		return NULL;
	whole = ddp_file_read_fd(fd, MANIFEST_BYTES, NULL);
	if (!whole && errno == EFBIG)
		refuse(error, "its manifest has more than 16 MiB");
	else if (!whole)
		ddp_error_set(error, DDP_ERROR_SYSTEM, "manifest: %s",
			      strerror(errno));
	close(fd);
	return whole;
}

/* Checks the version first: the lines of another one may differ. */
static int check_title(const char *text, struct ddp_error *error)
{
	size_t length = strlen(TITLE);
	long version;
	char *end;

	if (strncmp(text, TITLE, length) != 0)
		return refuse(error, "its manifest is not one of ddp-train");
	version = strtol(text + length, &end, 10);
	if (!isdigit((unsigned char)text[length]) || *end != '\n')
		return refuse(error, "its manifest is not one of ddp-train");
	if (version == MANIFEST_VERSION)
		return 0;
	return ddp_error_set(error, DDP_ERROR_PEER, "it is of version %ld, "
			     "and this ddp-train reads version %d", version,
			     MANIFEST_VERSION);
}

/* Checks the last line, a checksum, against those before, and cuts it off. */
static int check_crc(char *text, struct ddp_error *error)
{
	char *last = strrchr(text, '\n'), wanted[16];
	struct crc *crc;

	if (!last || last[1])
		return refuse(error, "its manifest ends early");
	*last = '\0';
	last = strrchr(text, '\n');
	if (!last || strncmp(last + 1, "crc ", 4) != 0)
		return refuse(error, "its manifest ends early");
	crc = crc_create(error);
	if (!crc)
		return -1;
	crc_add(crc, text, (size_t)(last + 1 - text));
	snprintf(wanted, sizeof(wanted), "%08" PRIx32, crc_read(crc));
	crc_destroy(crc);
	if (strcmp(last + 5, wanted) != 0)
		return refuse(error, "its manifest has another checksum than "
			      "it says");
	last[1] = '\0';
	return 0;
}

/* Reads digits alone, up to `end`; *text moves past that. */
static bool read_digits(const char **text, char end, uint64_t *number)
{
	size_t length = strspn(*text, "0123456789");

	if (length == 0 || (*text)[length] != end)
		return false;
	errno = 0;
	*number = strtoull(*text, NULL, 10);
	*text += length + 1;
	return errno == 0;
}

static bool read_whole(const char *text, uint64_t *number)
{
	return read_digits(&text, '\0', number);
}

/* Reads a number of values, or the number of one. */
static bool read_size(const char **text, char end, size_t *size)
{
	uint64_t number;

	if (!read_digits(text, end, &number) || number > most_values)
		return false;
	*size = (size_t)number;
	return true;
}

static bool read_real(const char *text, double *number)
{
	char *end;

	if (!isdigit((unsigned char)*text))
		return false;
	*number = strtod(text, &end);
	return !*end && isfinite(*number);
}

static bool add_shard(struct manifest *manifest, const char *value)
{
	struct manifest_shard *shards;
	struct manifest_shard shard = { .first = manifest->range_count };
	size_t count = (size_t)manifest->shard_count;
	size_t length = strcspn(value, " /");
	const char *crc = value + length + 1;

	if (value[length] != ' ' || length == 0 || length >= MANIFEST_FILE ||
	    strlen(crc) != 8 || strspn(crc, "0123456789abcdef") != 8)
		return false;
	memcpy(shard.file, value, length);
	shard.crc = (uint32_t)strtoul(crc, NULL, 16);
	shards = realloc(manifest->shards, (count + 1) * sizeof(*shards));
	if (!shards)
		return false;
	shards[count] = shard;
	manifest->shards = shards;
	manifest->shard_count++;
	return true;
}

/* Adds a range to the last shard. */
static bool add_range(struct manifest *manifest, const char *value)
{
	size_t count = (size_t)manifest->range_count;
	struct range *ranges, range;

	if (manifest->shard_count == 0 ||
	    !read_size(&value, ' ', &range.begin) ||
	    !read_size(&value, '\0', &range.end) || range.begin >= range.end)
		return false;
	ranges = realloc(manifest->ranges, (count + 1) * sizeof(*ranges));
	if (!ranges)
		return false;
	ranges[count] = range;
	manifest->ranges = ranges;
	manifest->range_count++;
	manifest->shards[manifest->shard_count - 1].count++;
	return true;
}

/* Reads a line; value is cut out of the text. Returns false if malformed. */
static bool read_line(struct manifest *manifest, const char *name,
		      const char *value)
{
	if (strcmp(name, "step") == 0)
		return read_whole(value, &manifest->step);
	if (strcmp(name, "updates") == 0)
		return read_whole(value, &manifest->updates);
	if (strcmp(name, "bad-steps") == 0)
		return read_whole(value, &manifest->bad_steps);
	if (strcmp(name, "loss-scale") == 0)
		return read_real(value, &manifest->loss_scale) &&
		       manifest->loss_scale > 0;
	if (strcmp(name, "good-steps") == 0)
		return read_whole(value, &manifest->good_steps);
	if (strcmp(name, "seconds") == 0)
		return read_real(value, &manifest->seconds);
	if (strcmp(name, "values") == 0)
		return read_size(&value, '\0', &manifest->values);
	if (strcmp(name, "data") == 0)
		manifest->data = value;
	if (strcmp(name, "data-sum") == 0)
		manifest->data_sum = value;
	if (strcmp(name, "shard") == 0)
		return add_shard(manifest, value);
	if (strcmp(name, "range") == 0)
		return add_range(manifest, value);
	if (strcmp(name, "state") != 0)
		return true;
	if (manifest->state_count == MANIFEST_STATES)
		return false;
	manifest->states[manifest->state_count++] = value;
	return true;
}

/*
 * Cut the text into lines. The values of "option" and "parameter" are joined
 * again, as they were. errno says whether memory was short.
 */
static int read_lines(struct manifest *manifest, struct ddp_error *error)
{
	struct ddp_text options = { 0 }, parameters = { 0 };
	bool good = true;
	char *line, *value, *rest = manifest->text;

	errno = 0;
	while (good && (line = strsep(&rest, "\n"))) {
		value = strchr(line, ' ');
		if (!value)
			continue;
		*value++ = '\0';
		if (strcmp(line, "option") == 0)
			ddp_text_add(&options, "%s\n", value);
		else if (strcmp(line, "parameter") == 0)
			ddp_text_add(&parameters, "%s\n", value);
		else
			good = read_line(manifest, line, value);
	}
	manifest->option_text = ddp_text_finish(&options);
	manifest->options = manifest->option_text;
	manifest->parameter_text = ddp_text_finish(&parameters);
	manifest->parameters = manifest->parameter_text;
	if (!manifest->options || !manifest->parameters)
		errno = ENOMEM;
	if (errno == ENOMEM)
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "no memory for "
				     "its manifest; allow more (ulimit -v)");
	if (!good || !manifest->range_count)
		return refuse(error, "its manifest has a line that ddp-train "
			      "does not write, or lacks one");
	return 0;
}

int manifest_parse(struct manifest *manifest, char *text,
		   struct ddp_error *error)
{
	struct manifest new = { .text = text };

	if (check_title(text, error) < 0 || check_crc(text, error) < 0 ||
	    read_lines(&new, error) < 0) {
		manifest_clear(&new);
		return -1;
	}
	*manifest = new;
	return 0;
}

int manifest_read(struct manifest *manifest, const char *path,
		  struct ddp_error *error)
{
	char *text = read_file(path, error);

	return text ? manifest_parse(manifest, text, error) : -1;
}

void manifest_clear(struct manifest *manifest)
{
	free(manifest->text);
	free(manifest->option_text);
	free(manifest->parameter_text);
	free(manifest->compared);
	free(manifest->shards);
	free(manifest->ranges);
	free(manifest->passed);
	*manifest = (struct manifest){ 0 };
}
