/* SPDX-License-Identifier: BSD-3-Clause */
/* TF_CONFIG: the ranks as TensorFlow's workers. */
#include "layout/tf.h"

#include <stdlib.h>
#include <string.h>

#include "util/text.h"

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
