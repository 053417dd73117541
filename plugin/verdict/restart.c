/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether a step is started again, and on which nodes. */
#define _GNU_SOURCE
#include "verdict/restart.h"

#include <stdlib.h>
#include <string.h>

void ddp_restart_clear(struct ddp_restart *restart)
{
	free(restart->names);
	ddp_hostlist_destroy(restart->hosts);
	ddp_network_destroy(restart->network);
	*restart = (struct ddp_restart){ .max = 0 };
}

/* A list (NULL or empty: none), expanded. */
static int expand(const char *text, struct ddp_hostlist **hosts,
		  struct ddp_error *error)
{
	*hosts = text && *text ? ddp_hostlist_create(text, error) : NULL;
	return text && *text && !*hosts ? -1 : 0;
}

static uint32_t count(const struct ddp_hostlist *hosts)
{
	return hosts ? (uint32_t)ddp_hostlist_count(hosts) : 0;
}

static bool has(const struct ddp_hostlist *hosts, const char *name)
{
	uint32_t i;

	for (i = 0; i < count(hosts); i++)
		if (strcmp(ddp_hostlist_get(hosts, i), name) == 0)
			return true;
	return false;
}

/* Take hosts as those to choose from, in this order. */
static int take(struct ddp_restart *restart, struct ddp_hostlist *hosts)
{
	uint32_t i;

	restart->hosts = hosts;
	restart->names = calloc(count(hosts), sizeof(*restart->names));
	if (!restart->names)
		return -1;
	for (i = 0; i < count(hosts); i++)
		restart->names[i] = ddp_hostlist_get(hosts, i);
	return 0;
}

/* Names that the step must have come first. Returns how many may be used. */
static uint32_t sort(struct ddp_restart *restart,
		     const struct ddp_hostlist *wanted,
		     const struct ddp_hostlist *excluded)
{
	uint32_t i, length = 0;
	const char *name;

	for (i = 0; i < count(restart->hosts); i++) {
		name = ddp_hostlist_get(restart->hosts, i);
		if (has(wanted, name))
			restart->names[length++] = name;
	}
	for (i = 0; i < count(restart->hosts); i++) {
		name = ddp_hostlist_get(restart->hosts, i);
		if (!has(wanted, name) && !has(excluded, name))
			restart->names[length++] = name;
	}
	return length;
}

/* How many of the nodes that may be used are the step's. */
static uint32_t share(const struct ddp_restart_job *job, uint32_t wanted,
		      uint32_t all)
{
	if (job->count || wanted)
		return job->count ? job->count : wanted;
	return all > job->spares ? all - job->spares : 1;
}

static int choose(struct ddp_restart *restart,
		  const struct ddp_restart_job *job,
		  const struct ddp_hostlist *wanted,
		  const struct ddp_hostlist *excluded, struct ddp_error *error)
{
	uint32_t i, all, nodes;

	for (i = 0; i < count(wanted); i++)
		if (!has(restart->hosts, ddp_hostlist_get(wanted, i)))
			return ddp_error_set(error, DDP_ERROR_ARGUMENT,
					     "--nodelist: %s is not a node of "
					     "the job; leave it out",
					     ddp_hostlist_get(wanted, i));
	all = sort(restart, wanted, excluded);
	nodes = share(job, count(wanted), all);
	if (all < nodes || all - nodes < job->spares)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				     "--ddp-spares=%u: too few nodes in the "
				     "job for it: %u, of which the step itself "
				     "needs %u; ask for more, or keep back "
				     "fewer", job->spares, all, nodes);
	restart->count = nodes;
	restart->spares = job->spares;
	return 0;
}

int ddp_restart_choose(struct ddp_restart *restart,
		       const struct ddp_restart_job *job,
		       struct ddp_error *error)
{
	struct ddp_hostlist *hosts, *wanted = NULL, *excluded = NULL;
	int rc = -1;

	hosts = ddp_hostlist_create(job->nodes, error);
	if (!hosts)
		return -1;
	if (take(restart, hosts) < 0)
		ddp_error_set(error, DDP_ERROR_SYSTEM, "out of memory");
	else if (expand(job->wanted, &wanted, error) == 0 &&
		 expand(job->excluded, &excluded, error) == 0)
		rc = choose(restart, job, wanted, excluded, error);
	ddp_hostlist_destroy(wanted);
	ddp_hostlist_destroy(excluded);
	return rc;
}

char *ddp_restart_format(const struct ddp_restart *restart)
{
	struct ddp_text list = { 0 };
	uint32_t i;

	for (i = 0; i < restart->count; i++)
		ddp_text_add(&list, "%s%s", i ? "," : "", restart->names[i]);
	return ddp_text_finish(&list);
}

/* The nodes that an attempt has had, where all are known. */
static void keep_nodes(struct ddp_restart *restart, const struct ddp_step *step)
{
	struct ddp_text names = { 0 };
	struct ddp_hostlist *hosts;
	uint32_t ranks = 0, i;
	char *list;

	for (i = 0; i < step->node_count; i++) {
		ranks += step->nodes[i].count;
		ddp_text_add(&names, "%s%s", i ? "," : "", step->nodes[i].name);
	}
	list = ddp_text_finish(&names);
	hosts = list ? ddp_hostlist_create(list, NULL) : NULL;
	if (hosts && ranks == step->world_size && take(restart, hosts) == 0)
		restart->count = count(hosts);
	else
		ddp_hostlist_destroy(hosts);
	free(list);
}

/* Of the names from first to before end; end: it is none of them. */
static uint32_t find(const struct ddp_restart *restart, uint32_t first,
		     uint32_t end, const char *node)
{
	while (first < end && strcmp(restart->names[first], node) != 0)
		first++;
	return first;
}

bool ddp_restart_drop(struct ddp_restart *restart, const char *node)
{
	uint32_t end = restart->count + restart->spares;
	uint32_t i = find(restart, restart->count, end, node);

	if (i == end)
		return false;
	memmove(restart->names + i, restart->names + i + 1,
		(end - i - 1) * sizeof(*restart->names));
	restart->spares--;
	return true;
}

/* The first of those that are nearest to a node. */
static const char *find_spare(const struct ddp_restart *restart,
			      const char *node)
{
	const char **spares = restart->names + restart->count;
	uint32_t nearest = 0, least = UINT32_MAX, i, links;

	for (i = 0; restart->network && i < restart->spares; i++) {
		links = ddp_network_distance(restart->network, node, spares[i]);
		if (links < least) {
			least = links;
			nearest = i;
		}
	}
	return spares[nearest];
}

const char *ddp_restart_replace(struct ddp_restart *restart, const char *node)
{
	uint32_t i = find(restart, 0, restart->count, node);
	const char *spare;

	if (i == restart->count || !restart->spares)
		return NULL;
	spare = find_spare(restart, node);
	ddp_restart_drop(restart, spare);
	restart->names[i] = spare;
	return spare;
}

/* Put spares in the place of what is lost, and say so; or why there is none. */
static const char *replace_lost(struct ddp_restart *restart,
				const struct ddp_step *step,
				struct ddp_text *how)
{
	const char *spare;
	uint32_t i;

	for (i = 0; i < step->node_count; i++) {
		if (!step->nodes[i].lost && !step->nodes[i].orphaned)
			continue;
		spare = ddp_restart_replace(restart, step->nodes[i].name);
		if (!spare)
			return "a node was lost, and no spare node is left; "
				"keep some back with --ddp-spares";
		ddp_text_add_quoted(how, "%s%s in place of %s, which was lost",
				    how->length ? ", " : "", spare,
				    step->nodes[i].name);
		restart->overlap = true;
	}
	if (how->length == 0)
		ddp_text_add(how, "on the same nodes");
	return NULL;
}

/* Also those that were late, and had not when there was a verdict. */
static bool have_ended_so(const struct ddp_step *step, uint32_t status)
{
	uint32_t i;

	for (i = 0; i < step->world_size; i++)
		if (!step->ranks[i].ended || step->ranks[i].status != status)
			return false;
	return true;
}

/* Count a failure that is the program's own; the loss of a node is none. */
static void count_failure(struct ddp_restart *restart,
			  const struct ddp_verdict *verdict)
{
	if (verdict->kind == DDP_VERDICT_NODE) {
		restart->quick = restart->failed = 0;
		return;
	}
	restart->quick = verdict->after_ns <
			 (int64_t)DDP_RESTART_QUICK_S * 1000000000 ?
			 restart->quick + 1 : 0;
	restart->lasted_ns[restart->failed++ % DDP_RESTART_OFTEN_MAX] =
		verdict->after_ns;
}

static bool fails_often(const struct ddp_restart *restart)
{
	int64_t lasted_ns = 0;
	uint32_t i;

	for (i = 0; i < DDP_RESTART_OFTEN_MAX; i++)
		lasted_ns += restart->lasted_ns[i];
	return restart->failed >= DDP_RESTART_OFTEN_MAX &&
	       lasted_ns < (int64_t)DDP_RESTART_OFTEN_S * 1000000000;
}

/* Why there is no other attempt, whatever the nodes are; NULL: there may be. */
static const char *find_reason(struct ddp_restart *restart,
			       const struct ddp_verdict *verdict,
			       const struct ddp_step *step, bool gone)
{
	count_failure(restart, verdict);
	if (verdict->kind == DDP_VERDICT_SAVED)
		return "its ranks have saved, so that the job can be requeued";
	if (step->noticed)
		return "its job is about to end";
	if (verdict->kind == DDP_VERDICT_NONE)
		return "it is not known which rank or node failed";
	if (ddp_verdict_code(verdict, step) == DDP_RESTART_NEVER)
		return "exit code 65 says that it would fail again";
	if (ddp_verdict_is_refusal(verdict, step) &&
	    have_ended_so(step, step->ranks[verdict->rank].status))
		return "all ranks refuse their command line, so that it would "
			"fail again";
	if (restart->done == restart->max)
		return "all its restarts are used up";
	if (restart->quick >= DDP_RESTART_QUICK_MAX)
		return "it failed within 10 s of its start three times in a "
			"row, so that it would fail again";
	if (fails_often(restart))
		return "it failed ten times within 10 minutes, so that it "
			"would fail again";
	return gone ? NULL : "processes of it may still run";
}

bool ddp_restart_next(struct ddp_restart *restart,
		      const struct ddp_verdict *verdict,
		      const struct ddp_step *step, bool gone,
		      struct ddp_text *text)
{
	struct ddp_text how = { 0 };
	const char *why;

	if (!restart->max || !step->world_size ||
	    verdict->kind == DDP_VERDICT_SIGNAL)
		return false;
	if (!restart->hosts && restart->lists)
		keep_nodes(restart, step);
	why = find_reason(restart, verdict, step, gone);
	if (!why)
		why = replace_lost(restart, step, &how);
	if (!why && how.failed)
		why = "out of memory";
	if (why)
		ddp_text_add(text, "slurm-ddp: the step is not started again: "
			     "%s\n", why);
	else
		ddp_text_add(text, "slurm-ddp: restart %u of %u: %.*s\n",
			     ++restart->done, restart->max, (int)how.length,
			     how.data);
	free(how.data);
	return !why;
}
