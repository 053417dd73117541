/* SPDX-License-Identifier: BSD-3-Clause */
/* Sets of CPU numbers: their arithmetic, and their text. */
#include "place/cpuset.h"

#include <stdio.h>
#include <string.h>

#include "util/scan.h"

enum { WORDS = DDP_CPU_MAX / 64 };

void ddp_cpuset_clear(struct ddp_cpuset *set)
{
	memset(set, 0, sizeof(*set));
}

void ddp_cpuset_add(struct ddp_cpuset *set, uint32_t cpu)
{
	set->words[cpu / 64] |= UINT64_C(1) << cpu % 64;
}

bool ddp_cpuset_has(const struct ddp_cpuset *set, uint32_t cpu)
{
	return set->words[cpu / 64] >> cpu % 64 & 1;
}

bool ddp_cpuset_empty(const struct ddp_cpuset *set)
{
	return ddp_cpuset_next(set, 0) == DDP_CPU_MAX;
}

bool ddp_cpuset_equal(const struct ddp_cpuset *a, const struct ddp_cpuset *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

bool ddp_cpuset_meet(const struct ddp_cpuset *a, const struct ddp_cpuset *b)
{
	uint32_t i;

	for (i = 0; i < WORDS; i++)
		if (a->words[i] & b->words[i])
			return true;
	return false;
}

uint32_t ddp_cpuset_count(const struct ddp_cpuset *set)
{
	uint32_t count = 0, i;

	for (i = 0; i < WORDS; i++)
		if (set->words[i])
			count += (uint32_t)__builtin_popcountll(set->words[i]);
	return count;
}

void ddp_cpuset_and(struct ddp_cpuset *out, const struct ddp_cpuset *a,
		    const struct ddp_cpuset *b)
{
	uint32_t i;

	for (i = 0; i < WORDS; i++)
		out->words[i] = a->words[i] & b->words[i];
}

void ddp_cpuset_or(struct ddp_cpuset *out, const struct ddp_cpuset *a,
		   const struct ddp_cpuset *b)
{
	uint32_t i;

	for (i = 0; i < WORDS; i++)
		out->words[i] = a->words[i] | b->words[i];
}

void ddp_cpuset_andnot(struct ddp_cpuset *out, const struct ddp_cpuset *a,
		       const struct ddp_cpuset *b)
{
	uint32_t i;

	for (i = 0; i < WORDS; i++)
		out->words[i] = a->words[i] & ~b->words[i];
}

uint32_t ddp_cpuset_next(const struct ddp_cpuset *set, uint32_t cpu)
{
	uint64_t word;
	uint32_t i;

	if (cpu >= DDP_CPU_MAX)
		return DDP_CPU_MAX;
	word = set->words[cpu / 64] & ~UINT64_C(0) << cpu % 64;
	for (i = cpu / 64; word == 0; word = set->words[i])
		if (++i == WORDS)
			return DDP_CPU_MAX;
	return i * 64 + (uint32_t)__builtin_ctzll(word);
}

int ddp_cpuset_parse(const char *text, struct ddp_cpuset *set,
		     struct ddp_error *error)
{
	const char *at = text ? text : "";
	struct ddp_cpuset read = { { 0 } };
	uint64_t first, last;

	text = at;
	for (;; at++) {
		if (ddp_scan_number(&at, 0, DDP_CPU_MAX - 1, &first))
			return ddp_scan_error(error, "CPU list", text, at,
					      "a CPU number from 0 to %d",
					      DDP_CPU_MAX - 1);
		last = first;
		if (*at == '-') {
			at++;
			if (ddp_scan_number(&at, first, DDP_CPU_MAX - 1,
					    &last))
				return ddp_scan_error(error, "CPU list", text,
					at, "a CPU number from %u to %d",
					(uint32_t)first, DDP_CPU_MAX - 1);
		}
		while (first <= last)
			ddp_cpuset_add(&read, (uint32_t)first++);
		if (*at == '\0')
			break;
		if (*at != ',')
			return ddp_scan_error(error, "CPU list", text, at,
					      *at == 'x' ? "no mask in hex; "
					      "0xff is the CPUs 0-7" :
					      "',' or the end");
	}
	*set = read;
	return 0;
}

int ddp_cpuset_format(const struct ddp_cpuset *set, char *out, size_t size)
{
	uint32_t first = ddp_cpuset_next(set, 0), last;
	size_t used = 0;
	int length;

	if (size == 0)
		return -1;
	out[0] = '\0';
	while (first < DDP_CPU_MAX) {
		for (last = first; last + 1 < DDP_CPU_MAX &&
		     ddp_cpuset_has(set, last + 1); last++)
			;
		length = snprintf(out + used, size - used,
				  last > first ? "%s%u-%u" : "%s%u",
				  used ? "," : "", first, last);
		if (length < 0 || (size_t)length >= size - used)
			return -1;
		used += (size_t)length;
		first = ddp_cpuset_next(set, last + 1);
	}
	return 0;
}
