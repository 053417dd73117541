/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A card: what a rank says of itself before communicators are made, as a record
 * for the exchange. It is short, because every rank reads every other's. Rank,
 * round and checksum are in the record's own head, and the job knows the host.
 * Pure: libc only.
 */
#ifndef DDP_NCCL_CARD_H
#define DDP_NCCL_CARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ddp_error.h"

enum {
	DDP_ID_SIZE = 128, /* bytes of an ncclUniqueId */
	DDP_CARD_IDS = 3   /* a rank is a root once in each group at most */
};

enum ddp_gpu_id_kind {
	DDP_GPU_ID_NONE = 0,
	DDP_GPU_ID_UUID,		/* of the GPU or MIG instance */
	DDP_GPU_ID_BUS		/* domain, bus, device, of the rank's node */
};

/* The id that tells a GPU from others. */
struct ddp_gpu_id {
	enum ddp_gpu_id_kind kind;
	unsigned char bytes[16];
};

struct ddp_card {
	uint32_t asked;		/* an OR of enum ddp_group */
	uint32_t ranks_per_root;
	bool share_gpu;
	enum ddp_error_code code;	/* why it cannot take part, or NONE */
	int32_t native;
	char text[256];		/* without rank and host */
	uint32_t nccl;		/* version; 0: it needs no NCCL */
	struct ddp_gpu_id gpu;
	uint32_t id_count;	/* the unique ids that this rank has made */
	struct ddp_card_id {
		uint32_t group;		/* of enum ddp_group */
		uint32_t root;		/* index among the group's roots */
		unsigned char bytes[DDP_ID_SIZE];
	} ids[DDP_CARD_IDS];
};

enum { DDP_CARD_MAX = 768 };	/* bytes of a card */

/* Write a card to buffer, of DDP_CARD_MAX bytes. Returns how many it took. */
size_t ddp_card_write(const struct ddp_card *card, unsigned char *buffer);

/* Returns 0, or -1 if the bytes are no card of this version of libddp. */
int ddp_card_read(struct ddp_card *card, const unsigned char *bytes,
		  size_t size);

#endif
