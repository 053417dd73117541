/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who failed first, from ends as agents tell them. Times in the tables are
 * milliseconds of each node's own clock.
 */
#include <criterion/criterion.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verdict/facts.h"
#include "verdict/hang.h"
#include "verdict/verdict.h"

#define MS(count) ((int64_t)(count) * 1000000)

struct end {
	uint32_t rank, status;
	int64_t at_ms;		/* 0: there is no such end */
	const char *cause, *message;
};

/* Rank 0 warned of this. */
static const char *warning = "";

/* Ranks got --ddp-signal. */
static bool noticed;

/* Two nodes with two ranks each. The second clock is 5 s behind. */
static void begin(struct ddp_step *step)
{
	struct ddp_wire wire = {
		.kind = DDP_WIRE_HELLO, .job_id = 7, .step_id = 1,
		.world_size = 4, .count = 2, .node = "n1",
	};
	uint32_t i;

	memset(step, 0, sizeof(*step));
	step->noticed = noticed;
	cr_assert_eq(ddp_step_add_node(step, &wire, MS(10000)), 0);
	strcpy(wire.node, "n2");
	cr_assert_eq(ddp_step_add_node(step, &wire, MS(10000)), 1);
	for (i = 0; i < 4; i++) {
		wire.rank = i;
		wire.pid = 100 + i;
		strcpy(wire.message, i == 0 ? warning : "");
		ddp_step_add_rank(step, i / 2, &wire);
	}
	for (i = 0; i < 2; i++) {
		wire.ping_ns = (uint64_t)MS(10000);
		wire.at_ns = (uint64_t)MS(10005 - 5000 * (int)i);
		ddp_step_add_pong(step, i, &wire, MS(10010));
	}
}

/* They are heard of in the order of these calls. */
static void add(struct ddp_step *step, const struct end *end)
{
	struct ddp_wire wire = {
		.rank = end->rank, .status = end->status,
		.at_ns = (uint64_t)MS(end->at_ms),
	};

	strcpy(wire.cause, end->cause ? end->cause : "");
	strcpy(wire.message, end->message ? end->message : "");
	ddp_step_add_end(step, end->rank / 2, &wire, MS(20000) + step->ended);
}

/* "none", "rank 2 after 1000 ms", "signal" of some ends */
static const char *judge(const struct end *ends, size_t count)
{
	static char text[64];
	struct ddp_verdict verdict;
	struct ddp_step step;
	size_t i;

	begin(&step);
	for (i = 0; i < count; i++)
		if (ends[i].at_ms)
			add(&step, &ends[i]);
	verdict = ddp_verdict_find(&step);
	if (verdict.kind == DDP_VERDICT_RANK)
		snprintf(text, sizeof(text), "rank %u after %d ms",
			 verdict.rank, (int)(verdict.after_ns / MS(1)));
	else
		strcpy(text, verdict.kind == DDP_VERDICT_NONE ? "none" :
		       verdict.kind == DDP_VERDICT_SIGNAL ? "signal" : "node");
	ddp_step_clear(&step);
	return text;
}

static const struct {
	const char *wanted;
	struct end ends[4];
} judged[] = {
	{ "none", { { 0, 0, 0, 0, 0 } } },
	{ "none", { { 0, 0, 11000, 0, 0 }, { 2, 0, 6000, 0, 0 } } },
	{ "rank 1 after 2000 ms", { { 0, 0, 11000, 0, 0 },
				    { 1, 3 << 8, 12000, 0, 0 } } },
	/* 6000 on the second node is 11000 here. */
	{ "rank 2 after 1000 ms", { { 1, 3 << 8, 11500, 0, 0 },
				    { 2, 4 << 8, 6000, 0, 0 } } },
	{ "rank 1 after 500 ms", { { 1, 3 << 8, 10500, 0, 0 },
				   { 2, 4 << 8, 6000, 0, 0 } } },
	{ "rank 0 after 1000 ms", { { 2, 9, 6000, 0, 0 },
				    { 0, 9, 11000, 0, 0 } } },
	{ "signal", { { 0, 15, 11000, 0, 0 }, { 1, 15, 11050, 0, 0 },
		      { 2, 15, 6020, 0, 0 }, { 3, 15, 6099, 0, 0 } } },
	{ "signal", { { 0, 9, 11000, 0, 0 }, { 1, 9, 11000, 0, 0 },
		      { 2, 9, 6000, 0, 0 }, { 3, 9, 6000, 0, 0 } } },
	/* One wrote that the connection is lost before the other had ended. */
	{ "rank 1 after 1020 ms", { { 1, 9, 11020, 0, 0 },
				    { 0, 1 << 8, 11000, 0, "reset" } } },
	{ "rank 1 after 1020 ms", { { 1, 15, 11020, 0, 0 },
				    { 0, 15, 11000, 0, "reset" } } },
	{ "rank 1 after 1020 ms", { { 1, 3 << 8, 11020, 0, 0 },
				    { 0, 15, 11000, 0, "reset" } } },
	{ "rank 0 after 1000 ms", { { 1, 3 << 8, 11200, 0, 0 },
				    { 0, 15, 11000, 0, "a fault" } } },
	{ "rank 0 after 1000 ms", { { 1, 9, 11200, 0, 0 },
				    { 0, 1 << 8, 11000, 0, "a fault" } } },
	{ "rank 0 after 1000 ms", { { 0, 1 << 8, 11000, 0, "a fault" },
				    { 1, 9, 11020, 0, 0 } } },
	{ "rank 0 after 1000 ms", { { 1, 6, 11020, 0, 0 },
				    { 0, 1 << 8, 11000, 0, "a fault" } } },
	{ "rank 1 after 1020 ms", { { 1, 11, 11020, 0, 0 },
				    { 0, 1 << 8, 11000, 0, "reset" } } },
	/* The kernel had one killed, which the others saw before its end. */
	{ "rank 1 after 1300 ms", { { 0, 1 << 8, 11000, 0, 0 },
				    { 2, 1 << 8, 6005, 0, "reset" },
				    { 1, 9, 11300, "out of memory", 0 } } },
	{ "rank 3 after 1200 ms", { { 0, 1 << 8, 11000, 0, 0 },
				    { 1, 9, 11300, "out of memory", 0 },
				    { 3, 9, 6200, "out of memory", 0 } } },
	{ "rank 0 after 1000 ms", { { 0, 1 << 8, 11000, 0, 0 },
				    { 1, 9, 11600, "out of memory", 0 } } },
	{ "rank 0 after 1000 ms", { { 0, 9, 11000, "out of memory", 0 },
				    { 1, 9, 11100, "out of memory", 0 } } },
	/* A shell ran it; the other one had lost a process before. */
	{ "rank 1 after 1300 ms", { { 0, 1 << 8, 11000,
				      "a process ran out of memory", 0 },
				    { 1, 137 << 8, 11300, "out of memory", 0 } } },
	/* But other causes can come of the end of a step. */
	{ "rank 0 after 1000 ms", { { 0, 1 << 8, 11000, 0, 0 },
				    { 1, 6, 11100, "Xid 45 of GPU 0", 0 } } },
	{ "rank 0 after 1000 ms", { { 0, 1 << 8, 11000, 0, 0 },
				    { 1, 1 << 8, 11100, "out of memory",
				      0 } } },
	/* One of them is later, another signal, an error, a fault. */
	{ "rank 0 after 1000 ms", {
		{ 0, 15, 11000, 0, 0 }, { 1, 15, 11200, 0, 0 },
		{ 2, 15, 6000, 0, 0 }, { 3, 15, 6000, 0, 0 } } },
	{ "rank 0 after 1000 ms", {
		{ 0, 15, 11000, 0, 0 }, { 1, 9, 11001, 0, 0 },
		{ 2, 15, 6001, 0, 0 }, { 3, 15, 6001, 0, 0 } } },
	{ "rank 0 after 1000 ms", {
		{ 0, 15, 11000, 0, 0 }, { 1, 15 << 8, 11001, 0, 0 },
		{ 2, 15, 6001, 0, 0 }, { 3, 15, 6001, 0, 0 } } },
	{ "rank 0 after 1000 ms", {
		{ 0, 9, 11000, "out of memory", 0 }, { 1, 9, 11001, 0, 0 },
		{ 2, 9, 6001, 0, 0 }, { 3, 9, 6001, 0, 0 } } },
	{ "rank 0 after 1000 ms", {
		{ 0, 11, 11000, 0, 0 }, { 1, 11, 11001, 0, 0 },
		{ 2, 11, 6001, 0, 0 }, { 3, 11, 6001, 0, 0 } } },
	{ "rank 0 after 1000 ms", {
		{ 0, 15, 11000, 0, 0 }, { 1, 15, 11001, 0, 0 },
		{ 2, 15, 6001, 0, 0 } } },
};

Test(verdict, of_ends)
{
	size_t i;

	for (i = 0; i < sizeof(judged) / sizeof(judged[0]); i++)
		cr_expect_str_eq(judge(judged[i].ends, 4), judged[i].wanted,
				 "%zu", i);
}

/* Nothing is known before it has happened, whatever the node says. */
Test(verdict, a_clock_of_the_future)
{
	const struct end end = { 0, 1 << 8, 99000, NULL, NULL };

	cr_expect_str_eq(judge(&end, 1), "rank 0 after 10000 ms");
}

Test(verdict, of_a_single_rank)
{
	static const struct {
		uint32_t status;
		enum ddp_verdict_kind wanted;
	} cases[] = {
		{ 15, DDP_VERDICT_SIGNAL }, { 9, DDP_VERDICT_RANK },
		{ 1 << 8, DDP_VERDICT_RANK }, { 0, DDP_VERDICT_NONE },
	};
	struct ddp_wire wire = { .world_size = 1, .count = 1, .node = "n" };
	struct ddp_step step = { 0 };
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ddp_step_add_node(&step, &wire, 1);
		ddp_step_add_rank(&step, 0, &wire);
		wire.status = cases[i].status;
		ddp_step_add_end(&step, 0, &wire, 2);
		cr_expect_eq(ddp_verdict_find(&step).kind, cases[i].wanted);
		ddp_step_clear(&step);
	}
}

/* Node 1's agent is gone; then Slurm kills what it does not watch, and this. */
Test(verdict, of_what_an_unwatched_node_may_have_caused)
{
	static const struct {
		struct end end;
		int64_t left_ms;	/* the end is seen at 20000 */
		enum ddp_verdict_kind kind;
	} cases[] = {
		{ { 0, SIGTERM, 11000, NULL, NULL }, 9000, DDP_VERDICT_NONE },
		{ { 0, SIGKILL, 11000, NULL, NULL }, 9000, DDP_VERDICT_NONE },
		{ { 0, SIGKILL, 11000, NULL, NULL }, 20001, DDP_VERDICT_NONE },
		{ { 0, SIGKILL, 11000, NULL, NULL }, 20003, DDP_VERDICT_RANK },
		{ { 0, SIGKILL, 11000, "out of memory", NULL }, 9000,
		  DDP_VERDICT_RANK },
		{ { 0, SIGSEGV, 11000, NULL, NULL }, 9000, DDP_VERDICT_RANK },
		{ { 0, 3 << 8, 11000, NULL, NULL }, 9000, DDP_VERDICT_RANK },
	};
	struct ddp_step step;
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		begin(&step);
		step.nodes[1].left = true;
		step.nodes[1].left_ns = MS(cases[i].left_ms);
		add(&step, &cases[i].end);
		cr_expect_eq(ddp_verdict_find(&step).kind, cases[i].kind,
			     "case %zu", i);
		ddp_step_clear(&step);
	}
}

/*
 * Slurm may have killed rank 0 for rank 3, of which no agent has told yet. Then it
 * kills rank 1, too.
 */
Test(verdict, of_a_rank_that_ends_before_others_begin)
{
	static const struct {
		struct end end, other;
		enum ddp_verdict_kind kind;
		bool left;		/* the agent, a second later */
	} cases[] = {
		{ { 0, SIGTERM, 11000, NULL, NULL }, { 0 }, DDP_VERDICT_NONE,
		  false },
		{ { 0, SIGKILL, 11000, NULL, NULL }, { 0 }, DDP_VERDICT_RANK,
		  false },
		{ { 0, SIGKILL, 11000, NULL, NULL }, { 0 }, DDP_VERDICT_NONE,
		  true },
		{ { 0, SIGKILL, 11000, NULL, NULL },
		  { 1, SIGKILL, 11900, NULL, NULL }, DDP_VERDICT_NONE,
		  false },
		{ { 0, SIGKILL, 11000, NULL, NULL },
		  { 1, SIGTERM, 11100, NULL, NULL }, DDP_VERDICT_NONE,
		  false },
		{ { 0, SIGKILL, 11000, NULL, NULL },
		  { 1, SIGTERM, 11200, NULL, NULL }, DDP_VERDICT_RANK,
		  false },
		{ { 0, SIGKILL, 11000, NULL, NULL },
		  { 1, 0, 10900, NULL, NULL }, DDP_VERDICT_NONE,
		  false },
		{ { 0, SIGKILL, 11000, "out of memory", NULL },
		  { 1, SIGKILL, 11000, NULL, NULL }, DDP_VERDICT_RANK,
		  false },
		{ { 0, SIGSEGV, 11000, NULL, NULL },
		  { 1, SIGKILL, 11000, NULL, NULL }, DDP_VERDICT_RANK,
		  false },
		{ { 0, 3 << 8, 11000, NULL, NULL },
		  { 1, SIGKILL, 11000, NULL, NULL }, DDP_VERDICT_RANK,
		  false },
	};
	struct ddp_step step;
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		begin(&step);
		step.ranks[3].known = false;
		step.known--;
		add(&step, &cases[i].end);
		if (cases[i].other.at_ms)
			add(&step, &cases[i].other);
		step.nodes[0].left = cases[i].left;
		step.nodes[0].left_ns = MS(21000);
		cr_expect_eq(ddp_verdict_find(&step).kind, cases[i].kind,
			     "case %zu", i);
		ddp_step_clear(&step);
	}
}

/* A rank that had ended well makes Slurm kill the step: then that is waited for. */
Test(verdict, of_what_a_rank_that_ended_well_may_have_caused)
{
	const struct end well = { 2, 0, 5500, NULL, NULL };
	const struct end killed = { 0, SIGKILL, 11000, NULL, NULL };
	struct ddp_step step;

	begin(&step);
	step.nodes[1].left = true;
	step.nodes[1].left_ns = MS(20499);
	add(&step, &well);
	add(&step, &killed);
	cr_expect_eq(ddp_verdict_find(&step).kind, DDP_VERDICT_NONE);
	step.nodes[1].left_ns = MS(20501);
	cr_expect_eq(ddp_verdict_find(&step).kind, DDP_VERDICT_RANK);
	ddp_step_clear(&step);
}

/*
 * A slurmstepd ends at 1000 by its node's clock, and then the agent kills a rank, at
 * 1001. Both are heard of before that clock is known; and when it is known, and then
 * better.
 */
Test(verdict, of_a_slurmstepd_that_ends_before_its_clock_is_known)
{
	struct ddp_wire hello = { .world_size = 1, .count = 1, .node = "n1" };
	struct ddp_wire end = { .status = 9, .at_ns = MS(1001) };
	struct ddp_wire orphaned = { .at_ns = MS(1000) };
	struct ddp_wire slow = { .ping_ns = MS(900), .at_ns = MS(910) };
	struct ddp_wire fast = { .ping_ns = MS(1100), .at_ns = MS(1101) };
	struct ddp_verdict verdict;
	struct ddp_step step;
	int known;

	for (known = 0; known < 2; known++) {
		memset(&step, 0, sizeof(step));
		cr_assert_eq(ddp_step_add_node(&step, &hello, MS(900)), 0);
		ddp_step_add_rank(&step, 0, &hello);
		if (known)
			ddp_step_add_pong(&step, 0, &slow, MS(1000));
		ddp_step_add_orphaned(&step, 0, &orphaned, MS(1050));
		ddp_step_add_end(&step, 0, &end, MS(1051));
		ddp_step_add_pong(&step, 0, &fast, MS(1102));
		verdict = ddp_verdict_find(&step);
		cr_expect_eq(verdict.kind, DDP_VERDICT_NODE,
			     "clock known before: %d", known);
		ddp_step_clear(&step);
	}
}

/*
 * Since Slurm 26.05 SIGTERM ends all ranks where one had ended well before. 6000
 * on the second node is 11000 here.
 */
Test(verdict, of_ranks_that_slurm_ends_for_one_that_ended_well)
{
	static const struct {
		const char *wanted;
		bool noticed;
		struct end ends[4];
	} cases[] = {
		{ "none", false, {
			{ 2, 0, 6000, 0, 0 }, { 0, 15, 12000, 0, 0 },
			{ 1, 15, 12001, 0, 0 }, { 3, 15, 7030, 0, 0 } } },
		/* Two together are enough, while others take their time. */
		{ "none", false, {
			{ 2, 0, 6000, 0, 0 }, { 0, 15, 12000, 0, 0 },
			{ 3, 15, 7150, 0, 0 } } },
		{ "rank 0 after 2000 ms", false, {
			{ 2, 0, 6000, 0, 0 }, { 0, 15, 12000, 0, 0 },
			{ 3, 15, 7151, 0, 0 } } },
		{ "none", false, {
			{ 1, 0, 11000, 0, 0 }, { 2, 0, 6000, 0, 0 },
			{ 3, 0, 6000, 0, 0 }, { 0, 15, 12000, 0, 0 } } },
		/* Rank 0 got the signal alone, and another one lives or fails. */
		{ "rank 0 after 2000 ms", false, {
			{ 1, 0, 11000, 0, 0 }, { 2, 0, 6000, 0, 0 },
			{ 0, 15, 12000, 0, 0 } } },
		{ "rank 0 after 2000 ms", false, {
			{ 2, 0, 6000, 0, 0 }, { 0, 15, 12000, 0, 0 },
			{ 1, 9, 12001, 0, 0 } } },
		{ "rank 0 after 2000 ms", false, {
			{ 2, 1 << 8, 7200, 0, 0 }, { 0, 15, 12000, 0, 0 },
			{ 1, 15, 12001, 0, 0 } } },
		/* Another signal; an error that it had. */
		{ "rank 0 after 2000 ms", false, {
			{ 2, 0, 6000, 0, 0 }, { 0, 9, 12000, 0, 0 },
			{ 1, 9, 12001, 0, 0 }, { 3, 9, 7001, 0, 0 } } },
		{ "rank 0 after 2000 ms", false, {
			{ 2, 0, 6000, 0, 0 }, { 0, 15, 12000, 0, "E: bad" },
			{ 1, 15, 12001, 0, 0 }, { 3, 15, 7001, 0, 0 } } },
		/* Long before; and after, when clocks may differ. */
		{ "none", false, {
			{ 2, 0, 5001, 0, 0 }, { 0, 15, 20000, 0, 0 },
			{ 1, 15, 20000, 0, 0 } } },
		{ "rank 0 after 10000 ms", false, {
			{ 2, 0, 5000, 0, 0 }, { 0, 15, 20000, 0, 0 },
			{ 1, 15, 20000, 0, 0 } } },
		{ "none", false, {
			{ 2, 0, 7149, 0, 0 }, { 0, 15, 12000, 0, 0 },
			{ 1, 15, 12001, 0, 0 } } },
		{ "rank 0 after 2000 ms", false, {
			{ 2, 0, 7150, 0, 0 }, { 0, 15, 12000, 0, 0 },
			{ 1, 15, 12001, 0, 0 } } },
		/* The signal was the notice of the job's end. */
		{ "rank 0 after 2000 ms", true, {
			{ 2, 0, 6000, 0, 0 }, { 0, 15, 12000, 0, 0 },
			{ 1, 15, 12001, 0, 0 }, { 3, 15, 7030, 0, 0 } } },
	};
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		noticed = cases[i].noticed;
		cr_expect_str_eq(judge(cases[i].ends, 4), cases[i].wanted,
				 "%zu: %s", i, judge(cases[i].ends, 4));
	}
	noticed = false;
}

/* 6000 on the second node is 11000 here. */
Test(verdict, of_what_was_before_the_ranks_of_a_list)
{
	static const struct {
		const char *ranks;
		struct end ends[3];
		bool before;
	} cases[] = {
		{ "0", { { 0, SIGTERM, 11000, NULL, NULL } }, true },
		{ "1-3", { { 0, SIGTERM, 11000, NULL, NULL } }, false },
		{ "2", { { 0, SIGTERM, 11000, NULL, NULL },
			 { 2, SIGTERM, 6100, NULL, NULL } }, true },
		{ "1,2", { { 0, SIGTERM, 11000, NULL, NULL },
			   { 1, SIGTERM, 11200, NULL, NULL },
			   { 3, SIGTERM, 6300, NULL, NULL } }, true },
		{ "2", { { 0, SIGTERM, 11000, NULL, NULL },
			 { 3, SIGTERM, 6100, NULL, NULL } }, false },
		{ "0-3", { { 0, 0, 0, NULL, NULL } }, false },
	};
	struct ddp_verdict verdict;
	struct ddp_step step;
	size_t i, j;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		begin(&step);
		for (j = 0; j < 3 && cases[i].ends[j].at_ms; j++)
			add(&step, &cases[i].ends[j]);
		verdict = ddp_verdict_find(&step);
		cr_expect_eq(ddp_verdict_is_before(&verdict, &step,
						   cases[i].ranks),
			     cases[i].before, "case %zu", i);
		verdict.kind = DDP_VERDICT_NODE;
		cr_expect_not(ddp_verdict_is_before(&verdict, &step,
						    cases[i].ranks));
		ddp_step_clear(&step);
	}
	/* One that ended after it. */
	begin(&step);
	add(&step, &cases[2].ends[0]);
	add(&step, &cases[2].ends[1]);
	verdict = (struct ddp_verdict){ .kind = DDP_VERDICT_RANK, .rank = 2 };
	cr_expect_not(ddp_verdict_is_before(&verdict, &step, "0"));
	ddp_step_clear(&step);
	/* Rank 2 speaks for rank 0, of which srun knew. */
	begin(&step);
	add(&step, &(struct end){ 0, 2 << 8, 11000, NULL, "E: bad" });
	add(&step, &(struct end){ 2, 2 << 8, 6100, NULL, "E: bad" });
	verdict.together = 2;
	cr_expect(ddp_verdict_is_before(&verdict, &step, "0"));
	cr_expect_not(ddp_verdict_is_before(&verdict, &step, "1"));
	ddp_step_clear(&step);
}

/* A node that is lost is the cause of what its peers then do. */
Test(verdict, of_a_lost_node)
{
	const struct end before = { 0, 1 << 8, 10500, NULL, NULL };
	struct ddp_verdict verdict;
	struct ddp_text text = { 0 };
	struct ddp_step step;
	char *line;

	begin(&step);
	step.nodes[1].lost = true;
	step.nodes[1].lost_ns = MS(11000);
	verdict = ddp_verdict_find(&step);
	cr_expect_eq(verdict.kind, DDP_VERDICT_NODE);
	cr_expect_eq(ddp_verdict_code(&verdict, &step), 1);
	ddp_verdict_add(&text, &verdict, &step);
	line = ddp_text_finish(&text);
	cr_expect_str_eq(line, "slurm-ddp: node n2 was lost first, after 1.0 "
			 "s: it has not answered for 7 s\n");
	free(line);
	add(&step, &before);
	cr_expect_eq(ddp_verdict_find(&step).kind, DDP_VERDICT_RANK);
	ddp_step_clear(&step);
}

static void expect_lost(const struct ddp_step *step, const char *wanted)
{
	struct ddp_verdict verdict = ddp_verdict_find(step);
	struct ddp_text text = { 0 };
	char *line;

	cr_expect_eq(verdict.kind, DDP_VERDICT_NODE);
	ddp_verdict_add(&text, &verdict, step);
	line = ddp_text_finish(&text);
	cr_expect_str_eq(line, wanted);
	free(line);
}

/* All that go together are named, and those only. */
Test(verdict, of_several_lost_nodes)
{
	static const char *const names[] = { "n3", "n10", "n4", "gpu-x" };
	struct ddp_wire wire = { .world_size = 4 };
	struct ddp_step step;
	int i;

	begin(&step);
	for (i = 0; i < 4; i++) {
		strcpy(wire.node, names[i]);
		cr_assert_eq(ddp_step_add_node(&step, &wire, MS(10000)), 2 + i);
	}
	for (i = 1; i < 5; i++) {
		step.nodes[i].lost = true;
		step.nodes[i].lost_ns = MS(11000);
	}
	expect_lost(&step, "slurm-ddp: nodes n2,n3,n10,n4 were lost first, after "
		    "1.0 s: they have not answered for 7 s\n");
	step.nodes[5].lost = true;
	step.nodes[5].lost_ns = MS(13000);
	step.nodes[2].orphaned = true;
	expect_lost(&step, "slurm-ddp: nodes n2,n10,n4 were lost first, after "
		    "1.0 s: they have not answered for 7 s\n");
	for (i = 1; i < 5; i++)
		step.nodes[i].unlaunched = step.nodes[i].awaited = i != 2;
	expect_lost(&step, "slurm-ddp: nodes n2,n10,n4 were lost first, after "
		    "1.0 s: srun could not start tasks there, as their slurmds "
		    "do not answer\n");
	ddp_step_clear(&step);
}

static void expect_json(const struct ddp_step *step, const char *verdict,
			const char *nodes)
{
	const struct ddp_facts facts = {
		.step = *step, .verdict = ddp_verdict_find(step),
		.entered_ns = {
			[DDP_PHASE_LAUNCHING] = MS(10000),
			[DDP_PHASE_RUNNING] = MS(10250),
			[DDP_PHASE_OVER] = MS(72001),
		},
		.row = "as told",
	};
	struct ddp_text text = { 0 };
	char *json;

	ddp_facts_add_json(&text, &facts, "a", "b", NULL);
	json = ddp_text_finish(&text);
	cr_expect(strstr(json, verdict), "%s", json);
	cr_expect(strstr(json, nodes), "%s", json);
	cr_expect(strstr(json, "\"phases\": {\"launching\": 0.000, "
			 "\"running\": 0.250, \"over\": 62.001},\n"),
		  "%s", json);
	cr_expect(strstr(json, ",\n  \"decision\": \"as told\",\n"), "%s",
		  json);
	free(json);
}

/* Each event has a time of its own, and those that did not happen are left out. */
Test(verdict, events_as_json)
{
	const struct ddp_facts facts = {
		.entered_ns = { [DDP_PHASE_LAUNCHING] = MS(1000) },
		.told_ns = MS(1001), .interrupted_ns = MS(1002),
		.said = {
			.cancelled_ns = MS(1003), .aborted_ns = MS(1004),
			.failed_ns = MS(1005), .aborter_ns = MS(1006),
		},
		.step = {
			.end_ns = MS(1007), .last_end_ns = MS(1013),
			.grace = { .began_ns = MS(1011), .over_ns = MS(1012) },
		},
		.unwatched_ns = MS(1008), .asked_ns = MS(1009),
		.decided_ns = MS(1010), .scancelled_ns = MS(1014),
		.ended_ns = MS(1015),
	};
	const struct ddp_facts nothing = {
		.entered_ns = { [DDP_PHASE_LAUNCHING] = MS(1000) },
	};
	struct ddp_text text = { 0 };
	char *json;

	ddp_facts_add_json(&text, &facts, "a", "b", NULL);
	json = ddp_text_finish(&text);
	cr_expect(strstr(json, "\"events\": {\"srun_signalled\": 0.001, "
			 "\"srun_interrupted\": 0.002, "
			 "\"slurm_cancels\": 0.003, \"srun_aborts\": 0.004, "
			 "\"srun_tells_failure\": 0.005, "
			 "\"mpi_abort\": 0.006, \"first_end\": 0.007, "
			 "\"unwatched_failed\": 0.008, "
			 "\"slurmctld_asked\": 0.009, \"decided\": 0.010, "
			 "\"ranks_sigterm\": 0.011, "
			 "\"ranks_sigkill\": 0.012, \"last_end\": 0.013, "
			 "\"scancel\": 0.014, \"srun_ended\": 0.015},\n"),
		  "%s", json);
	free(json);
	ddp_facts_add_json(&text, &nothing, "a", "b", NULL);
	json = ddp_text_finish(&text);
	cr_expect(strstr(json, "\"events\": {},\n"), "%s", json);
	free(json);
}

Test(verdict, as_json)
{
	struct ddp_step step;

	begin(&step);
	step.nodes[1].lost = true;
	step.nodes[1].lost_ns = MS(11000);
	step.nodes[0].orphaned = true;
	step.nodes[0].lost_ns = MS(11250);
	expect_json(&step, "\"verdict\": {\"kind\": \"node\", \"node\": "
		    "\"n2\", \"after_s\": 1.000, \"cause\": \"does not "
		    "answer\"},\n", "\"nodes_lost\": [\"n1\", \"n2\"]\n");
	step.nodes[1].lost = false;
	expect_json(&step, "\"node\": \"n1\", \"after_s\": 1.250, "
		    "\"cause\": \"slurmstepd has ended\"},\n",
		    "\"nodes_lost\": [\"n1\"]\n");
	step.nodes[0].orphaned = false;
	cr_assert_eq(ddp_hang_begin(&step, 60), 0);
	ddp_hang_judge(&step, MS(15250));
	expect_json(&step, "\"verdict\": {\"kind\": \"hang\", \"after_s\": "
		    "5.250, \"seconds\": 60, \"why\": \"none\", "
		    "\"lagging\": []},\n", "\"nodes_lost\": []\n");
	ddp_step_clear(&step);
}

/* What does not fit is ignored: ranks that are another's, or nobody's. */
Test(verdict, strange_messages)
{
	struct ddp_wire wire = { .rank = 1, .status = 1 << 8 };
	struct ddp_step step;

	begin(&step);
	ddp_step_add_end(&step, 1, &wire, MS(11000));
	wire.rank = 4;
	ddp_step_add_end(&step, 1, &wire, MS(11000));
	ddp_step_add_rank(&step, 1, &wire);
	wire.world_size = 5;
	cr_expect_eq(ddp_step_add_node(&step, &wire, 0), -1);
	cr_expect_eq(step.ended, 0);
	cr_expect_eq(step.known, 4);
	cr_expect_not(step.failed);
	ddp_step_clear(&step);
	wire.world_size = 0;
	cr_expect_eq(ddp_step_add_node(&step, &wire, 0), -1);
	wire.world_size = UINT32_MAX;
	cr_expect_eq(ddp_step_add_node(&step, &wire, 0), -1);
}

Test(verdict, codes)
{
	cr_expect_eq(ddp_step_code(0), 0);
	cr_expect_eq(ddp_step_code(3 << 8), 3);
	cr_expect_eq(ddp_step_code(9), 137);
	cr_expect_eq(ddp_step_code(11 | 0x80), 139);	/* with a core file */
}

Test(verdict, ranks_that_ended_early)
{
	const struct end ends[] = {
		{ 0, 0, 10500, NULL, NULL }, { 1, 0, 10500, NULL, NULL },
		{ 2, 0, 5500, NULL, NULL },
	};
	struct ddp_text text = { 0 };
	struct ddp_step step;
	char *line;
	size_t i;

	begin(&step);
	for (i = 0; i < 3; i++)
		add(&step, &ends[i]);
	ddp_verdict_add_early(&text, &step);
	line = ddp_text_finish(&text);
	cr_expect_str_eq(line, "slurm-ddp: ranks 0-2 ended with exit code 0 a "
			 "while ago, and rank 3 still runs; do they wait for "
			 "each other?\n");
	free(line);
	step.nodes[1].left = true;
	ddp_verdict_add_early(&text, &step);
	line = ddp_text_finish(&text);
	cr_expect_str_eq(line, "slurm-ddp: ranks 0-2 ended with exit code 0 a "
			 "while ago, and no end is known of rank 3; do they "
			 "wait for each other?\n");
	free(line);
	ddp_step_clear(&step);
}

/* In a step that was killed: rank 2 before, rank 1 by that. */
Test(verdict, ranks_that_had_ended)
{
	const struct end ends[] = {
		{ 2, 0, 5500, NULL, NULL }, { 1, 9, 5600, NULL, NULL },
	};
	struct ddp_text text = { 0 };
	struct ddp_step step;
	char *line;

	begin(&step);
	ddp_verdict_add_gone(&text, &step);
	cr_expect_eq(text.length, 0);
	add(&step, &ends[0]);
	add(&step, &ends[1]);
	ddp_verdict_add_gone(&text, &step);
	line = ddp_text_finish(&text);
	cr_expect_str_eq(line, "slurm-ddp: rank 2 had ended with exit code 0 "
			 "when the step was killed; did ranks 0-1,3 wait?\n");
	free(line);
	ddp_step_clear(&step);
}

/* All ranks ended with 75, asked by --ddp-signal or in another way. */
Test(verdict, ranks_that_have_saved)
{
	static const char said[] = "slurm-ddp: all 4 ranks ended with exit "
		"code 75: they have saved, and there is more to do\n";
	struct end end = { 0, 75 << 8, 11000, NULL, NULL };
	struct ddp_text text = { 0 };
	struct ddp_verdict verdict;
	struct ddp_step step;
	int asked;
	char *line;

	for (asked = 0; asked < 2; asked++) {
		begin(&step);
		step.saves = asked;
		for (end.rank = 0; end.rank < 3; end.rank++)
			add(&step, &end);
		cr_expect_eq(ddp_verdict_find(&step).kind,
			     asked ? DDP_VERDICT_NONE : DDP_VERDICT_RANK);
		add(&step, &end);
		verdict = ddp_verdict_find(&step);
		ddp_verdict_add(&text, &verdict, &step);
		line = ddp_text_finish(&text);
		cr_expect_str_eq(line, said, "%s", line);
		free(line);
		expect_json(&step, "\"verdict\": {\"kind\": \"saved\"},\n",
			    "\"nodes_lost\": []\n");
		ddp_step_clear(&step);
	}
	begin(&step);
	for (end.rank = 0; end.rank < 4; end.rank++) {
		end.status = end.rank == 1 ? 0 : 75 << 8;
		add(&step, &end);
	}
	cr_expect_eq(ddp_verdict_find(&step).kind, DDP_VERDICT_RANK);
	ddp_step_clear(&step);
}

/* What is said when rank 0 fails so at 12000, and others have ended. */
static void expect_words(const struct end *failed, const char *wanted)
{
	const struct end ends[] = {
		{ 1, 0, 11500, NULL, NULL }, { 2, 0, 5800, NULL, NULL },
		{ 3, 0, 7500, NULL, NULL },
	};
	struct ddp_text text = { 0 };
	struct ddp_verdict verdict;
	struct ddp_step step;
	char *words;
	size_t i;

	begin(&step);
	for (i = 0; i < 3; i++)
		add(&step, &ends[i]);
	add(&step, failed);
	verdict = ddp_verdict_find(&step);
	ddp_verdict_add(&text, &verdict, &step);
	words = ddp_text_finish(&text);
	cr_expect_str_eq(words, wanted, "%s", words);
	free(words);
	ddp_step_clear(&step);
}

/* Ranks 1 and 2 ended 0.5 s and 1.2 s before rank 0, and rank 3 after it. */
Test(verdict, ranks_that_ended_before_the_failure)
{
	static const char before[] = "slurm-ddp: ranks 1-2 had ended with exit "
		"code 0, the first 1.2 s before; did rank 0 wait for them?\n";
	static const char first[] = "slurm-ddp: rank 0 failed first on n1 "
		"(pid 100) after 2.0 s: ";
	static const struct {
		struct end end;
		const char *how;
		bool waited;
	} cases[] = {
		{ { 0, 1 << 8, 12000, NULL, NULL }, "exit code 1", true },
		{ { 0, 6, 12000, NULL, NULL },
		  "killed by signal 6 (SIGABRT)", true },
		{ { 0, 11, 12000, NULL, NULL },
		  "killed by signal 11 (SIGSEGV)", false },
		{ { 0, 9, 12000, NULL, NULL },
		  "killed by signal 9 (SIGKILL)", false },
		{ { 0, 1 << 8, 12000, "out of memory", NULL },
		  "out of memory, exit code 1", false },
	};
	char wanted[512];
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		snprintf(wanted, sizeof(wanted), "%s%s\n%s", first,
			 cases[i].how, cases[i].waited ? before : "");
		expect_words(&cases[i].end, wanted);
	}
	/* All are heard of at 20000, after the process with the error. */
	expect_words(&(struct end){ 0, 1 << 8, 12000, NULL, "E: closed" },
		     "slurm-ddp: rank 0 failed first on n1 (pid 100) after "
		     "2.0 s: exit code 1: E: closed\nslurm-ddp: ranks 1-3 had "
		     "ended with exit code 0, the first 9.2 s before; did rank "
		     "0 wait for them?\n");
	/* Slurm has ended it when it had told its error. */
	expect_words(&(struct end){ 0, SIGTERM, 12000, NULL, "E: closed" },
		     "slurm-ddp: rank 0 failed first on n1 (pid 100) after "
		     "2.0 s: it was still ending when it was killed: E: closed\n"
		     "slurm-ddp: ranks 1-3 had ended with exit code 0, the "
		     "first 9.2 s before; did rank 0 wait for them?\n");
	expect_words(&(struct end){ 0, 1 << 8, 10600, NULL, NULL },
		     "slurm-ddp: rank 0 failed first on n1 (pid 100) after "
		     "0.6 s: exit code 1\n");
}

static bool awaits_error(const struct ddp_step *step)
{
	const struct ddp_verdict first = ddp_verdict_find(step);

	return ddp_verdict_awaits_error(&first, step);
}

/* Rank 2 has an error at 11.0 s, and runs; 5 s less is its own clock's time. */
Test(verdict, an_error_of_a_rank_that_runs)
{
	static const struct {
		struct end first;
		bool waits;
	} cases[] = {
		{ { 0, 1 << 8, 11100, NULL, "E: closed" }, true },
		{ { 0, 1 << 8, 10900, NULL, "E: closed" }, false },
		{ { 0, 1 << 8, 11200, NULL, NULL }, true },
		/* It may have seen that rank 0 was ending. */
		{ { 0, 1 << 8, 11100, NULL, NULL }, false },
		{ { 0, 9, 11900, "out of memory", NULL }, false },
	};
	struct ddp_wire wire = {
		.rank = 2, .at_ns = (uint64_t)MS(6000), .message = "E: bad",
	};
	struct ddp_text text = { 0 };
	struct ddp_verdict verdict;
	struct ddp_step step;
	char *words;
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		begin(&step);
		ddp_step_add_error(&step, 1, &wire);
		cr_expect_not(awaits_error(&step));
		add(&step, &cases[i].first);
		cr_expect_eq(awaits_error(&step), cases[i].waits,
			     "case %zu", i);
		ddp_step_clear(&step);
	}
	begin(&step);
	ddp_step_add_error(&step, 0, &wire);	/* not that node's */
	add(&step, &cases[0].first);
	cr_expect_not(awaits_error(&step));
	ddp_step_add_error(&step, 1, &wire);
	verdict = ddp_verdict_find(&step);
	ddp_verdict_add(&text, &verdict, &step);
	words = ddp_text_finish(&text);
	cr_expect_str_eq(words, "slurm-ddp: rank 0 failed first on n1 (pid 100) "
			 "after 1.1 s: exit code 1: E: closed\nslurm-ddp: "
			 "rank 2, which still ran, had an error 0.1 s before: "
			 "E: bad\n", "%s", words);
	free(words);
	add(&step, &(struct end){ 2, 15, 6900, NULL, NULL });
	cr_expect_not(awaits_error(&step));
	ddp_step_clear(&step);
}

/*
 * A task's warning comes back where the step had to be ended, as nothing else
 * explains why it waited; not where a rank failed for a cause of its own.
 */
Test(verdict, warning)
{
	static const struct {
		bool again;
		enum ddp_verdict_kind kind;
		const char *message;
	} rows[] = {
		{ true, DDP_VERDICT_HANG, NULL },
		{ true, DDP_VERDICT_SIGNAL, NULL },
		{ true, DDP_VERDICT_RANK, "The client socket has timed out" },
		{ true, DDP_VERDICT_RANK, "Timeout waiting for key" },
		{ false, DDP_VERDICT_RANK, "IndexError: list index" },
		{ false, DDP_VERDICT_RANK, NULL },
		{ false, DDP_VERDICT_NODE, NULL },
		{ false, DDP_VERDICT_SAVED, NULL },
	};
	static const char warned[] = "slurm-ddp: MASTER_ADDR=n9 was\n";
	struct ddp_verdict verdict = { .rank = 3 };
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct ddp_text text = { 0 };
		struct ddp_step step;
		char *words;

		warning = "MASTER_ADDR=n9 was";
		begin(&step);
		warning = "";
		add(&step, &(struct end){ 3, 1 << 8, 6000, 0, rows[i].message });
		cr_assert_eq(ddp_hang_begin(&step, 5), 0);
		verdict.kind = rows[i].kind;
		ddp_verdict_add(&text, &verdict, &step);
		ddp_text_add_bytes(&text, "", 1);
		words = ddp_text_finish(&text);
		cr_expect_eq(strstr(words, warned) != NULL, rows[i].again,
			     "%zu: %s", i, words);
		free(words);
		ddp_step_clear(&step);
	}
}
