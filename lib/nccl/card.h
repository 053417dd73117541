/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a rank says of itself before communicators are made, as a record for the
 * exchange: short, because every rank reads that of every other. Pure: libc
 * only. (Its host is known to the job; the job's own head of each record has
 * the rank, the round and a checksum.)
 */
#ifndef DDP_NCCL_CARD_H
#define DDP_NCCL_CARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ddp_error.h"

#define DDP_ID_SIZE 128		/* bytes of an ncclUniqueId */
#define DDP_CARD_IDS 3		/* a rank roots one block of each group */

enum ddp_gpu_id_kind {
	DDP_GPU_ID_NONE = 0,
	DDP_GPU_ID_UUID,		/* of the GPU or MIG instance */
	DDP_GPU_ID_BUS		/* domain, bus, device, of the rank's node */
};

struct ddp_card {
	uint32_t asked;		/* the call: an OR of enum ddp_group */
	uint32_t ranks_per_root;
	bool share_gpu;
	enum ddp_error_code code;	/* why this rank cannot take part */
	int32_t native;
	char text[256];		/* without rank and host */
	uint32_t nccl;		/* its version; 0: it needs none */
	enum ddp_gpu_id_kind gpu_kind;
	unsigned char gpu[16];
	uint32_t id_count;	/* of the unique ids that it roots */
	struct ddp_card_id {
		uint32_t group;		/* of enum ddp_group */
		uint32_t root;		/* index among the group's roots */
		unsigned char bytes[DDP_ID_SIZE];
	} ids[DDP_CARD_IDS];
};

#define DDP_CARD_MAX 768	/* bytes of any */

/* Returns the bytes written to buffer, which has room for DDP_CARD_MAX. */
size_t ddp_card_write(const struct ddp_card *card, unsigned char *buffer);

/* Returns 0, or -1 where the bytes are no card of this version of libddp. */
int ddp_card_read(struct ddp_card *card, const unsigned char *bytes,
		  size_t size);

#endif
