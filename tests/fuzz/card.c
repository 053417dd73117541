/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzzes the cards that ranks exchange. The input is the bytes of a card. */
#include "fuzz.h"
#include "nccl/census.h"

static void check_card(const struct ddp_card *card)
{
	CHECK(card->code <= DDP_ERROR_CUDA);
	CHECK(card->gpu.kind <= DDP_GPU_ID_BUS);
	CHECK(card->id_count <= DDP_CARD_IDS);
	CHECK(memchr(card->text, '\0', sizeof(card->text)) != NULL);
}

static void check_equal(const struct ddp_card *a, const struct ddp_card *b)
{
	CHECK(a->asked == b->asked && a->ranks_per_root == b->ranks_per_root);
	CHECK(a->share_gpu == b->share_gpu && a->code == b->code);
	CHECK(a->native == b->native && strcmp(a->text, b->text) == 0);
	CHECK(a->nccl == b->nccl && a->gpu.kind == b->gpu.kind);
	CHECK(memcmp(a->gpu.bytes, b->gpu.bytes, sizeof(a->gpu.bytes)) == 0);
	CHECK(a->id_count == b->id_count);
	CHECK(memcmp(a->ids, b->ids, a->id_count * sizeof(a->ids[0])) == 0);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	unsigned char bytes[DDP_CARD_MAX];
	struct ddp_card card, again;
	size_t length;

	memset(&card, 0xa5, sizeof(card));
	if (ddp_card_read(&card, data, size))
		return 0;
	check_card(&card);
	length = ddp_card_write(&card, bytes);
	CHECK(length <= sizeof(bytes) && length <= size);
	CHECK(ddp_card_read(&again, bytes, length) == 0);
	check_equal(&card, &again);
	CHECK(ddp_card_read(&again, bytes, length - 1) < 0);
	return 0;
}
