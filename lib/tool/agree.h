/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ranks agree on whether all is well: what fails on one of them fails on
 * all, with one message.
 */
#ifndef DDP_TOOL_AGREE_H
#define DDP_TOOL_AGREE_H

#include <stddef.h>

#include "util/error.h"

enum { TOOL_SETTINGS_SIZE = 2048 };

/* The ranks, and what carries bytes between them: MPI, PMIx or NCCL. */
struct tool_ranks {
	int rank, size;

	/* Rank r's size bytes of mine to all + r * size; collective. */
	void (*exchange)(void *context, const void *mine, void *all,
			 size_t size);

	/* End every rank, with this sentence; does not return. */
	void (*abort)(void *context, const char *sentence);
	void *context;
};

/*
 * Collective: mine is what went wrong on this rank (code DDP_ERROR_NONE:
 * nothing), settings what must be the same on all, as lines, in less than
 * TOOL_SETTINGS_SIZE bytes. Returns 0, or -1 on every rank with the same error.
 * It names the first rank that has one, unless all have the same; or it is
 * DDP_ERROR_PEER and names the first line that is not rank 0's.
 */
int tool_agree(const struct tool_ranks *ranks, const char *settings,
	       const struct ddp_error *mine, struct ddp_error *error);

#endif
