/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzzes the manifest of a checkpoint. The input is a byte, odd: what follows
 * gets a title and the checksum that it should have; even: it is all there is.
 */
#include <inttypes.h>

#include "checkpoint/manifest_text.h"
#include "fuzz.h"

enum { FILE_MAX = 1024 };

#define TITLE "ddp-train checkpoint, version 2\n"

static char *make_text(const uint8_t *data, size_t size, int whole)
{
	char *text = calloc(1, FILE_MAX + size);
	struct crc *crc = crc_create(NULL);
	size_t length = 0;

	CHECK(text && crc);
	if (!whole)
		length = (size_t)sprintf(text, TITLE);
	memcpy(text + length, data, size);
	length = strlen(text);
	if (!whole) {
		crc_add(crc, text, length);
		sprintf(text + length, "crc %08" PRIx32 "\n", crc_read(crc));
	}
	crc_destroy(crc);
	return text;
}

/* What is written of a manifest says the same as what was read. */
static void check_again(const struct manifest *manifest)
{
	struct manifest again = { 0 };
	struct ddp_error error = { 0 };
	char *text = manifest_format(manifest);

	CHECK(text);
	CHECK(manifest_parse(&again, text, &error) == 0);
	CHECK(again.step == manifest->step);
	CHECK(again.updates == manifest->updates);
	CHECK(again.values == manifest->values);
	CHECK(again.state_count == manifest->state_count);
	CHECK(again.shard_count == manifest->shard_count);
	CHECK(strcmp(again.options, manifest->options) == 0);
	CHECK(strcmp(again.parameters, manifest->parameters) == 0);
	for (int i = 0; i < again.shard_count; i++) {
		CHECK(again.shards[i].first == manifest->shards[i].first);
		CHECK(again.shards[i].count == manifest->shards[i].count);
		CHECK(again.shards[i].crc == manifest->shards[i].crc);
		CHECK(!strchr(again.shards[i].file, '/'));
	}
	CHECK(again.range_count == manifest->range_count);
	for (int i = 0; i < again.range_count; i++) {
		CHECK(again.ranges[i].begin == manifest->ranges[i].begin);
		CHECK(again.ranges[i].end == manifest->ranges[i].end);
	}
	manifest_clear(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct manifest manifest = { 0 };
	struct ddp_error error = { 0 };

	if (size == 0)
		return 0;
	if (manifest_parse(&manifest, make_text(data + 1, size - 1,
						data[0] % 2 == 0), &error)) {
		/* A newer ddp-train may read it: it is not broken. */
		fuzz_check_error(&error, strstr(error.text, "it is of version") ?
				 DDP_ERROR_PEER : DDP_ERROR_ARGUMENT);
		CHECK(!manifest.text);
		return 0;
	}
	check_again(&manifest);
	manifest_clear(&manifest);
	return 0;
}
