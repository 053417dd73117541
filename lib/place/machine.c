/* SPDX-License-Identifier: BSD-3-Clause */
/* Sets of CPU numbers: their arithmetic, and their text; and machines. */
#include "place/machine.h"

#include <stdio.h>
#include <stdlib.h>
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

/* ---- machines, and which of their CPUs and NUMA nodes belong together */

struct ddp_machine *ddp_machine_create(uint32_t cpu_count, uint32_t gpu_count,
				       uint32_t part_count)
{
	struct ddp_machine *machine = calloc(1, sizeof(*machine));

	if (!machine)
		return NULL;
	machine->cpu_count = cpu_count;
	machine->gpu_count = gpu_count;
	machine->part_count = part_count;
	machine->cpus = calloc(cpu_count + 1, sizeof(*machine->cpus));
	machine->gpus = calloc(gpu_count + 1, sizeof(*machine->gpus));
	machine->parts = calloc(part_count + 1, sizeof(*machine->parts));
	if (machine->cpus && machine->gpus && machine->parts)
		return machine;
	ddp_machine_destroy(machine);
	return NULL;
}

void ddp_machine_destroy(struct ddp_machine *machine)
{
	if (!machine)
		return;
	free(machine->cpus);
	free(machine->gpus);
	free(machine->parts);
	free(machine);
}

struct ddp_gpu *ddp_machine_find_gpu(const struct ddp_machine *machine,
				     const char *bus_id)
{
	uint32_t i;

	for (i = 0; i < machine->gpu_count; i++)
		if (strcmp(machine->gpus[i].bus_id, bus_id) == 0)
			return &machine->gpus[i];
	return NULL;
}

void ddp_machine_cpus(const struct ddp_machine *machine,
		      struct ddp_cpuset *cpus)
{
	uint32_t i;

	ddp_cpuset_clear(cpus);
	for (i = 0; i < machine->cpu_count; i++)
		ddp_cpuset_add(cpus, machine->cpus[i].cpu);
}

void ddp_machine_packages(const struct ddp_machine *machine,
			  const struct ddp_cpuset *of,
			  struct ddp_cpuset *cpus)
{
	struct ddp_cpuset packages;
	uint32_t i;

	ddp_cpuset_clear(&packages);
	for (i = 0; i < machine->cpu_count; i++)
		if (ddp_cpuset_has(of, machine->cpus[i].cpu))
			ddp_cpuset_add(&packages, machine->cpus[i].package);
	ddp_cpuset_clear(cpus);
	for (i = 0; i < machine->cpu_count; i++)
		if (ddp_cpuset_has(&packages, machine->cpus[i].package))
			ddp_cpuset_add(cpus, machine->cpus[i].cpu);
}

void ddp_machine_numas(const struct ddp_machine *machine,
		       const struct ddp_cpuset *of, struct ddp_cpuset *numas)
{
	uint32_t i;

	ddp_cpuset_clear(numas);
	for (i = 0; i < machine->cpu_count; i++)
		if (ddp_cpuset_has(of, machine->cpus[i].cpu))
			ddp_cpuset_add(numas, machine->cpus[i].numa);
}
