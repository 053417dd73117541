/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Puts the ranks along the network, for --ddp-order=network. Within a job a step
 * may say on which node each task runs (--distribution=arbitrary), so that RANK
 * stays SLURM_PROCID. Slurm refuses that for whole jobs of some clusters, and for
 * no step.
 */
#define _GNU_SOURCE
#include "srun/srun.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layout/network.h"
#include "options/options.h"
#include "slurm/scontrol.h"
#include "srun/cli.h"
#include "srun/rerun.h"

enum { ARGUMENT_MAX = 128 << 10 };	/* execve takes no longer one */

/* Nodes of the step, and what is known of them. */
struct order {
	struct ddp_hostlist *hosts;
	uint32_t count;
	uint32_t per_node;		/* ranks on each */
	uint32_t *indexes;		/* of hosts, in their order */
};

struct ddp_network *ddp_order_read(struct ddp_error *error)
{
	char *text = ddp_scontrol_show_topology();
	struct ddp_network *network = NULL;

	if (text)
		network = ddp_network_create(text, error);
	else
		ddp_error_set(error, DDP_ERROR_SYSTEM, "Slurm tells of no "
			      "switches or blocks; TopologyPlugin in slurm.conf "
			      "is tree or block where there are any");
	free(text);
	return network;
}

/*
 * Returns what else says where the ranks are, or how many; NULL: nothing. A host
 * file sets the distribution, and does not count as given. "block" alone is Slurm's
 * own order.
 */
static const char *find_rival(void)
{
	const char *distribution = ddp_cli_get_default("distribution");

	if (distribution && *distribution &&
	    strcmp(distribution, "block") != 0 &&
	    strcmp(distribution, "unknown") != 0)
		return "--distribution, or a host file";
	if (ddp_cli_isset("exclude") && !ddp_cli_isset("nodelist"))
		return "--exclude";
	if (ddp_cli_isset("multi-prog") && !ddp_cli_typed('n'))
		return "--multi-prog without -n";
	return ddp_cli_isset("relative") ? "--relative" :
		ddp_cli_isset("nodefile") ? "--nodefile" : NULL;
}

/* Reasons for which the order stays: they follow a colon. */
static int check(struct ddp_error *error)
{
	const char *rival = find_rival();

	if (!ddp_cli_available())
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "this srun does "
				     "not show its options to plugins");
	if (!ddp_cli_get("jobid") || ddp_srun.expected > 1 ||
	    getenv("SLURM_HET_SIZE"))
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "this is not a "
				     "step of one component within a job; use "
				     "sbatch or salloc");
	/* Otherwise tasks might not get to know who is where. */
	if (!ddp_mpi_is_pmix())
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "it needs "
				     "--mpi=pmix");
	if (rival)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "%s says where "
				     "ranks are, too; leave out one of them",
				     rival);
	if (!ddp_rerun_can_drop_nodes())
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "srun refuses "
				     "-N beside it; give -N apart from other "
				     "letters, and it is left out");
	return 0;
}

static int read_nodes(struct order *order, const struct ddp_request *request,
		      struct ddp_error *error)
{
	const char *job_id = ddp_cli_get("jobid");
	const char *list = ddp_cli_get("nodelist");
	/* Slurm sorts what a user has listed, too. */
	char *nodes = list ? ddp_hosts_compress(list, true) :
			     ddp_squeue_show(job_id, "-o", "%A %N");

	if (nodes && *nodes)
		order->hosts = ddp_hostlist_create(nodes, error);
	else
		ddp_error_set(error, DDP_ERROR_SYSTEM, "squeue does not tell "
			      "the nodes of job %.64s", job_id);
	free(nodes);
	if (!order->hosts)
		return -1;
	order->count = (uint32_t)ddp_hostlist_count(order->hosts);
	if (!request->nodes || ddp_request_nodes(request) == order->count)
		return 0;
	return ddp_error_set(error, DDP_ERROR_ARGUMENT, "-N%.32s leaves open "
			     "which nodes the step gets, as %s has %u; give "
			     "as many by --nodelist", request->nodes,
			     list ? "--nodelist" : "the job", order->count);
}

static int count_ranks(struct order *order, const struct ddp_request *request,
		       struct ddp_error *error)
{
	uint32_t ranks;

	ranks = request->ntasks ? (uint32_t)atol(request->ntasks) :
		request->ntasks_per_node ? order->count *
		(uint32_t)atol(request->ntasks_per_node) : 0;
	order->per_node = ranks / order->count;
	if (order->per_node && ranks % order->count == 0)
		return 0;
	return ddp_error_set(error, DDP_ERROR_ARGUMENT, "its %u nodes do not "
			     "have equally many ranks; give "
			     "--ntasks-per-node", order->count);
}

/* Finds the order, and whether it is better. */
static int sort(struct order *order, struct ddp_error *error)
{
	struct ddp_network *network = ddp_order_read(error);
	int rc = -1;

	order->indexes = calloc(order->count, sizeof(*order->indexes));
	if (!order->indexes)
		ddp_error_set(error, DDP_ERROR_SYSTEM, "out of memory");
	else if (network)
		rc = ddp_network_order(network, order->hosts, order->indexes,
				       error);
	if (rc == 0) {
		ddp_srun.up_before = (uint32_t)ddp_network_crossings(
			network, order->hosts, NULL);
		ddp_srun.up = (uint32_t)ddp_network_crossings(
			network, order->hosts, order->indexes);
	}
	ddp_network_destroy(network);
	return rc;
}

static int add_arguments(const struct order *order, struct ddp_error *error)
{
	struct ddp_text list = { 0 };
	char *names, *text = NULL, *argument = NULL;
	uint32_t i, rank;
	int length = -1;

	for (i = 0; i < order->count; i++)
		for (rank = 0; rank < order->per_node; rank++)
			ddp_text_add(&list, "%s%s", list.length ? "," : "",
				     ddp_hostlist_get(order->hosts,
						      order->indexes[i]));
	names = ddp_text_finish(&list);
	if (names)
		text = ddp_hosts_compress(names, false);
	if (text)
		length = asprintf(&argument, "--nodelist=%s", text);
	free(names);
	free(text);
	if (length < 0)
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "out of memory");
	if (length < ARGUMENT_MAX) {
		ddp_rerun_insert(argument);
		ddp_rerun_insert("--distribution=arbitrary");
		/* An srun in a task would take this for its own. */
		ddp_rerun_hide("SLURM_DISTRIBUTION");
	}
	free(argument);
	return length < ARGUMENT_MAX ? 0 :
		ddp_error_set(error, DDP_ERROR_ARGUMENT, "the list of its "
			      "ranks' nodes is longer than an argument can be");
}

/* Returns 1 if srun must run again, 0 if nothing was to do, or -1. */
static int apply(struct order *order, struct ddp_error *error)
{
	struct ddp_request request;

	ddp_asked_read(&request);
	if (ddp_request_nodes(&request) == 1)
		return 0;
	if (check(error) < 0 || read_nodes(order, &request, error) < 0 ||
	    count_ranks(order, &request, error) < 0 || sort(order, error) < 0)
		return -1;
	return ddp_srun.up == ddp_srun.up_before ? 0 :
		add_arguments(order, error) < 0 ? -1 : 1;
}

bool ddp_order_nodes(void)
{
	struct order order = { .hosts = NULL };
	struct ddp_error error;
	int rc;

	if (ddp_plugin.order == DDP_ORDER_SLURM || ddp_srun.ordered ||
	    ddp_srun.checks || ddp_srun.component > 0)
		return false;
	rc = apply(&order, &error);
	ddp_srun.measured = rc >= 0 && order.count > 0;
	/* No refusal: all steps of a job inherit its options, small ones too. */
	if (rc < 0 && (ddp_options_typed("--ddp-order") || ddp_plugin.explain))
		slurm_info("slurm-ddp: --ddp-order=network: ranks stay in "
			   "Slurm's order: %s", ddp_text_quote(error.text));
	ddp_hostlist_destroy(order.hosts);
	free(order.indexes);
	ddp_srun.ordered = rc > 0;
	return rc > 0;
}
