/* SPDX-License-Identifier: BSD-3-Clause */
/* What is known of a step: the exit code that answers --ddp-signal. */
#include <criterion/criterion.h>

#include <signal.h>
#include <stdio.h>

#include "verdict/step.h"
#include "verdict/verdict.h"

enum { CODE = 256 };	/* in a status, an exit code of 1 */

/* Four ranks on a node; nobody has ended yet. */
static struct ddp_step begin(bool noticed)
{
	const struct ddp_wire hello = {
		.node = "n1", .job_id = 7, .world_size = 4, .count = 4,
	};
	struct ddp_wire rank = { .pid = 100 };
	struct ddp_step step = { .world_size = 0 };
	int node = ddp_step_add_node(&step, &hello, 1000);

	cr_assert_eq(node, 0);
	for (rank.rank = 0; rank.rank < 4; rank.rank++)
		ddp_step_add_rank(&step, 0, &rank);
	step.noticed = noticed;
	return step;
}

static void end(struct ddp_step *step, uint32_t rank, uint32_t status)
{
	const struct ddp_wire wire = { .rank = rank, .status = status };

	ddp_step_add_end(step, 0, &wire, 2000 + rank);
}

/* Whether it has failed, and who was first. */
static void expect(struct ddp_step *step, bool failed, uint32_t rank)
{
	struct ddp_verdict verdict = ddp_verdict_find(step);

	cr_expect_eq(step->failed, failed);
	cr_expect_eq(verdict.kind,
		     failed ? DDP_VERDICT_RANK : DDP_VERDICT_NONE);
	cr_expect(!failed || verdict.rank == rank);
	ddp_step_clear(step);
}

Test(step, one_code_after_the_notice_is_no_failure)
{
	struct ddp_step step = begin(true);

	end(&step, 0, 75 * CODE);
	end(&step, 1, 75 * CODE);
	end(&step, 2, 0);
	expect(&step, false, 0);
}

Test(step, without_a_notice_it_is_one)
{
	struct ddp_step step = begin(false);

	end(&step, 1, 75 * CODE);
	expect(&step, true, 1);
}

Test(step, nor_is_75_where_ranks_can_be_asked_to_save)
{
	struct ddp_step step = begin(false);

	step.saves = true;
	end(&step, 1, 75 * CODE);
	end(&step, 0, 75 * CODE);
	expect(&step, false, 0);
	step = begin(false);
	step.saves = true;
	end(&step, 1, 3 * CODE);
	expect(&step, true, 1);
}

Test(step, a_second_code_is_a_failure)
{
	struct ddp_step step = begin(true);

	end(&step, 0, 75 * CODE);
	end(&step, 2, 3 * CODE);
	end(&step, 1, 75 * CODE);
	expect(&step, true, 2);
}

Test(step, an_uncaught_exception_is_a_failure)
{
	struct ddp_step step = begin(true);

	end(&step, 1, CODE);
	expect(&step, true, 1);
}

Test(step, a_signal_is_a_failure)
{
	struct ddp_step step = begin(true);

	end(&step, 0, 75 * CODE);
	end(&step, 3, SIGSEGV);
	expect(&step, true, 3);
}

/* The answer to a PING means that the agent has told all that came before it. */
Test(step, an_agent_denies_that_a_rank_has_failed)
{
	const struct ddp_wire pong = { .ping_ns = 500, .at_ns = 7 };
	const struct ddp_wire hello = {
		.node = "n2", .job_id = 7, .world_size = 4, .count = 1,
	};
	struct ddp_step step = begin(false);

	cr_assert_eq(ddp_step_add_node(&step, &hello, 1000), 1);
	cr_expect_not(ddp_step_denies(&step, 0, 0));
	ddp_step_add_pong(&step, 0, &pong, 600);
	cr_expect(ddp_step_denies(&step, 0, 499));
	cr_expect_not(ddp_step_denies(&step, 0, 500));
	step.ranks[1].node = 1;
	cr_expect_not(ddp_step_denies(&step, 1, 499));
	step.ranks[2].known = false;
	cr_expect_not(ddp_step_denies(&step, 2, 499));
	end(&step, 0, 0);
	cr_expect(ddp_step_denies(&step, 0, 900));
	end(&step, 3, SIGKILL);
	cr_expect_not(ddp_step_denies(&step, 3, 499));
	ddp_step_clear(&step);
}

/* A rank that has aborted all was before those that were killed for it. */
Test(step, an_abort_is_the_first_failure)
{
	struct ddp_step step = begin(false);

	ddp_step_add_abort(&step, 2, 5, "MPI_Abort", 9000);
	cr_expect_eq(step.ended, 1);
	cr_expect_eq(step.ranks[2].status, 5 * CODE);
	cr_expect_str_eq(step.ranks[2].cause, "MPI_Abort");
	expect(&step, true, 2);
	/* One that ended well was before it. */
	step = begin(false);
	end(&step, 0, 0);
	end(&step, 1, SIGKILL);
	ddp_step_add_abort(&step, 2, 5, "MPI_Abort", 9000);
	cr_expect_eq(ddp_step_end_ns(&step, 2), 2000);
	expect(&step, true, 2);
	/* It was one of them. */
	step = begin(false);
	end(&step, 0, SIGKILL);
	end(&step, 3, SIGKILL);
	ddp_step_add_abort(&step, 3, 5, "MPI_Abort", 9000);
	cr_expect_eq(step.ended, 2);
	cr_expect_eq(step.ranks[3].status, 5 * CODE);
	expect(&step, true, 3);
}

/* Also among many, and the first of those that components share. */
Test(step, nodes_are_found_by_name)
{
	enum { NODES = 10000 };
	struct ddp_wire hello = { .job_id = 7, .world_size = 1 };
	struct ddp_step step = { .world_size = 0 };
	char name[32];
	int i;

	cr_expect_eq(ddp_step_find_node(&step, "n0"), -1);
	for (i = 0; i < NODES; i++) {
		snprintf(hello.node, sizeof(hello.node), "n%d", i);
		cr_assert_eq(ddp_step_add_node(&step, &hello, 1000), i);
	}
	cr_assert_eq(ddp_step_add_node(&step, &hello, 1000), NODES);
	for (i = 0; i < NODES; i++) {
		snprintf(name, sizeof(name), "n%d", i);
		cr_assert_eq(ddp_step_find_node(&step, name), i);
		snprintf(name, sizeof(name), "m%d", i);
		cr_assert_eq(ddp_step_find_node(&step, name), -1);
	}
	ddp_step_clear(&step);
}

/* The components of a heterogeneous job have its id and the next ones. */
Test(step, has_the_lowest_id_of_its_components)
{
	static const uint32_t orders[][3] = {
		{ 12, 13, 14 }, { 14, 12, 13 }, { 13, 14, 12 },
	};
	struct ddp_wire hello = { .world_size = 3, .step_id = 4 };
	struct ddp_step step = { .world_size = 0 };
	size_t i, k;

	for (i = 0; i < 3; i++) {
		for (k = 0; k < 3; k++) {
			hello.job_id = orders[i][k];
			snprintf(hello.node, sizeof(hello.node), "n%zu", k);
			cr_assert_eq(ddp_step_add_node(&step, &hello, 1000),
				     (int)k);
		}
		cr_expect_eq(step.job_id, 12);
		cr_expect_eq(step.step_id, 4);
		ddp_step_clear(&step);
	}
}
