/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads and writes a PMI process mapping. */
#define _GNU_SOURCE
#include "layout/mapping.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layout/tasks.h"
#include "util/scan.h"

#define WHAT "process mapping"
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
		return ddp_scan_error(error, WHAT, text, *at, "'%c'", before);
	++*at;
	if (ddp_scan_number(at, min, max, value))
		return ddp_scan_error(error, WHAT, text, *at,
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
		return ddp_scan_error(error, WHAT, text, *at, "')'");
	++*at;
	if (block->count * block->depth > ranks)
		return ddp_scan_error(error, WHAT, text, from, "at most %llu "
				      "more ranks", (unsigned long long)ranks);
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
			return ddp_scan_error(error, WHAT, text, at,
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
		return ddp_scan_error(error, WHAT, text, at,
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
		ddp_scan_error(error, WHAT, text, text, "'" PREFIX "'");
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
	struct block block;
	char *text = NULL;
	size_t size, at;
	FILE *stream = open_memstream(&text, &size);

	if (!stream)
		return NULL;
	fputs(PREFIX, stream);
	for (at = 0; at < rank_count;) {
		at += find_block(rank_hosts + at, rank_count - at, &block);
		fprintf(stream, ",(%llu,%llu,%llu)",
			(unsigned long long)block.first,
			(unsigned long long)block.count,
			(unsigned long long)block.depth);
	}
	fputs(")", stream);
	if (fclose(stream) == 0)
		return text;
	free(text);
	return NULL;
}
