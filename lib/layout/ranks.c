/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads lists of ranks. */
#define _GNU_SOURCE
#include "layout/ranks.h"

#include "util/scan.h"

/*
 * Read "A" or "A-B" and the comma behind it. Returns 1; 0 after the last; -1
 * where *at is no rank.
 */
static int next(const char **at, uint64_t *first, uint64_t *last)
{
	if (ddp_scan_number(at, 0, UINT32_MAX, first) < 0)
		return -1;
	*last = *first;
	if (**at == '-') {
		++*at;
		if (ddp_scan_number(at, *first, UINT32_MAX, last) < 0)
			return -1;
	}
	if (**at == ',') {
		++*at;
		return 1;
	}
	return **at ? -1 : 0;
}

int ddp_ranks_check(const char *what, const char *list, uint32_t world_size,
		    struct ddp_error *error)
{
	uint64_t first, last;
	const char *at = list;
	int more;

	do {
		more = next(&at, &first, &last);
		if (more < 0)
			return ddp_scan_error(error, what, list, at,
					      "ranks, as in 0,3-5");
		if (world_size > 0 && last >= world_size)
			return ddp_error_set(error, DDP_ERROR_ARGUMENT,
					     "%s=%.64s: the ranks of this step "
					     "are 0 to %u, and those from %u "
					     "on are left out", what, list,
					     world_size - 1, world_size);
	} while (more > 0);
	return 0;
}

bool ddp_ranks_has(const char *list, uint32_t rank)
{
	uint64_t first, last;
	int more;

	do {
		more = next(&list, &first, &last);
		if (more >= 0 && rank >= first && rank <= last)
			return true;
	} while (more > 0);
	return false;
}
