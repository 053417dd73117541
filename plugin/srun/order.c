/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads where Slurm has put the ranks of a step, as sattach prints it. */
#define _GNU_SOURCE
#include "srun/order.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layout/hostlist.h"
#include "layout/mapping.h"
#include "layout/tasks.h"
#include "util/program.h"
#include "util/scan.h"

#define NONE UINT32_MAX

struct places {
	uint32_t ranks, nodes;		/* of the whole step */
	uint32_t placed;		/* ranks so far */
	uint32_t *hosts;		/* of each rank: a node's index; NONE */
	char master[DDP_HOSTNAME_MAX + 1];
};

/* "4 tasks, 2 nodes (n[1-2])" */
static bool parse_head(const char *line, struct places *places)
{
	uint32_t i;

	if (!line || sscanf(line, " %u tasks, %u nodes", &places->ranks,
			    &places->nodes) != 2 ||
	    !places->ranks || places->ranks > DDP_RANK_MAX)
		return false;
	places->hosts = malloc(places->ranks * sizeof(*places->hosts));
	for (i = 0; places->hosts && i < places->ranks; i++)
		places->hosts[i] = NONE;
	return places->hosts;
}

/* "Node 0 (n1), 2 task(s): 0 1 " */
static bool parse_node(const char *line, uint32_t index, struct places *places)
{
	char name[DDP_HOSTNAME_MAX + 1];
	uint32_t number, count;
	uint64_t rank;
	int end = 0;

	sscanf(line, " Node %u (%255[^)]), %u task(s):%n", &number, name,
	       &count, &end);
	if (!end || number != index)
		return false;
	for (line += end; count; count--, places->placed++) {
		line += strspn(line, " ");
		if (ddp_scan_number(&line, 0, places->ranks - 1, &rank) < 0 ||
		    places->hosts[rank] != NONE)
			return false;
		places->hosts[rank] = index;
		if (rank == 0)
			strcpy(places->master, name);
	}
	return !line[strspn(line, " ")];
}

static bool parse_answer(char *text, struct places *places)
{
	uint32_t index = 0;
	char *save, *line = strtok_r(text, "\n", &save);

	if (!line || !parse_head(strtok_r(NULL, "\n", &save), places))
		return false;
	while ((line = strtok_r(NULL, "\n", &save)))
		if (!parse_node(line, index++, places))
			return false;
	return index == places->nodes && places->placed == places->ranks;
}

int ddp_order_read(uint32_t job_id, uint32_t step_id, struct ddp_order *order)
{
	char id[32];
	/* Quiet: an error of its own is none of the user's. */
	const char *argv[] = { "sattach", "-QQ", "--layout", id, NULL };
	struct places places = { .hosts = NULL };
	char *text;

	order->master = order->mapping = NULL;
	snprintf(id, sizeof(id), "%u.%u", job_id, step_id);
	text = ddp_program_read(argv);
	if (text && parse_answer(text, &places)) {
		order->master = strdup(places.master);
		order->mapping = ddp_mapping_format(places.hosts,
						    places.ranks);
	}
	free(text);
	free(places.hosts);
	if (order->master && order->mapping)
		return 0;
	ddp_order_free(order);
	return -1;
}

void ddp_order_free(struct ddp_order *order)
{
	free(order->master);
	free(order->mapping);
	order->master = order->mapping = NULL;
}
