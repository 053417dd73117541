/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the texts that say which tasks there are. */
#define _GNU_SOURCE
#include "layout/tasks.h"

#include <stdlib.h>
#include <string.h>

#include "util/scan.h"
#include "util/text.h"

#define TASKS "tasks per node"

/* ---- tasks of each node */

/* Read "N" or "N(xCOUNT)", COUNT from 1 to nodes. */
static int parse_entry(const char *text, const char **at, size_t nodes,
		       uint64_t *tasks, uint64_t *count,
		       struct ddp_error *error)
{
	*count = 1;
	if (ddp_scan_number(at, 0, DDP_RANK_MAX, tasks))
		return ddp_scan_error(error, TASKS, text, *at,
				      "a number of tasks from 0 to %d",
				      DDP_RANK_MAX);
	if (**at != '(')
		return 0;
	if (*++*at != 'x')
		return ddp_scan_error(error, TASKS, text, *at, "'x'");
	++*at;
	if (ddp_scan_number(at, 1, nodes, count))
		return ddp_scan_error(error, TASKS, text, *at,
				      "a number of nodes from 1 to %zu, as "
				      "many as are left", nodes);
	if (**at != ')')
		return ddp_scan_error(error, TASKS, text, *at, "')'");
	++*at;
	return 0;
}

int ddp_tasks_parse(const char *text, size_t node_count, uint32_t *tasks,
		    struct ddp_error *error)
{
	const char *at, *entry;
	uint64_t value, count, sum = 0;
	size_t filled = 0;

	if (!text)
		text = "";
	if (node_count == 0)
		return ddp_scan_error(error, TASKS, text, text, "some nodes");
	for (at = text;; at++) {
		entry = at;
		if (parse_entry(text, &at, node_count - filled, &value, &count,
				error))
			return -1;
		sum += value * count;
		if (sum > DDP_RANK_MAX)
			return ddp_scan_error(error, TASKS, text, entry,
					      "at most %d tasks in all",
					      DDP_RANK_MAX);
		while (count-- > 0)
			tasks[filled++] = (uint32_t)value;
		if (filled == node_count)
			break;
		if (*at != ',')
			return ddp_scan_error(error, TASKS, text, at,
					      "',' and the tasks of %zu more "
					      "nodes", node_count - filled);
	}
	if (*at != '\0')
		return ddp_scan_error(error, TASKS, text, at,
				      "the end after %zu nodes", node_count);
	if (sum == 0)
		return ddp_scan_error(error, TASKS, text, text,
				      "at least one task");
	return 0;
}

/* ---- the PMI process mapping */

#define MAPPING "process mapping"
#define PREFIX "(vector"

struct block {
	uint64_t first, count, depth;
};

/* Read the character before, and then a number from min to max. */
static int parse_field(const char *text, const char **at, char before,
		       uint64_t min, uint64_t max, uint64_t *value,
		       struct ddp_error *error)
{
	if (**at != before)
		return ddp_scan_error(error, MAPPING, text, *at, "'%c'",
				      before);
	++*at;
	if (ddp_scan_number(at, min, max, value))
		return ddp_scan_error(error, MAPPING, text, *at,
				      "a number from %llu to %llu",
				      (unsigned long long)min,
				      (unsigned long long)max);
	return 0;
}

/* Read "(first,count,depth)", which must name hosts and place no more ranks. */
static int parse_block(const char *text, const char **at, uint64_t hosts,
		       uint64_t ranks, struct block *block,
		       struct ddp_error *error)
{
	const char *from = *at;

	if (parse_field(text, at, '(', 0, hosts - 1, &block->first, error) ||
	    parse_field(text, at, ',', 1, hosts - block->first, &block->count,
			error) ||
	    parse_field(text, at, ',', 1, DDP_RANK_MAX, &block->depth, error))
		return -1;
	if (**at != ')')
		return ddp_scan_error(error, MAPPING, text, *at, "')'");
	++*at;
	if (block->count * block->depth > ranks)
		return ddp_scan_error(error, MAPPING, text, from,
				      "at most %llu more ranks",
				      (unsigned long long)ranks);
	return 0;
}

/* Fill rank_hosts. Every block places at least one rank, so this ends. */
static int parse_blocks(const char *text, size_t host_count,
			uint32_t *rank_hosts, size_t rank_count,
			struct ddp_error *error)
{
	const char *at = text + strlen(PREFIX);
	struct block block;
	size_t filled = 0;
	uint64_t i;

	while (filled < rank_count) {
		if (*at != ',')
			return ddp_scan_error(error, MAPPING, text, at,
					      "',' and %zu more ranks",
					      rank_count - filled);
		at++;
		if (parse_block(text, &at, host_count, rank_count - filled,
				&block, error))
			return -1;
		for (i = 0; i < block.count * block.depth; i++)
			rank_hosts[filled++] =
				(uint32_t)(block.first + i / block.depth);
	}
	if (strcmp(at, ")") != 0)
		return ddp_scan_error(error, MAPPING, text, at,
				      "')' and the end after %zu ranks",
				      rank_count);
	return 0;
}

uint32_t *ddp_mapping_parse(const char *text, size_t host_count,
			    size_t rank_count, struct ddp_error *error)
{
	uint32_t *rank_hosts;

	if (!text)
		text = "";
	if (host_count == 0 || host_count > UINT32_MAX || rank_count == 0 ||
	    rank_count > DDP_RANK_MAX) {
		ddp_error_set(error, DDP_ERROR_ARGUMENT, "a process mapping "
			      "needs hosts and 1 to %d ranks, not %zu and %zu",
			      DDP_RANK_MAX, host_count, rank_count);
		return NULL;
	}
	if (strncmp(text, PREFIX, strlen(PREFIX)) != 0) {
		ddp_scan_error(error, MAPPING, text, text, "'" PREFIX "'");
		return NULL;
	}
	rank_hosts = malloc(rank_count * sizeof(*rank_hosts));
	if (!rank_hosts) {
		ddp_error_set(error, DDP_ERROR_SYSTEM,
			      "out of memory for a mapping of %zu ranks",
			      rank_count);
		return NULL;
	}
	if (parse_blocks(text, host_count, rank_hosts, rank_count, error)) {
		free(rank_hosts);
		return NULL;
	}
	return rank_hosts;
}

/* Returns how many ranks in a row share the first one's host. */
static size_t count_alike(const uint32_t *rank_hosts, size_t rank_count)
{
	size_t count = 0;

	while (count < rank_count && rank_hosts[count] == rank_hosts[0])
		count++;
	return count;
}

/* The longest block at the start; returns how many ranks it places. */
static size_t find_block(const uint32_t *rank_hosts, size_t rank_count,
			 struct block *block)
{
	size_t at, depth = count_alike(rank_hosts, rank_count);

	block->first = rank_hosts[0];
	block->count = 1;
	block->depth = depth;
	for (at = depth; at < rank_count; at += depth, block->count++)
		if (rank_hosts[at] != block->first + block->count ||
		    count_alike(rank_hosts + at, rank_count - at) != depth)
			break;
	return at;
}

char *ddp_mapping_format(const uint32_t *rank_hosts, size_t rank_count)
{
	struct ddp_text text = { 0 };
	struct block block;
	size_t at;

	ddp_text_add(&text, PREFIX);
	for (at = 0; at < rank_count;) {
		at += find_block(rank_hosts + at, rank_count - at, &block);
		ddp_text_add(&text, ",(%llu,%llu,%llu)",
			     (unsigned long long)block.first,
			     (unsigned long long)block.count,
			     (unsigned long long)block.depth);
	}
	ddp_text_add(&text, ")");
	return ddp_text_finish(&text);
}

/* ---- lists of ranks */

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
