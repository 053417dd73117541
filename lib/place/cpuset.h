/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A set of CPU numbers (or of NUMA node numbers). It is a plain value: it can
 * be copied, compared with memcmp and put into shared memory.
 *
 * Its text is the kernel's: "0-3,8". Numbers may be read in any order and may
 * overlap; they are printed in ascending order, in the longest ranges.
 */
#ifndef DDP_PLACE_CPUSET_H
#define DDP_PLACE_CPUSET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/error.h"

enum { DDP_CPU_MAX = 8192 };	/* CPUs are numbered from 0 to this - 1 */

struct ddp_cpuset {
	uint64_t words[DDP_CPU_MAX / 64];
};

void ddp_cpuset_clear(struct ddp_cpuset *set);

/* The number must be below DDP_CPU_MAX. */
void ddp_cpuset_add(struct ddp_cpuset *set, uint32_t cpu);
bool ddp_cpuset_has(const struct ddp_cpuset *set, uint32_t cpu);

bool ddp_cpuset_empty(const struct ddp_cpuset *set);
bool ddp_cpuset_equal(const struct ddp_cpuset *a, const struct ddp_cpuset *b);
bool ddp_cpuset_meet(const struct ddp_cpuset *a, const struct ddp_cpuset *b);
uint32_t ddp_cpuset_count(const struct ddp_cpuset *set);

/* out may be a or b. andnot: what is in a and not in b. */
void ddp_cpuset_and(struct ddp_cpuset *out, const struct ddp_cpuset *a,
		    const struct ddp_cpuset *b);
void ddp_cpuset_or(struct ddp_cpuset *out, const struct ddp_cpuset *a,
		   const struct ddp_cpuset *b);
void ddp_cpuset_andnot(struct ddp_cpuset *out, const struct ddp_cpuset *a,
		       const struct ddp_cpuset *b);

/* The lowest number in set that is at least cpu; DDP_CPU_MAX if none is. */
uint32_t ddp_cpuset_next(const struct ddp_cpuset *set, uint32_t cpu);

/*
 * Read text, which must name at least one CPU. Returns 0, or -1 with *set
 * unchanged. The time follows the length of the text, not its numbers.
 */
int ddp_cpuset_parse(const char *text, struct ddp_cpuset *set,
		     struct ddp_error *error);

enum { DDP_CPUSET_TEXT_SIZE = 32768 };	/* holds every set's text */

/*
 * Write the text, which is "" for an empty set. Returns 0, or -1 if out[size]
 * is too small.
 */
int ddp_cpuset_format(const struct ddp_cpuset *set, char *out, size_t size);

#endif
