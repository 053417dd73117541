/* SPDX-License-Identifier: BSD-3-Clause */
/* The TCP ports of a step: read, or derived from job and step. */
#include "layout/port_range.h"

#include <stdlib.h>
#include <string.h>

#include "util/scan.h"
#include "util/text.h"

enum { PORT_UNPRIVILEGED = 1024 };

int ddp_port_range_parse(const char *text, uint16_t *first, uint16_t *last,
			 struct ddp_error *error)
{
	static const char what[] = "port range";
	const char *at;
	uint64_t low, high;

	if (!text)
		text = "";
	at = text;
	if (ddp_scan_number(&at, PORT_UNPRIVILEGED, UINT16_MAX, &low))
		return ddp_scan_error(error, what, text, at,
				      "a port from 1024 to 65535");
	if (*at != '-')
		return ddp_scan_error(error, what, text, at,
				      "'-' and the last port");
	at++;
	if (ddp_scan_number(&at, low + DDP_PORT_RANGE_MIN - 1, UINT16_MAX,
			    &high))
		return ddp_scan_error(error, what, text, at,
				      "a port up to 65535, at least %d above "
				      "the first", DDP_PORT_RANGE_MIN - 1);
	if (*at != '\0')
		return ddp_scan_error(error, what, text, at, "the end");
	*first = (uint16_t)low;
	*last = (uint16_t)high;
	return 0;
}

/*
 * Returns a number's place on a circle of 2^32: 0, 1/2, 1/4, 3/4, 1/8, 5/8, ...
 */
static uint32_t spread(uint32_t number)
{
	uint32_t place = 0;
	int bit;

	for (bit = 0; bit < 32; bit++)
		place |= (number >> bit & 1) << (31 - bit);
	return place;
}

uint16_t ddp_port_derive(uint32_t job_id, uint32_t step_id, uint32_t number,
			 uint16_t first, uint16_t last)
{
	/* 2^32 divided by the golden ratio puts neighbours furthest apart. */
	const uint32_t golden = 2654435769u;
	uint64_t range = (uint64_t)last - first + 1;
	uint64_t slot = (uint64_t)(job_id * golden) * range >> 32;
	uint64_t offset = spread(number) * range >> 32;

	return (uint16_t)(first + (slot + step_id + offset) % range);
}

/* Read "12000" or "12005-12007" at *at, and move *at behind it. */
static int scan_ports(const char *text, const char **at, uint64_t *first,
		      uint64_t *last, struct ddp_error *error)
{
	static const char what[] = "reserved ports";

	if (ddp_scan_number(at, 1, UINT16_MAX, first))
		return ddp_scan_error(error, what, text, *at,
				      "a port from 1 to 65535");
	*last = *first;
	if (**at != '-')
		return 0;
	++*at;
	return ddp_scan_number(at, *first, UINT16_MAX, last) == 0 ? 0 :
		ddp_scan_error(error, what, text, *at, "a port from %u to "
			       "65535", (unsigned int)*first);
}

int ddp_port_reserved(const char *text, uint32_t number, uint16_t *port,
		      struct ddp_error *error)
{
	uint64_t first, last, before = 0, found = 0;
	const char *at = text ? text : "";

	for (;; at++) {
		if (scan_ports(text ? text : "", &at, &first, &last, error) < 0)
			return -1;
		if (number >= before && number - before <= last - first)
			found = first + number - before;
		before += last - first + 1;
		if (*at != ',')
			break;
	}
	if (*at != '\0')
		return ddp_scan_error(error, "reserved ports", text, at,
				      "',' or the end");
	if (found == 0)
		return 1;
	*port = (uint16_t)found;
	return 0;
}

/* ---- TF_CONFIG: the ranks as workers of TensorFlow */

enum { END_SIZE = 64 };		/* enough for what comes after the workers */

/* An entry of the host list; components of a step can share a machine. */
struct node {
	const char *host;
	uint32_t ranks;
	uint32_t before;		/* ranks of others on its machine */
};

/* Nodes are numbered by lowest rank: those before this one are known. */
static void fill_node(struct node *nodes, const struct ddp_rank *rank)
{
	struct node *node = &nodes[rank->node_rank];
	uint32_t i;

	node->host = rank->host;
	node->ranks = rank->local_world_size;
	for (i = 0; i < rank->node_rank; i++)
		if (strcmp(nodes[i].host, node->host) == 0)
			node->before += nodes[i].ranks;
}

static int add_worker(struct ddp_text *text, const struct ddp_layout *layout,
		      uint32_t rank, struct node *nodes, ddp_tf_port *port,
		      void *context, struct ddp_error *error)
{
	struct ddp_rank at;
	uint16_t number;

	if (ddp_layout_get(layout, rank, &at, error) < 0)
		return -1;
	if (at.local_rank == 0)
		fill_node(nodes, &at);
	if (port(context, nodes[at.node_rank].before + at.local_rank, &number,
		 error) < 0)
		return -1;
	ddp_text_add(text, "%s\"%s:%u\"", rank > 0 ? "," : "", at.host, number);
	if (text->length < DDP_TF_SIZE - END_SIZE)
		return 0;
	return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--ddp-env=tf: the "
			     "addresses of %u ranks do not fit into one "
			     "variable, only those of the first %u; start "
			     "fewer tasks", ddp_layout_world_size(layout),
			     rank);
}

char *ddp_tf_config(const struct ddp_layout *layout, uint32_t rank,
		    ddp_tf_port *port, void *context, struct ddp_error *error)
{
	uint32_t count = ddp_layout_world_size(layout), i;
	struct node *nodes = calloc(ddp_layout_node_count(layout),
				    sizeof(*nodes));
	struct ddp_text text = { 0 };
	char *config;
	int rc = 0;

	ddp_text_add(&text, "{\"cluster\":{\"worker\":[");
	for (i = 0; nodes && i < count && rc == 0; i++)
		rc = add_worker(&text, layout, i, nodes, port, context, error);
	ddp_text_add(&text, "]},\"task\":{\"type\":\"worker\",\"index\":%u}}",
		     rank);
	config = ddp_text_finish(&text);
	if (rc == 0 && (!nodes || !config))
		rc = ddp_error_set(error, DDP_ERROR_SYSTEM, "out of memory");
	free(nodes);
	if (rc == 0)
		return config;
	free(config);
	return NULL;
}
