/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "comm.h"
#include "layout/error.h"
#include "roll.h"
#include "world.h"

enum { COLUMNS = 6, CELL = 128 };

static const char titles[COLUMNS][CELL] = {
	"rank", "host", "node", "local", "gpus", "cpus"
};

struct entry {
	char cells[COLUMNS][CELL];
	char settings[256];
	struct ddp_error error;
};

static void fill_text(char *cell, const char *text)
{
	if (snprintf(cell, CELL, "%s", text) >= CELL)
		strcpy(cell + CELL - 4, "...");
}

static void fill_variable(char *cell, const char *name)
{
	const char *text = getenv(name);

	fill_text(cell, !text ? "-" : !*text ? "none" : text);
}

/* The CPUs that this process may run on, as 0-3,8. */
static void fill_cpus(char *cell)
{
	cpu_set_t sets[64];	/* 65536 CPUs */
	char text[CELL + 16] = "";
	size_t length = 0;

	if (sched_getaffinity(0, sizeof(sets), sets) < 0) {
		fill_text(cell, "-");
		return;
	}
	for (size_t cpu = 0; cpu < 8 * sizeof(sets) && length < CELL; cpu++) {
		size_t last = cpu;

		if (!CPU_ISSET_S(cpu, sizeof(sets), sets))
			continue;
		while (CPU_ISSET_S(last + 1, sizeof(sets), sets))
			last++;
		length += sprintf(text + length, last > cpu ? "%s%zu-%zu" :
				  "%s%zu", length ? "," : "", cpu, last);
		cpu = last;
	}
	fill_text(cell, text);
}

static void fill(struct entry *entry, int rank, const char *settings,
		 const struct ddp_error *error)
{
	char host[256] = "";

	gethostname(host, sizeof(host) - 1);
	snprintf(entry->cells[0], CELL, "%d", rank);
	fill_text(entry->cells[1], host);
	fill_variable(entry->cells[2], "NODE_RANK");
	fill_variable(entry->cells[3], "LOCAL_RANK");
	fill_variable(entry->cells[4], "CUDA_VISIBLE_DEVICES");
	fill_cpus(entry->cells[5]);
	snprintf(entry->settings, sizeof(entry->settings), "%s", settings);
	entry->error = *error;
}

static void print_row(const char cells[COLUMNS][CELL], const int *widths)
{
	printf("%*s", widths[0], cells[0]);
	for (int i = 1; i < COLUMNS; i++)
		printf("  %-*s", i < COLUMNS - 1 ? widths[i] : 0, cells[i]);
	putchar('\n');
}

static void print_table(const struct entry *entries, int size)
{
	int widths[COLUMNS];

	for (int i = 0; i < COLUMNS; i++) {
		widths[i] = (int)strlen(titles[i]);
		for (int rank = 0; rank < size; rank++) {
			int width = (int)strlen(entries[rank].cells[i]);

			if (width > widths[i])
				widths[i] = width;
		}
	}
	print_row(titles, widths);
	for (int rank = 0; rank < size; rank++)
		print_row(entries[rank].cells, widths);
}

static bool same_error(const struct ddp_error *a, const struct ddp_error *b)
{
	return a->code == b->code && strcmp(a->text, b->text) == 0;
}

/* The first rank's error; without its name where all ranks say the same. */
static int find_error(const struct entry *entries, int size,
		      struct ddp_error *error)
{
	int first = 0, same = 0;

	while (first < size && entries[first].error.code == DDP_ERROR_NONE)
		first++;
	if (first == size)
		return 0;
	for (int rank = 0; rank < size; rank++)
		same += same_error(&entries[rank].error,
				   &entries[first].error);
	if (same == size)
		*error = entries[first].error;
	else
		ddp_error_set(error, entries[first].error.code,
			      "rank %d on %s: %s", first,
			      entries[first].cells[1],
			      entries[first].error.text);
	return -1;
}

static int compare(const struct entry *entries, int size,
		   struct ddp_error *error)
{
	for (int rank = 1; rank < size; rank++) {
		if (strcmp(entries[rank].settings, entries[0].settings) == 0)
			continue;
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "rank %d on %s "
				     "has %s, but rank 0 has %s; give every "
				     "rank the same options and data", rank,
				     entries[rank].cells[1],
				     entries[rank].settings,
				     entries[0].settings);
	}
	return 0;
}

int roll_call(const struct world *world, const char *settings,
	      const struct ddp_error *mine, struct ddp_error *error)
{
	struct entry own = { 0 };
	struct entry *all = calloc((size_t)world->size, sizeof(*all));
	int result;

	if (!all) {
		fprintf(stderr, "ddp-train: no memory for the table of %d "
			"ranks\n", world->size);
		world->comm->abort(1);
	}
	fill(&own, world->rank, settings, mine);
	world->comm->gather(&own, all, sizeof(own));
	result = find_error(all, world->size, error);
	if (result == 0)
		result = compare(all, world->size, error);
	if (result == 0 && world->rank == 0)
		print_table(all, world->size);
	free(all);
	return result;
}
