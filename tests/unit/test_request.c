/* SPDX-License-Identifier: BSD-3-Clause */
/* What a step asks for, and what is filled in. */
#include <criterion/criterion.h>

#include <string.h>

#include "request/request.h"

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

/* Expected: a part of the error's text; NULL: no error. */
static const struct {
	struct ddp_request request;
	const char *refusal;
} crowd_table[] = {
	{ { .nodes = "2", .ntasks = "4", .gres = "gres:gpu:2" }, NULL },
	{ { .nodes = "2", .ntasks = "8", .gres = "gres:gpu:2" },
	  "8 ranks have 2 GPUs a node on 2 nodes; ask for --gres=gpu:4, start "
	  "2 tasks a node, or let ranks share with --ddp-gpus=share" },
	{ { .nodes = "2-2", .ntasks = "5", .gpus_per_node = "2" },
	  "ask for --gres=gpu:3" },
	{ { .nodes = "1", .ntasks_per_node = "3", .gpus = "2" },
	  "3 ranks have 2 GPUs a node on 1 node;" },
	{ { .nodes = "2", .ntasks = "2", .ntasks_per_node = "9",
	    .gres = "gres:gpu:1" }, NULL },
	/* Slurm may give more nodes. */
	{ { .nodes = "2-0", .ntasks = "8", .gres = "gres:gpu:2" }, NULL },
	{ { .nodes = "1-4", .ntasks = "8", .gres = "gres:gpu:2" }, NULL },
	{ { .ntasks = "8", .gres = "gres:gpu:2" }, NULL },
	/* Not known, or no GPUs */
	{ { .nodes = "2", .ntasks = "8" }, NULL },
	{ { .nodes = "2", .gres = "gres:gpu:2" }, NULL },
	{ { .nodes = "2", .ntasks = "8", .gpus = "3" }, NULL },
	{ { .nodes = "2", .ntasks = "8", .gres = "gres:gpu:2",
	    .arbitrary = true }, NULL },
	{ { .nodes = "2", .ntasks = "8", .gres = "gres:gpu:2",
	    .gpus_per_task = "1" }, NULL },
	{ { .nodes = "2", .gres = "gres:gpu:2", .ntasks_per_node = "4",
	    .ntasks_per_gpu = "2" }, NULL },
};

Test(request, refuses_more_ranks_than_gpus)
{
	struct ddp_error error;
	size_t i;
	int rc;

	for (i = 0; i < ROWS(crowd_table); i++) {
		error = (struct ddp_error){ .text = "" };
		rc = ddp_request_check_gpus(&crowd_table[i].request, &error);
		cr_expect_eq(rc, crowd_table[i].refusal ? -1 : 0, "row %zu", i);
		if (crowd_table[i].refusal)
			cr_expect(strstr(error.text, crowd_table[i].refusal),
				  "row %zu: %s", i, error.text);
	}
}

/* Expected: GPUs of each node, or a part of the error's text. */
static const struct {
	struct ddp_request request;
	uint32_t gpus;
	const char *refusal;
} gpus_table[] = {
	{ { .gres = NULL }, 0, NULL },
	{ { .gres = "gres:gpu" }, 1, NULL },
	{ { .gres = "gres:gpu:2" }, 2, NULL },
	{ { .gres = "gres:gpu:a100:2" }, 2, NULL },
	{ { .gres = "gres:gpu:a100:2,gres:gpu:v100:1" }, 3, NULL },
	{ { .gres = "none" }, 0, NULL },
	{ { .gres = "gres:gpu:0" }, 0, NULL },
	{ { .gres = "gres:shard:2" }, 0, NULL },
	{ { .gres = "gres:mps:50" }, 0, NULL },
	{ { .gres = "gres:shard:2,gres:gpu:1" }, 1, NULL },
	{ { .gres = "gres:gpu:x:" }, 0, "number of GPUs" },
	{ { .gpus_per_node = "2" }, 2, NULL },
	{ { .gpus_per_node = "a100:2,v100:1" }, 3, NULL },
	{ { .gpus_per_node = "2:2" }, 0, "type of GPU" },
	/* --gpus counts those of the whole step. */
	{ { .gpus = "4", .nodes = "2" }, 2, NULL },
	{ { .gpus = "4", .nodes = "2-2" }, 2, NULL },
	{ { .gpus = "4", .nodes = "2-0" }, 2, NULL },
	{ { .gpus = "a100:4", .nodes = "4" }, 1, NULL },
	{ { .gpus = "0" , .nodes = "2" }, 0, NULL },
	{ { .gpus = "3", .nodes = "2" }, 0, "does not divide" },
	{ { .gpus = "1", .nodes = "2" }, 0, "does not divide" },
	{ { .gpus = "4" }, 0, "add -N" },
	{ { .gpus = "4", .nodes = "1-2" }, 0, "-n" },
	/* Slurm reads --gpus-per-node, then --gres; the later one wins. */
	{ { .gpus_per_node = "2", .gres = "gres:shard:1" }, 2, NULL },
	{ { .gpus_per_node = "2", .gres = "gres:nic:1" }, 2, NULL },
	{ { .gpus_per_node = "2", .gres = "none" }, 2, NULL },
	{ { .gpus_per_node = "2", .gres = "gres:gpu:2" }, 2, NULL },
	{ { .gpus_per_node = "2", .gres = "gres:gpu:1" }, 1, NULL },
	{ { .gpus_per_node = "1", .gres = "gres:gpu:4" }, 4, NULL },
	{ { .gpus_per_node = "2", .gres = "gres:gpu:0" }, 2, NULL },
	{ { .gpus_per_node = "0", .gres = "gres:gpu:2" }, 2, NULL },
	{ { .gpus_per_node = "a100:1", .gres = "gres:gpu:v100:1" }, 0,
	  "both name GPUs" },
	/* --gpus is read only if these name no GPUs. */
	{ { .gpus = "4", .nodes = "2", .gres = "gres:nic:1" }, 2, NULL },
	{ { .gpus = "4", .nodes = "2", .gres = "gres:gpu:1" }, 1, NULL },
	{ { .gpus = "4", .gpus_per_node = "2" }, 2, NULL },
};

Test(request, gpus)
{
	size_t i;

	for (i = 0; i < ROWS(gpus_table); i++) {
		const struct ddp_request *request = &gpus_table[i].request;
		const char *refusal = gpus_table[i].refusal;
		struct ddp_error error = { 0 };
		uint32_t gpus = 99;
		int rc = ddp_request_gpus(request, &gpus, &error);

		cr_expect_eq(rc, refusal ? -1 : 0, "row %zu: %s", i,
			     error.text);
		cr_expect_eq(gpus, refusal ? 99 : gpus_table[i].gpus,
			     "row %zu: %u", i, gpus);
		if (refusal)
			cr_expect_not_null(strstr(error.text, refusal),
					   "row %zu: %s", i, error.text);
	}
}

/* Expected: nodes, tasks, tasks per node; or a part of the error's text. */
static const struct {
	struct ddp_request request;
	struct ddp_fill fill;
	const char *refusal;
} fill_table[] = {
	/* The user says nothing of tasks: one a GPU. */
	{ { .nodes = "2", .gres = "gpu:2" }, { 0, 0, 2 }, NULL },
	{ { .gres = "gpu:2" }, { 0, 0, 2 }, NULL },
	{ { .nodes = "2", .gpus_per_node = "4" }, { 0, 0, 4 }, NULL },
	{ { .nodes = "2", .gpus = "4" }, { 0, 0, 2 }, NULL },
	{ { .nodes = "2-0", .gres = "gpu:2" }, { 0, 0, 2 }, NULL },
	{ { .nodes = "2", .gres = "gpu:2", .in_job = true }, { 0, 0, 2 },
	  NULL },
	{ { .nodes = "2" }, { 0, 0, 0 }, NULL },
	{ { .nodes = "2", .gres = "none" }, { 0, 0, 0 }, NULL },
	{ { .nodes = "2", .gres = "shard:2" }, { 0, 0, 0 }, NULL },
	{ { .in_job = true }, { 0, 0, 0 }, NULL },
	/* What the user said stays. */
	{ { .nodes = "2", .gres = "gpu:2", .ntasks_per_node = "1" },
	  { 0, 0, 0 }, NULL },
	{ { .nodes = "2", .gres = "gpu:2", .ntasks = "4",
	    .ntasks_per_node = "1" }, { 0, 0, 0 }, NULL },
	/* Slurm counts the GPUs of one node, unless it is told --gpus. */
	{ { .nodes = "2", .gres = "gpu:2", .ntasks_per_gpu = "1" },
	  { 0, 4, 0 }, NULL },
	{ { .nodes = "3", .gpus_per_node = "2", .ntasks_per_gpu = "2" },
	  { 0, 12, 0 }, NULL },
	{ { .gres = "gpu:2", .ntasks_per_gpu = "1" }, { 0, 0, 0 }, NULL },
	{ { .nodes = "2", .gpus = "4", .ntasks_per_gpu = "1" }, { 0, 0, 0 },
	  NULL },
	{ { .nodes = "2", .gres = "gpu:2", .ntasks_per_gpu = "1",
	    .ntasks = "2" }, { 0, 0, 0 }, NULL },
	{ { .nodes = "1-2", .gres = "gpu:2", .ntasks_per_gpu = "1" },
	  { 0, 0, 0 }, NULL },
	{ { .nodes = "2", .gres = "gpu:2", .arbitrary = true }, { 0, 0, 0 },
	  NULL },
	/* Only -n: at most one task a GPU on each node, if -n allows that. */
	{ { .nodes = "2", .gres = "gpu:2", .ntasks = "2" }, { 0, 0, 0 },
	  NULL },
	{ { .nodes = "2", .gres = "gpu:2", .ntasks = "3" }, { 0, 0, 0 },
	  NULL },
	{ { .nodes = "2", .gres = "gpu:2", .ntasks = "4" }, { 0, 0, 2 },
	  NULL },
	{ { .nodes = "2", .gres = "gpu:2", .ntasks = "5" }, { 0, 0, 0 },
	  NULL },
	{ { .nodes = "1-2", .gres = "gpu:2", .ntasks = "4" }, { 0, 0, 0 },
	  NULL },
	{ { .gres = "gpu:2", .ntasks = "4" }, { 0, 0, 2 }, NULL },
	{ { .gres = "gpu:2", .ntasks = "3" }, { 0, 0, 2 }, NULL },
	{ { .gres = "gpu:2", .ntasks = "2" }, { 0, 0, 0 }, NULL },
	{ { .gres = "gpu:2", .ntasks = "1" }, { 0, 0, 0 }, NULL },
	{ { .gpus = "3", .nodes = "2", .ntasks = "3" }, { 0, 0, 0 }, NULL },
	{ { .gpus = "4", .ntasks = "4" }, { 0, 0, 0 }, NULL },
	{ { .in_job = true, .gres = "gpu:2", .ntasks = "1" }, { 0, 0, 0 },
	  NULL },
	{ { .nodes = "2", .gpus_per_task = "1", .ntasks = "4" },
	  { 0, 0, 0 }, NULL },
	/* srun inherits another number, which is then replaced. */
	{ { .nodes = "2", .gres = "gpu:2", .outranked = true }, { 0, 4, 2 },
	  NULL },
	{ { .nodes = "2", .ntasks_per_node = "3", .outranked = true },
	  { 0, 6, 0 }, NULL },
	{ { .nodes = "2", .outranked = true }, { 0, 2, 0 }, NULL },
	{ { .pty = true, .nodes = "2", .outranked = true, .nodes_typed = true },
	  { 0, 1, 0 }, NULL },
	/* --pty: one task, on one node unless the user asked for more. */
	{ { .pty = true }, { 0, 1, 0 }, NULL },
	{ { .pty = true, .gres = "gpu:2" }, { 0, 1, 0 }, NULL },
	{ { .pty = true, .nodes = "2", .in_job = true }, { 1, 1, 0 }, NULL },
	{ { .pty = true, .nodes = "2", .nodes_typed = true }, { 0, 1, 0 },
	  NULL },
	{ { .pty = true, .ntasks = "2" }, { 0, 0, 0 }, NULL },
	{ { .pty = true, .ntasks_per_node = "1" }, { 0, 0, 0 }, NULL },
	/* A launcher: one task a node, of a known number of nodes. */
	{ { .launcher = "torchrun" }, { 0, 0, 1 }, NULL },
	{ { .launcher = "torchrun", .nodes = "2", .gres = "gpu:2" },
	  { 0, 0, 1 }, NULL },
	{ { .launcher = "torchrun", .nodes = "2-0" }, { 0, 0, 1 }, NULL },
	{ { .launcher = "torchrun", .nodes = "2", .ntasks = "2" },
	  { 0, 0, 1 }, NULL },
	{ { .launcher = "torchrun", .nodes = "2", .gpus_per_task = "2" },
	  { 0, 0, 1 }, NULL },
	{ { .launcher = "torchrun", .nodes = "2", .in_job = true },
	  { 0, 2, 1 }, NULL },
	{ { .launcher = "torchrun", .nodes = "2", .in_job = true,
	    .ntasks = "1" }, { 0, 0, 1 }, NULL },
	{ { .launcher = "torchrun", .nodes = "2", .arbitrary = true,
	    .ntasks = "4" }, { 0, 0, 0 }, NULL },
	{ { .launcher = "torchrun", .pty = true }, { 0, 1, 0 }, NULL },
	{ { .launcher = "torchrun", .nodes = "2", .ntasks = "3" },
	  { 0, 0, 0 }, "torchrun starts the ranks of a node itself" },
	{ { .launcher = "torchrun", .ntasks = "2" }, { 0, 0, 0 }, "give -N" },
	{ { .launcher = "torchrun", .ntasks_per_node = "2" }, { 0, 0, 0 },
	  "several tasks a node" },
	{ { .launcher = "torchrun", .ntasks_per_gpu = "1" }, { 0, 0, 0 },
	  "several tasks a node" },
	{ { .launcher = "torchrun", .nodes = "1-2" }, { 0, 0, 0 },
	  "one task a node needs a fixed number of nodes, and -N1-2" },
	{ { .launcher = "torchrun", .in_job = true }, { 0, 0, 0 },
	  "--jobid without -N" },
	{ { .launcher = "torchrun", .gpus = "4" }, { 0, 0, 0 }, "-N NODES" },
	/* Refused, with the fix, if Slurm would start too few tasks. */
	{ { .nodes = "1-2", .gres = "gpu:2" }, { 0, 0, 0 }, "-N1-2" },
	{ { .nodes = "1-2", .gres = "gpu:2" }, { 0, 0, 0 }, "-n" },
	{ { .gres = "gpu:2", .in_job = true }, { 0, 0, 0 },
	  "--jobid without -N" },
	{ { .gpus = "4" }, { 0, 0, 0 }, "-N NODES" },
	{ { .gpus = "3", .nodes = "2" }, { 0, 0, 0 }, "-n" },
	{ { .gpus_per_task = "1", .nodes = "2" }, { 0, 0, 0 },
	  "--gpus-per-task" },
	{ { .gpus_per_socket = "1", .nodes = "2" }, { 0, 0, 0 },
	  "--gpus-per-socket" },
};

Test(request, fill)
{
	size_t i;

	for (i = 0; i < ROWS(fill_table); i++) {
		const struct ddp_fill *want = &fill_table[i].fill;
		const char *refusal = fill_table[i].refusal;
		struct ddp_error error = { 0 };
		struct ddp_fill fill;
		int rc = ddp_request_fill(&fill_table[i].request, &fill,
					  &error);

		cr_expect_eq(rc, refusal ? -1 : 0, "row %zu: %s", i,
			     error.text);
		if (refusal)
			cr_expect_not_null(strstr(error.text, refusal),
					   "row %zu: %s", i, error.text);
		cr_expect(fill.nodes == want->nodes &&
			  fill.ntasks == want->ntasks &&
			  fill.ntasks_per_node == want->ntasks_per_node,
			  "row %zu: %u %u %u", i, fill.nodes, fill.ntasks,
			  fill.ntasks_per_node);
	}
}

/* An inherited number of tasks, and whether what is typed outranks it. */
static const struct {
	struct ddp_request request;
	bool outranks;
} inherited_table[] = {
	{ { .nodes = "1", .ntasks = "1", .per_node_typed = true,
	    .ntasks_per_node = "2" }, true },
	{ { .nodes = "2", .ntasks = "4", .nodes_typed = true }, false },
	/* #SBATCH -N2 -n64, and srun -N2 without GPUs */
	{ { .nodes = "2", .ntasks = "64", .nodes_typed = true }, false },
	{ { .nodes = "2", .ntasks = "64", .nodes_typed = true,
	    .gres = "gpu:2" }, true },
	{ { .nodes = "2", .ntasks = "1", .nodes_typed = true,
	    .gres = "gpu:2" }, true },
	{ { .nodes = "2", .ntasks = "2", .nodes_typed = true,
	    .gres = "gpu:2" }, false },
	{ { .nodes = "2", .ntasks = "4", .nodes_typed = true,
	    .gres = "gpu:2" }, false },
	/* An outer step's number is not for another number of nodes. */
	{ { .nodes = "1", .ntasks = "1", .nodes_typed = true,
	    .in_step = true }, true },
	{ { .nodes = "1", .ntasks = "1", .in_step = true }, false },
	{ { .nodes = "2", .ntasks = "64", .gres = "gpu:2" }, false },
	{ { .nodes = "1-2", .ntasks = "64", .nodes_typed = true,
	    .in_step = true }, false },
	{ { .nodes = "1", .ntasks = "1", .per_node_typed = true,
	    .ntasks_per_gpu = "1" }, false },
};

Test(request, outranks_what_it_inherits)
{
	struct ddp_request request;
	size_t i;

	for (i = 0; i < ROWS(inherited_table); i++) {
		request = inherited_table[i].request;
		cr_expect(!ddp_request_outranks(&request), "row %zu", i);
		request.ntasks_inherited = true;
		cr_expect_eq(ddp_request_outranks(&request),
			     inherited_table[i].outranks, "row %zu", i);
	}
}

/* Jobs, and how many tasks a node should be told; 0: it is left open. */
static const struct {
	struct ddp_request request;
	uint32_t gpus;
} even_table[] = {
	{ { .nodes = "2", .gpus = "4", .ntasks = "4" }, 2 },
	{ { .gres = "gpu:2", .ntasks = "4" }, 2 },
	{ { .nodes = "2", .gres = "gpu:2", .ntasks = "4" }, 2 },
	{ { .nodes = "1", .gres = "gpu:4", .ntasks = "4" }, 0 },
	{ { .nodes = "2", .gres = "gpu:2", .ntasks = "4",
	    .ntasks_per_node = "2" }, 0 },
	{ { .nodes = "2", .gres = "gpu:2" }, 0 },
	{ { .nodes = "2", .gres = "gpu:2", .ntasks = "3" }, 0 },
	{ { .nodes = "4", .gres = "gpu:1", .ntasks = "4" }, 0 },
	{ { .nodes = "2", .gres = "gpu:2", .ntasks = "4", .cpus_open = true },
	  0 },
	{ { .nodes = "2", .ntasks = "4" }, 0 },
};

Test(request, needs_even_nodes)
{
	uint32_t gpus;
	size_t i;

	for (i = 0; i < ROWS(even_table); i++) {
		cr_expect_eq(ddp_request_needs_even(&even_table[i].request,
						    &gpus),
			     even_table[i].gpus > 0, "row %zu", i);
		if (even_table[i].gpus)
			cr_expect_eq(gpus, even_table[i].gpus, "row %zu", i);
	}
}

/* What --gpus-per-node must say; NULL: refused. */
static const struct {
	struct ddp_request request;
	const char *text;
} per_node_table[] = {
	{ { .gpus = "4", .nodes = "2" }, "2" },
	{ { .gpus = "a100:4,v100:2", .nodes = "2" }, "a100:2,v100:1" },
	{ { .gpus = "4", .nodes = "2", .gres = "gres:nic:1" }, "2" },
	{ { .gpus = "4" }, "" },
	{ { .gpus = "4", .nodes = "1-2" }, "" },
	{ { .gpus = "4", .nodes = "2", .gres = "gres:gpu:1" }, "" },
	{ { .gpus = "4", .nodes = "2", .gpus_per_node = "2" }, "" },
	{ { .gres = "gres:gpu:2", .nodes = "2" }, "" },
	{ { .gpus = "a100:3,v100:1", .nodes = "2" }, NULL },
	{ { .gpus = "4", .nodes = "2", .gres = "gres:gpu:x:" }, NULL },
};

Test(request, gpus_per_node)
{
	char text[32];
	size_t i;

	for (i = 0; i < ROWS(per_node_table); i++) {
		const char *want = per_node_table[i].text;
		int rc = ddp_request_gpus_per_node(&per_node_table[i].request,
						   text, sizeof(text), NULL);

		cr_expect_eq(rc, want ? 0 : -1, "row %zu", i);
		cr_expect_str_eq(text, want ? want : "", "row %zu", i);
	}
}

static const struct {
	const char *cpus_per_task, *cpus_per_node;
	uint32_t nodes, tasks_per_node, cpus;
} cpus_table[] = {
	{ "4", "8(x2)", 2, 2, 4 },
	{ "4", "8(x2)", 2, 1, 4 },
	{ "8", "8(x2)", 2, 2, 4 },	/* for one task a node */
	{ "8", "8(x2),6", 3, 2, 3 },	/* the smallest node decides */
	{ "8", "9(x2)", 2, 2, 4 },
	{ "8", "8(x2)", 2, 16, 0 },
	{ "4", NULL, 2, 2, 4 },
	{ "4", "8(x2)", 2, 0, 4 },
	{ "4", "8(x2)", 3, 2, 0 },	/* lists two nodes, not three */
	{ "4", "nonsense", 2, 2, 0 },
	{ "4", "8(x2)", 0, 2, 0 },
	{ "x", "8(x2)", 2, 2, 0 },
	{ "", NULL, 2, 2, 0 },
	{ NULL, NULL, 2, 2, 0 },
	{ NULL, "8(x2),6", 3, 1, 6 },	/* all of the smallest node */
	{ "99999999999999999999999", NULL, 2, 2, 0 },
};

Test(request, cpus_per_task)
{
	size_t i;

	for (i = 0; i < ROWS(cpus_table); i++)
		cr_expect_eq(ddp_request_cpus_per_task(
				     cpus_table[i].cpus_per_task,
				     cpus_table[i].cpus_per_node,
				     cpus_table[i].nodes,
				     cpus_table[i].tasks_per_node),
			     cpus_table[i].cpus, "row %zu", i);
}

enum verdict { ENOUGH, TIGHT, REFUSED };

static const struct {
	struct ddp_request request;
	enum verdict verdict;
	const char *says;
} check_table[] = {
	/* Neither CPUs nor tasks: Slurm gives a job one CPU a node. */
	{ { .nodes = "2", .gres = "gpu:2" }, REFUSED, "--ntasks-per-node=2" },
	{ { .nodes = "2", .gres = "gpu:2" }, REFUSED, "--cpus-per-gpu" },
	{ { .gres = "gpu:8" }, REFUSED, "--ntasks-per-node=8" },
	{ { .nodes = "2", .gpus = "8" }, REFUSED, "--ntasks-per-node=4" },
	{ { .gres = "gpu:4", .cpus_per_task = "3" }, REFUSED, "for 3 only" },
	{ { .gres = "gpu:1" }, TIGHT, NULL },
	{ { .gres = "gpu:2", .ntasks_per_node = "2" }, TIGHT, NULL },
	{ { .gres = "gpu:2", .cpus_per_gpu = "1" }, TIGHT, NULL },
	{ { .gres = "gpu:2", .cpus_per_task = "2" }, TIGHT, NULL },
	{ { .gres = "gpu:2", .mincpus = "2" }, TIGHT, NULL },
	{ { .gres = "gpu:2", .ntasks = "4", .nodes = "2" }, TIGHT, NULL },
	{ { .gres = "gpu:2", .ntasks = "4" }, TIGHT, NULL },
	{ { .gres = "gpu:2", .ntasks = "1" }, TIGHT, NULL },
	{ { .gres = "gpu:2", .ntasks_per_node = "2", .cpus_per_task = "2" },
	  ENOUGH, NULL },
	{ { .gres = "gpu:2", .cpus_per_gpu = "2" }, ENOUGH, NULL },
	{ { .gres = "gpu:2", .cpus_per_task = "8" }, ENOUGH, NULL },
	{ { .gres = "gpu:2", .mincpus = "8" }, ENOUGH, NULL },
	{ { .gres = "gpu:2", .ntasks = "4", .cpus_per_task = "4" }, ENOUGH,
	  NULL },
	{ { .gres = "gpu:4", .ntasks_per_node = "1", .cpus_per_task = "2" },
	  ENOUGH, NULL },
	/* Nobody can tell whether these are too few. */
	{ { .gres = "gpu:2", .cpus_open = true }, ENOUGH, NULL },
	{ { .gres = "gpu:2", .ntasks_per_gpu = "1" }, ENOUGH, NULL },
	{ { .gpus = "4", .nodes = "1-2" }, REFUSED, "4 GPUs make 4 ranks" },
	{ { .gpus = "4" }, REFUSED, "add -N1 and --ntasks-per-node=4 or" },
	{ { .gpus = "4", .cpus_per_task = "8" }, ENOUGH, NULL },
	{ { .gpus = "4", .cpus_per_gpu = "1" }, TIGHT, NULL },
	{ { .gpus_per_task = "1", .ntasks = "4" }, ENOUGH, NULL },
	{ { .nodes = "2" }, ENOUGH, NULL },
	{ { .gres = "shard:2" }, ENOUGH, NULL },
};

Test(request, check_cpus)
{
	size_t i;

	for (i = 0; i < ROWS(check_table); i++) {
		const char *says = check_table[i].says;
		struct ddp_error error = { 0 };
		enum ddp_cpus cpus;
		int rc = ddp_request_check_cpus(&check_table[i].request,
						&cpus, &error);
		enum verdict verdict = rc < 0 ? REFUSED :
			cpus == DDP_CPUS_ONE_A_RANK ? TIGHT : ENOUGH;

		cr_expect_eq(verdict, check_table[i].verdict, "row %zu", i);
		if (says)
			cr_expect_not_null(strstr(error.text, says),
					   "row %zu: %s", i, error.text);
	}
}
