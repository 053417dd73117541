/* SPDX-License-Identifier: BSD-3-Clause */
/* Cards as bytes. */
#include "nccl/card.h"

#include <string.h>

enum {
	CARD_MAGIC = 0x4e504444,	/* "DDPN" */
	CARD_VERSION = 1
};

/* A card begins with this, without padding; text and ids follow. */
struct head {
	uint32_t magic;
	uint16_t version;
	uint8_t code;
	uint8_t share_gpu;
	uint32_t asked;
	uint32_t ranks_per_root;
	int32_t native;
	uint32_t nccl;
	uint16_t text_size;
	uint8_t gpu_kind;
	uint8_t id_count;
	unsigned char gpu[16];
};

_Static_assert(sizeof(struct head) == 44, "a card's head has padding");
_Static_assert(sizeof(struct ddp_card_id) == DDP_ID_SIZE + 8,
	       "an id has padding");
_Static_assert(sizeof(struct head) + sizeof(((struct ddp_card *)0)->text) +
	       sizeof(((struct ddp_card *)0)->ids) <= DDP_CARD_MAX,
	       "a card is longer than DDP_CARD_MAX");

size_t ddp_card_write(const struct ddp_card *card, unsigned char *buffer)
{
	struct head head = {
		.magic = CARD_MAGIC, .version = CARD_VERSION,
		.code = (uint8_t)card->code, .share_gpu = card->share_gpu,
		.asked = card->asked, .ranks_per_root = card->ranks_per_root,
		.native = card->native, .nccl = card->nccl,
		.text_size = (uint16_t)strlen(card->text),
		.gpu_kind = (uint8_t)card->gpu.kind,
		.id_count = (uint8_t)card->id_count,
	};
	unsigned char *end = buffer + sizeof(head);
	size_t ids = card->id_count * sizeof(card->ids[0]);

	memcpy(head.gpu, card->gpu.bytes, sizeof(head.gpu));
	memcpy(buffer, &head, sizeof(head));
	memcpy(end, card->text, head.text_size);
	end += head.text_size;
	memcpy(end, card->ids, ids);
	return (size_t)(end + ids - buffer);
}

static bool is_sound(const struct head *head, size_t size)
{
	return head->magic == CARD_MAGIC && head->version == CARD_VERSION &&
		head->code <= DDP_ERROR_CUDA &&
		head->gpu_kind <= DDP_GPU_ID_BUS &&
		head->id_count <= DDP_CARD_IDS &&
		head->text_size < sizeof(((struct ddp_card *)0)->text) &&
		size == sizeof(*head) + head->text_size +
			head->id_count * sizeof(struct ddp_card_id);
}

int ddp_card_read(struct ddp_card *card, const unsigned char *bytes,
		  size_t size)
{
	struct head head;

	if (size < sizeof(head))
		return -1;
	memcpy(&head, bytes, sizeof(head));
	if (!is_sound(&head, size))
		return -1;
	card->asked = head.asked;
	card->ranks_per_root = head.ranks_per_root;
	card->share_gpu = head.share_gpu != 0;
	card->code = (enum ddp_error_code)head.code;
	card->native = head.native;
	card->nccl = head.nccl;
	card->gpu.kind = (enum ddp_gpu_id_kind)head.gpu_kind;
	card->id_count = head.id_count;
	memcpy(card->gpu.bytes, head.gpu, sizeof(card->gpu.bytes));
	bytes += sizeof(head);
	memcpy(card->text, bytes, head.text_size);
	card->text[head.text_size] = '\0';
	memcpy(card->ids, bytes + head.text_size,
	       head.id_count * sizeof(card->ids[0]));
	return 0;
}
