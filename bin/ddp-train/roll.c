/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collective.h"
#include "layout/error.h"
#include "roll.h"

enum { COLUMNS = 6, CELL = ROLL_CELL };

static const char titles[COLUMNS][CELL] = {
	"rank", "host", "node", "local", "gpus", "cpus"
};

struct entry {
	char cells[COLUMNS][CELL];
	char settings[ROLL_SETTINGS];
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

/* The bytes of the item at the beginning of these settings. */
static int item_length(const char *settings)
{
	const char *next = strstr(settings, " --");

	return next ? (int)(next + 1 - settings) : (int)strlen(settings);
}

static int name_length(const char *item)
{
	return (int)strcspn(item, " ");
}

/* Whether these settings have an item of the same name as this one. */
static bool has_item(const char *settings, const char *item)
{
	size_t name = (size_t)name_length(item) + 1;

	while (*settings && strncmp(settings, item, name) != 0)
		settings += item_length(settings);
	return *settings;
}

static int report_difference(const struct entry *entry, int rank,
			     const char *had, const char *wanted,
			     struct ddp_error *error)
{
	int had_length = item_length(had) - 1;
	int wanted_length = item_length(wanted) - 1;
	const char *no_had = "", *no_wanted = "";

	if (*had && !has_item(wanted, had)) {
		no_wanted = "no ";
		wanted = had;
		wanted_length = name_length(wanted);
	} else if (*wanted && !has_item(had, wanted)) {
		no_had = "no ";
		had = wanted;
		had_length = name_length(had);
	}
	return ddp_error_set(error, DDP_ERROR_SYSTEM, "rank %d on %s has "
			     "%s%.*s, but rank 0 has %s%.*s; start every rank "
			     "with the same options and data", rank,
			     entry->cells[1], no_had, had_length, had,
			     no_wanted, wanted_length, wanted);
}

/* The first rank whose settings differ from rank 0's, and its first item. */
static int compare(const struct entry *entries, int size,
		   struct ddp_error *error)
{
	for (int rank = 1; rank < size; rank++) {
		const char *had = entries[rank].settings;
		const char *wanted = entries[0].settings;
		int length = item_length(had);

		while (length && length == item_length(wanted) &&
		       strncmp(had, wanted, (size_t)length) == 0) {
			had += length;
			wanted += length;
			length = item_length(had);
		}
		if (*had || *wanted)
			return report_difference(&entries[rank], rank, had,
						 wanted, error);
	}
	return 0;
}

/* Every rank's entry, the caller's to free. */
static struct entry *gather(struct collective *collective,
			    const char *settings, const struct ddp_error *mine)
{
	struct entry own = { 0 };
	struct entry *all = calloc((size_t)collective->size, sizeof(*all));

	/* The others wait for this rank, and could not be told otherwise. */
	if (!all)
		collective->table->abort(collective, "no memory for the table "
					 "of ranks");
	fill(&own, collective->rank, settings, mine);
	collective->table->agree(collective, &own, all, sizeof(own));
	return all;
}

int roll_call(struct collective *collective, const char *settings,
	      const struct ddp_error *mine, char (*hosts)[ROLL_CELL],
	      struct ddp_error *error)
{
	struct entry *all = gather(collective, settings, mine);
	int result = find_error(all, collective->size, error);

	if (result == 0)
		result = compare(all, collective->size, error);
	if (result == 0 && collective->rank == 0)
		print_table(all, collective->size);
	for (int rank = 0; hosts && rank < collective->size; rank++)
		strcpy(hosts[rank], all[rank].cells[1]);
	free(all);
	return result;
}

int roll_errors(struct collective *collective, const struct ddp_error *mine,
		struct ddp_error *error)
{
	struct entry *all = gather(collective, "", mine);
	int result = find_error(all, collective->size, error);

	free(all);
	return result;
}
