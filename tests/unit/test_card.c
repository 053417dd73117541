/* SPDX-License-Identifier: BSD-3-Clause */
/* Cards: written and read back, also with damage. */
#include <criterion/criterion.h>

#include <string.h>

#include "nccl/card.h"

static struct ddp_card card(void)
{
	struct ddp_card made = {
		.asked = 1, .ranks_per_root = 128, .nccl = 22809,
		.gpu.kind = DDP_GPU_ID_UUID,
	};

	memset(made.gpu.bytes, 0x10, sizeof(made.gpu.bytes));
	return made;
}

Test(card, keeps_what_is_written)
{
	struct ddp_card made = card(), read;
	unsigned char bytes[DDP_CARD_MAX];
	size_t size, cut;
	uint32_t i;

	made.share_gpu = true;
	made.code = DDP_ERROR_CUDA;
	made.native = -100;
	strcpy(made.text, "no GPU");
	made.id_count = DDP_CARD_IDS;
	for (i = 0; i < DDP_CARD_IDS; i++) {
		made.ids[i].group = 1u << i;
		made.ids[i].root = 1000 + i;
		memset(made.ids[i].bytes, (int)(200 + i), DDP_ID_SIZE);
	}
	size = ddp_card_write(&made, bytes);
	cr_expect_eq(size, 44 + 6 + 3 * 136);
	memset(&read, 0xff, sizeof(read));
	cr_assert_eq(ddp_card_read(&read, bytes, size), 0);
	cr_expect_eq(read.asked, 1);
	cr_expect_eq(read.ranks_per_root, 128);
	cr_expect(read.share_gpu);
	cr_expect_eq(read.code, DDP_ERROR_CUDA);
	cr_expect_eq(read.native, -100);
	cr_expect_str_eq(read.text, "no GPU");
	cr_expect_eq(read.nccl, 22809);
	cr_expect_eq(read.gpu.kind, DDP_GPU_ID_UUID);
	cr_expect_eq(
		memcmp(read.gpu.bytes, made.gpu.bytes, sizeof(made.gpu.bytes)),
		0);
	cr_expect_eq(read.id_count, 3);
	cr_expect_eq(memcmp(read.ids, made.ids, sizeof(made.ids)), 0);
	for (cut = 0; cut < size; cut++)
		cr_assert_eq(ddp_card_read(&read, bytes, cut), -1, "%zu", cut);
	cr_expect_eq(ddp_card_read(&read, bytes, size + 1), -1);
}

/* Whatever byte is wrong, no index that is read may be out of range. */
Test(card, refuses_nonsense)
{
	struct ddp_card made = card(), read;
	unsigned char bytes[DDP_CARD_MAX], bad[DDP_CARD_MAX];
	size_t size = ddp_card_write(&made, bytes), i;
	unsigned int value;

	cr_expect_eq(size, 44);
	for (i = 0; i < size; i++) {
		for (value = 0; value < 256; value++) {
			memcpy(bad, bytes, sizeof(bad));
			bad[i] = (unsigned char)value;
			if (ddp_card_read(&read, bad, size) != 0)
				continue;
			cr_assert_eq(read.id_count, 0);
			cr_assert_str_empty(read.text);
			cr_assert_leq(read.code, DDP_ERROR_CUDA);
		}
	}
	bad[0] = bytes[0] ^ 1;
	cr_expect_eq(ddp_card_read(&read, bad, size), -1);
}

/* The text's length is at byte 24. There is room for 255 bytes and a NUL. */
Test(card, has_a_text_that_fits)
{
	struct ddp_card made = card(), read;
	unsigned char bytes[DDP_CARD_MAX];
	size_t size;

	memset(made.text, 'x', sizeof(made.text) - 1);
	size = ddp_card_write(&made, bytes);
	cr_assert_eq(size, 44 + 255);
	cr_expect_eq(ddp_card_read(&read, bytes, size), 0);
	cr_expect_eq(strlen(read.text), 255);
	bytes[size] = 'x';
	bytes[24] = 0;
	bytes[25] = 1;
	cr_expect_eq(ddp_card_read(&read, bytes, size + 1), -1);
}
