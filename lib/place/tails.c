/* SPDX-License-Identifier: BSD-3-Clause */
/* The ends of rows that are alike, formatted once. */
#include "place/tails.h"

bool ddp_tails_repeat(const struct ddp_tails *tails, const struct ddp_row *row,
		      struct ddp_text *out)
{
	uint32_t i = row->local_rank % DDP_TAILS;

	if (!tails->of[i].storage || tails->of[i].storage != row->storage)
		return false;
	ddp_text_repeat(out, tails->of[i].at, tails->of[i].length);
	return true;
}

void ddp_tails_keep(struct ddp_tails *tails, const struct ddp_row *row,
		    const struct ddp_text *out, size_t at)
{
	uint32_t i = row->local_rank % DDP_TAILS;

	tails->of[i].storage = row->storage;
	tails->of[i].at = at;
	tails->of[i].length = out->length - at;
}
