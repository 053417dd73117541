/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzzes the texts that count GPUs. The input is a byte, g for --gres or
 * another for the number of nodes, and the text.
 */
#include "fuzz.h"
#include "request/gres.h"

enum { UNTOUCHED = 99999 };

typedef int count_gpus(const char *text, uint32_t *gpus,
		       struct ddp_error *error);

/* Returns whether the text was understood. */
static int check_count(count_gpus *count, const char *text, uint32_t *gpus)
{
	struct ddp_error error = { 0 };

	*gpus = UNTOUCHED;
	if (count(text, gpus, &error) == 0) {
		CHECK(*gpus <= DDP_GRES_MAX);
		return 1;
	}
	fuzz_check_error(&error, DDP_ERROR_ARGUMENT);
	CHECK(*gpus == UNTOUCHED);
	return 0;
}

/* What each node gets adds up to the whole. */
static void check_divide(const char *text, uint32_t nodes)
{
	struct ddp_error error = { 0 };
	uint32_t whole, part;
	char share[64];
	int counts = check_count(ddp_gpus_count, text, &whole);

	if (ddp_gpus_divide(text, nodes, share, sizeof(share), &error)) {
		fuzz_check_error(&error, DDP_ERROR_ARGUMENT);
		CHECK(*share == '\0');
		return;
	}
	CHECK(counts && check_count(ddp_gpus_count, share, &part));
	CHECK(part * nodes == whole);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	uint32_t gpus;
	char *text;

	if (size == 0)
		return 0;
	text = fuzz_text(data + 1, size - 1);
	if (*data == 'g')
		check_count(ddp_gres_count_gpus, text, &gpus);
	else
		check_divide(text, *data % 8 + 1u);
	free(text);
	return 0;
}
