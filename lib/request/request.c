/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts what a step or job asks for: GPUs and tasks of each node, CPUs for
 * them. */
#include "request/request.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "layout/tasks.h"
#include "request/gres.h"

/* The number at the start of text; 0 if there is none, or if it is absurd. */
static uint32_t parse_number(const char *text, const char **rest)
{
	char *end = NULL;
	unsigned long value;

	if (rest)
		*rest = "";
	if (!text || *text < '0' || *text > '9')
		return 0;
	errno = 0;
	value = strtoul(text, &end, 10);
	if (rest)
		*rest = end;
	return errno || value > DDP_RANK_MAX ? 0 : (uint32_t)value;
}

static uint32_t number(const char *text)
{
	return parse_number(text, NULL);
}

/* The fixed number of nodes; 0 where it is open. */
static uint32_t get_fixed_nodes(const char *nodes)
{
	const char *rest;
	uint32_t min = parse_number(nodes, &rest), max;

	if (*rest == '-') {
		max = number(rest + 1);
		return max == 0 || max == min ? min : 0;
	}
	return min;
}

uint32_t ddp_request_nodes(const struct ddp_request *request)
{
	return request->nodes ? get_fixed_nodes(request->nodes) :
		!request->in_job;
}

/* Count the GPUs by the options that are for each node; *gpus is 0 if they name
 * none. */
static int get_node_gpus(const struct ddp_request *request, uint32_t *gpus,
			 struct ddp_error *error)
{
	const char *per_node = request->gpus_per_node;
	uint32_t first, second;

	if (ddp_gpus_count(per_node, &first, error) < 0 ||
	    ddp_gres_count_gpus(request->gres, &second, error) < 0)
		return -1;
	/* If there are several types, some might be replaced and some added. */
	if (first && second && per_node[strspn(per_node, "0123456789")])
		return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				     "--gpus-per-node=%.64s and "
				     "--gres=%.64s both name GPUs; name all of "
				     "them in one",
				     per_node, request->gres);
	*gpus = second ? second : first;
	return 0;
}

int ddp_request_gpus(const struct ddp_request *request, uint32_t *gpus,
		     struct ddp_error *error)
{
	uint32_t nodes = get_fixed_nodes(request->nodes), total;

	if (get_node_gpus(request, &total, error) < 0)
		return -1;
	if (total || !request->gpus) {
		*gpus = total;
		return 0;
	}
	if (ddp_gpus_count(request->gpus, &total, error) < 0)
		return -1;
	if (!nodes)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				     "--gpus=%.64s does not tell how many GPUs "
				     "each node has; add -N NODES, or give the "
				     "number of tasks with -n", request->gpus);
	if (total % nodes)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				     "--gpus=%.64s does not divide evenly over "
				     "%u nodes; ask for GPUs by "
				     "--gpus-per-node, or give the number of "
				     "tasks with -n", request->gpus, nodes);
	*gpus = total / nodes;
	return 0;
}

int ddp_request_gpus_per_node(const struct ddp_request *request, char *text,
			      size_t size, struct ddp_error *error)
{
	uint32_t nodes = get_fixed_nodes(request->nodes), named;

	*text = '\0';
	if (!request->gpus || !nodes)
		return 0;
	if (get_node_gpus(request, &named, error) < 0)
		return -1;
	return named ? 0 : ddp_gpus_divide(request->gpus, nodes, text, size,
					   error);
}

/*
 * The user gave the number of tasks. Slurm may put more of them on a node than
 * it has GPUs while GPUs of other nodes stay idle; a number of tasks per node
 * prevents that. It is left out where the product is not the number of tasks:
 * srun would warn that it cannot be honoured, and tasks would see a wrong
 * number.
 */
static void fill_bound(const struct ddp_request *request, uint32_t gpus,
		       struct ddp_fill *fill)
{
	uint32_t ntasks = number(request->ntasks);
	uint32_t nodes = get_fixed_nodes(request->nodes);

	if (request->ntasks_per_node || !gpus || !ntasks)
		return;
	if (request->nodes ? nodes && ntasks == (uint64_t)nodes * gpus
			   : ntasks > gpus)
		fill->ntasks_per_node = gpus;
}

/* Returns 0, or -1 if the number of nodes is open, which one task for each of
 * what needs. */
static int check_nodes(const struct ddp_request *request, const char *what,
		       struct ddp_error *error)
{
	if (ddp_request_nodes(request) > 0)
		return 0;
	return ddp_error_set(error, DDP_ERROR_ARGUMENT,
			     "one task a %s needs a fixed number of nodes, and "
			     "%s%.64s leaves it open; give -N NODES, or the "
			     "number of tasks with -n", what, request->nodes ?
			     "-N" : "--jobid without -N",
			     request->nodes ? request->nodes : "");
}

/*
 * Fill in one task for each GPU of each node. The number of GPUs must be known.
 */
static int fill_gpus(const struct ddp_request *request, struct ddp_fill *fill,
		     struct ddp_error *error)
{
	uint32_t gpus;

	if (request->gpus_per_task || request->gpus_per_socket)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				     "%s does not tell how many GPUs each node "
				     "has; give the number of tasks with -n or "
				     "--ntasks-per-node",
				     request->gpus_per_task ?
				     "--gpus-per-task" : "--gpus-per-socket");
	if (ddp_request_gpus(request, &gpus, error) < 0)
		return -1;
	if (gpus && check_nodes(request, "GPU", error) < 0)
		return -1;
	fill->ntasks_per_node = gpus;
	return 0;
}

bool ddp_request_several(const struct ddp_request *request)
{
	return request->ntasks_per_gpu ||
	       number(request->ntasks_per_node) > 1 ||
	       number(request->ntasks) > ddp_request_nodes(request);
}

/* Fill in one task for each node. The user must have given no other number. */
static int fill_launcher(const struct ddp_request *request,
			 struct ddp_fill *fill, struct ddp_error *error)
{
	uint32_t nodes = ddp_request_nodes(request), gpus;

	if (check_nodes(request, "node", error) < 0 ||
	    ddp_request_gpus(request, &gpus, error) < 0)
		return -1;
	if (ddp_request_several(request))
		return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				     "%s starts the ranks of a node itself, "
				     "and the step has several tasks a node; "
				     "give -N NODES and no number of tasks, or "
				     "start the program itself: srun --ddp "
				     "python3 PROGRAM", request->launcher);
	fill->ntasks_per_node = !request->ntasks_per_node;
	/* The job's own number of tasks may be another. */
	if (request->in_job && !request->ntasks)
		fill->ntasks = nodes;
	return 0;
}

bool ddp_request_outranks(const struct ddp_request *request)
{
	uint32_t nodes = ddp_request_nodes(request), gpus;
	uint32_t ntasks = number(request->ntasks);

	if (!request->ntasks_inherited || request->ntasks_per_gpu ||
	    nodes == 0)
		return false;
	if (request->per_node_typed)
		return true;
	if (!request->nodes_typed || request->in_step)
		return request->nodes_typed;
	return ddp_request_gpus(request, &gpus, NULL) == 0 && gpus > 0 &&
	       (ntasks < nodes || ntasks > (uint64_t)nodes * gpus);
}

/* Fill in what the request leaves open, but for an outranked number. */
static int fill_tasks(const struct ddp_request *request, struct ddp_fill *fill,
		      struct ddp_error *error)
{
	uint32_t gpus, nodes = ddp_request_nodes(request);

	if (request->launcher && !request->arbitrary && !request->pty)
		return fill_launcher(request, fill, error);
	if (request->arbitrary || request->ntasks_per_node)
		return 0;
	/* Slurm itself counts the GPUs of one node only. */
	if (request->ntasks_per_gpu && !request->ntasks && nodes > 1 &&
	    get_node_gpus(request, &gpus, NULL) == 0)
		fill->ntasks = nodes * gpus * number(request->ntasks_per_gpu);
	if (request->ntasks_per_gpu)
		return 0;
	if (request->ntasks) {
		if (!request->gpus_per_task &&
		    ddp_request_gpus(request, &gpus, NULL) == 0)
			fill_bound(request, gpus, fill);
		return 0;
	}
	if (!request->pty)
		return fill_gpus(request, fill, error);
	fill->ntasks = 1;
	if (request->nodes && !request->nodes_typed)
		fill->nodes = 1;
	return 0;
}

int ddp_request_fill(const struct ddp_request *request, struct ddp_fill *fill,
		     struct ddp_error *error)
{
	uint32_t tasks = number(request->ntasks_per_node);

	memset(fill, 0, sizeof(*fill));
	if (fill_tasks(request, fill, error) < 0)
		return -1;
	if (fill->ntasks_per_node)
		tasks = fill->ntasks_per_node;
	if (request->outranked && !fill->ntasks)
		fill->ntasks = ddp_request_nodes(request) *
			       (tasks ? tasks : 1);
	return 0;
}

/* The number of nodes, where Slurm may not add any; else 0. */
static uint32_t get_exact_nodes(const char *nodes)
{
	const char *rest;
	uint32_t count = parse_number(nodes, &rest);

	return *rest == '\0' || (*rest == '-' && number(rest + 1) == count) ?
		count : 0;
}

int ddp_request_check_gpus(const struct ddp_request *request,
			   struct ddp_error *error)
{
	uint32_t nodes = get_exact_nodes(request->nodes), gpus;
	uint64_t ranks;

	if (!nodes || request->gpus_per_task || request->gpus_per_socket ||
	    request->ntasks_per_gpu || request->arbitrary ||
	    ddp_request_gpus(request, &gpus, NULL) < 0 || !gpus)
		return 0;
	ranks = request->ntasks ? number(request->ntasks) :
		(uint64_t)nodes * number(request->ntasks_per_node);
	if (ranks <= (uint64_t)nodes * gpus)
		return 0;
	return ddp_error_set(error, DDP_ERROR_ARGUMENT,
			     "%llu ranks have %u GPUs a node on %u node%s; "
			     "ask for --gres=gpu:%llu, start %u tasks a node, "
			     "or let ranks share with --ddp-gpus=share",
			     (unsigned long long)ranks, gpus, nodes,
			     nodes == 1 ? "" : "s",
			     (unsigned long long)(ranks + nodes - 1) / nodes,
			     gpus);
}

/* The smallest entry of a list such as "4(x2),8"; 0 if it cannot be read. */
static uint32_t find_smallest(const char *text, uint32_t nodes)
{
	uint32_t *counts = NULL, least = 0, i;

	if (nodes && nodes <= DDP_RANK_MAX)
		counts = calloc(nodes, sizeof(*counts));
	if (!counts)
		return 0;
	if (ddp_tasks_parse(text, nodes, counts, NULL) == 0)
		for (least = counts[0], i = 1; i < nodes; i++)
			least = counts[i] < least ? counts[i] : least;
	free(counts);
	return least;
}

uint32_t ddp_request_cpus_per_task(const char *job_cpus_per_task,
				   const char *job_cpus_per_node,
				   uint32_t job_nodes,
				   uint32_t tasks_per_node)
{
	uint32_t cpus = number(job_cpus_per_task), room;

	if (!job_cpus_per_node || !tasks_per_node)
		return cpus;
	room = find_smallest(job_cpus_per_node, job_nodes) / tasks_per_node;
	return job_cpus_per_task && cpus < room ? cpus : room;
}

/* The tasks that a request names for each node with so many GPUs; or 1. */
static uint32_t count_tasks(const struct ddp_request *request, uint32_t gpus)
{
	uint32_t nodes = get_fixed_nodes(request->nodes);
	uint32_t ntasks = number(request->ntasks);

	if (request->ntasks_per_node)
		return number(request->ntasks_per_node);
	if (!request->ntasks)
		return 1;
	if (nodes)
		return (ntasks + nodes - 1) / nodes;
	return ntasks < gpus ? ntasks : gpus;
}

/* The CPUs that it asks for on each such node. */
static uint64_t count_cpus(const struct ddp_request *request, uint32_t gpus)
{
	uint64_t have = request->cpus_per_task ?
		number(request->cpus_per_task) : 1, more;

	have *= count_tasks(request, gpus);
	more = (uint64_t)number(request->cpus_per_gpu) * gpus;
	have = more > have ? more : have;
	more = number(request->mincpus);
	return more > have ? more : have;
}

bool ddp_request_needs_even(const struct ddp_request *request, uint32_t *gpus)
{
	uint32_t nodes = get_fixed_nodes(request->nodes);
	uint32_t ntasks = number(request->ntasks);

	if (!ntasks || request->ntasks_per_node || request->ntasks_per_gpu ||
	    request->arbitrary || request->cpus_open ||
	    ddp_request_gpus(request, gpus, NULL) < 0 || *gpus < 2)
		return false;
	return ntasks > *gpus && ntasks % *gpus == 0 &&
	       (!nodes || ntasks == (uint64_t)nodes * *gpus);
}

int ddp_request_check_cpus(const struct ddp_request *request,
			   enum ddp_cpus *cpus, struct ddp_error *error)
{
	bool whole = false;	/* gpus and ranks are the job's, not a node's */
	uint32_t gpus, ranks;
	uint64_t have;

	*cpus = DDP_CPUS_ENOUGH;
	if (ddp_request_gpus(request, &gpus, NULL) < 0) {
		whole = !get_fixed_nodes(request->nodes) && !request->ntasks &&
			request->gpus &&
			ddp_gpus_count(request->gpus, &gpus, NULL) == 0;
		if (!whole)
			return 0;
	}
	if (!gpus || request->cpus_open || request->ntasks_per_gpu)
		return 0;
	ranks = request->ntasks || request->ntasks_per_node ?
		count_tasks(request, gpus) : gpus;
	have = count_cpus(request, gpus);
	if (have < ranks)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				     "%u GPUs%s make %u ranks, and the "
				     "request has CPUs for %llu only; add "
				     "%s--ntasks-per-node=%u or "
				     "--cpus-per-gpu=CPUS", gpus,
				     whole ? "" : " a node", ranks,
				     (unsigned long long)have,
				     whole ? "-N1 and " : "", ranks);
	if (have < 2 * (uint64_t)ranks)
		*cpus = DDP_CPUS_ONE_A_RANK;
	return 0;
}
