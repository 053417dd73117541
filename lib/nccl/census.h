/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is known before NCCL is called: the cards by which ranks say what they
 * ask for, the census, which tells whether they can form communicators, and the
 * roster, which says who is in one. Pure: libc only.
 */
#ifndef DDP_NCCL_CENSUS_H
#define DDP_NCCL_CENSUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ddp_error.h"

/*
 * A card: what a rank says of itself before communicators are made, as a record
 * for the exchange. It is short, because every rank reads every other's. Rank,
 * round and checksum are in the record's own head, and the job knows the host.
 */
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

/* ---- the census */

/* The hosts and nodes of the ranks. */
struct ddp_places {
	const void *of;
	const char *(*host)(const void *of, uint32_t rank);
	uint32_t (*node)(const void *of, uint32_t rank);
};

/*
 * Every rank adds the same cards, and so comes to the same verdict in the same
 * words.
 */
struct ddp_census;

/* A census of size ranks, of which it keeps 32 bytes each. The caller destroys
 * it. NULL if there is no memory. */
struct ddp_census *ddp_census_create(uint32_t size,
				     const struct ddp_places *places,
				     struct ddp_error *error);
void ddp_census_destroy(struct ddp_census *census);

/*
 * Add the cards of rank 0, 1, ... in this order. card NULL: what the rank
 * published was no card. Ranks of different teams are in no communicator
 * together, and may be on one GPU.
 */
void ddp_census_add(struct ddp_census *census, uint32_t team,
		    const struct ddp_card *card);

/*
 * The verdict, when all have been added. 0: go on. -1: error has a sentence
 * that is the same on every rank. If ranks could not take part, its code is
 * that of mine, this rank's card, or DDP_ERROR_PEER if mine has none.
 */
int ddp_census_check(struct ddp_census *census, const struct ddp_card *mine,
		     struct ddp_error *error);

/* ---- the roster: a root makes a unique id and listens while others connect */

#define DDP_ONE_ROOT UINT32_MAX		/* ranks_per_root for one root only */

/* A communicator, as one of its ranks needs to know it. */
struct ddp_roster {
	uint32_t size;		/* ranks; 0: this rank is in none */
	uint32_t rank;		/* of this one */
	uint32_t root_count;
	uint32_t *roots;	/* [root_count] ranks in the job: the first of
				 * each block of ranks, which NCCL sends to the
				 * unique id of the same index */
};

/*
 * The communicator of rank me: the ranks, of the job's count, whose color is
 * the same as its own, ordered by key, then by rank in the job. color NULL: all
 * are the same; a color of UINT32_MAX is in none. key NULL: ordered by rank. A
 * root serves at most ranks_per_root ranks, at least 1. The caller destroys the
 * roster. Returns 0, or -1 if there is no memory.
 */
int ddp_roster_create(struct ddp_roster *roster, uint32_t count,
		      const uint32_t *color, const uint32_t *key, uint32_t me,
		      uint32_t ranks_per_root, struct ddp_error *error);
void ddp_roster_destroy(struct ddp_roster *roster);

/*
 * The first of the ranks that ncclCommInitRankScalable sends to a root, of size
 * ranks in all (bootstrap.cc, firstRankFromRoot, unchanged since NCCL 2.23):
 * the first size % roots blocks hold one rank more than the others.
 */
uint32_t ddp_roster_get_first(uint32_t root, uint32_t roots, uint32_t size);

#endif
