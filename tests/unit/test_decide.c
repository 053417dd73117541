/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table that decides about a failed step: for each row a case that only it
 * satisfies, and cases that would have another answer in another order. Rank 1 of
 * four on two nodes fails at 15 s, and that is heard of at 20 s.
 */
#include <criterion/criterion.h>

#include <signal.h>
#include <string.h>
#include <sysexits.h>

#include "verdict/decide.h"
#include "verdict/hang.h"

#define MS(count) ((int64_t)(count) * 1000000)

#define EARLIEST "agents tell of no earlier failure"

enum { FAILED_MS = 20000, CODE = 1 << 8 };

/* Others than rank 1 end 0.6 s later. */
static void end(struct ddp_facts *facts, uint32_t rank, uint32_t status,
		const char *cause)
{
	struct ddp_wire wire = {
		.rank = rank, .status = status,
		.at_ns = (uint64_t)MS(rank == 1 ? 15000 : 15600),
	};

	strcpy(wire.cause, cause);
	ddp_step_add_end(&facts->step, rank / 2, &wire, MS(FAILED_MS));
}

/* Both agents are there, and have answered since the failure. */
static void begin(struct ddp_facts *facts)
{
	struct ddp_wire wire = {
		.job_id = 7, .step_id = 1, .world_size = 4, .count = 2,
		.node = "n1",
	};
	uint32_t i;

	memset(facts, 0, sizeof(*facts));
	facts->kills = true;
	ddp_facts_enter(facts, DDP_PHASE_LAUNCHING, MS(9000));
	cr_assert_eq(ddp_step_add_node(&facts->step, &wire, MS(10000)), 0);
	strcpy(wire.node, "n2");
	cr_assert_eq(ddp_step_add_node(&facts->step, &wire, MS(10000)), 1);
	for (i = 0; i < 4; i++) {
		wire.rank = i;
		ddp_step_add_rank(&facts->step, i / 2, &wire);
	}
	for (i = 0; i < 2; i++) {
		wire.ping_ns = (uint64_t)MS(FAILED_MS + 1);
		wire.at_ns = (uint64_t)MS(FAILED_MS + 1);
		ddp_step_add_pong(&facts->step, i, &wire, MS(FAILED_MS + 1));
		facts->step.nodes[i].open = true;
	}
}

/* srun has named these ranks at that time. */
static void name(struct ddp_facts *facts, const char *ranks, int at_ms)
{
	ddp_text_add_fixed(&facts->said.failed, ranks);
	facts->said.failed_ns = facts->said.last_ns = MS(at_ms);
}

static void end_for(struct ddp_facts *facts, const char *ranks)
{
	name(facts, ranks, FAILED_MS - 100);
	facts->cancelled = true;
	facts->said.ends = DDP_SAID_SRUN;
	facts->said.reason = facts->said.failed.length;
}

/* ---- what else is true */

static void behind(struct ddp_facts *facts)
{
	facts->step.nodes[1].answered_ns = MS(FAILED_MS - 1);
}

static void behind_and_gone(struct ddp_facts *facts)
{
	behind(facts);
	facts->step.nodes[1].open = false;
}

static void silent(struct ddp_facts *facts)
{
	behind(facts);
	facts->step.nodes[1].silent = true;
}

static void silent_and_lost(struct ddp_facts *facts)
{
	silent(facts);
	facts->step.nodes[1].lost = true;
	facts->step.nodes[1].lost_ns = MS(16000);
}

static void silent_with_nothing_to_tell(struct ddp_facts *facts)
{
	end(facts, 2, 0, "");
	end(facts, 3, 0, "");
	silent(facts);
}

static void behind_with_nothing_to_tell(struct ddp_facts *facts)
{
	end(facts, 2, 0, "");
	end(facts, 3, 0, "");
	behind(facts);
}

static void left_by_srun(struct ddp_facts *facts)
{
	facts->ended_ns = MS(13000);
	facts->status = CODE;
	facts->step.grace.over_ns = MS(14000);
}

static void unreachable(struct ddp_facts *facts)
{
	facts->step.nodes[1].unreachable = true;
}

static void unreachable_at_the_end(struct ddp_facts *facts)
{
	unreachable(facts);
	end(facts, 0, CODE, "");
	end(facts, 2, CODE, "");
	end(facts, 3, CODE, "");
}

/* At 14 s, and it runs. */
static void error_before(struct ddp_facts *facts)
{
	const struct ddp_wire wire = {
		.rank = 2, .at_ns = (uint64_t)MS(14000), .message = "E",
	};

	ddp_step_add_error(&facts->step, 1, &wire);
}

static void others_end(struct ddp_facts *facts)
{
	facts->said.ends = DDP_SAID_OTHERS;
}

static void others_end_later(struct ddp_facts *facts)
{
	others_end(facts);
	facts->said.ends_ns = MS(FAILED_MS + 500);
	facts->ended_ns = MS(FAILED_MS + 600);
	facts->status = CODE;
	end(facts, 2, CODE, "");
}

/* It ends 0.6 s later, by srun's code. */
static void another_misses_it(struct ddp_facts *facts)
{
	others_end(facts);
	facts->ended_ns = MS(FAILED_MS + 100);
	facts->status = CODE;
	end(facts, 2, CODE, "");
}

static void others_end_srun(struct ddp_facts *facts)
{
	others_end(facts);
	facts->ended_ns = MS(FAILED_MS + 100);
	facts->status = SIGTERM;
}

static void ranks_abort(struct ddp_facts *facts)
{
	others_end_srun(facts);
	facts->status = 6 * CODE;
}

static void we_cancel(struct ddp_facts *facts)
{
	others_end(facts);
	facts->scancelled_ns = MS(FAILED_MS + 50);
}

static void cancelled(struct ddp_facts *facts)
{
	facts->cancelled = true;
}

static void aborted(struct ddp_facts *facts)
{
	facts->aborted = true;
}

static void srun_ends_for_1(struct ddp_facts *facts)
{
	end_for(facts, "1,");
}

static void srun_ends_for_3(struct ddp_facts *facts)
{
	end_for(facts, "3,");
}

static void agent_killed(struct ddp_facts *facts)
{
	facts->cancelled = true;
	facts->step.nodes[1].left = true;
	facts->step.nodes[1].left_ns = MS(FAILED_MS);
	facts->step.nodes[1].open = false;
}

static void job_asked(struct ddp_facts *facts)
{
	agent_killed(facts);
	facts->job = DDP_JOB_ASKED;
}

static void job_runs(struct ddp_facts *facts)
{
	agent_killed(facts);
	facts->job = DDP_JOB_RUNS;
}

static void job_unknown(struct ddp_facts *facts)
{
	agent_killed(facts);
	facts->job = DDP_JOB_UNKNOWN;
}

static void unwatched_before(struct ddp_facts *facts)
{
	facts->unwatched_ns = MS(14000);
	facts->by_user = true;
}

static void unwatched_after(struct ddp_facts *facts)
{
	facts->unwatched_ns = MS(16000);
}

static void by_user(struct ddp_facts *facts)
{
	facts->by_user = true;
}

static void all_saved(struct ddp_facts *facts)
{
	facts->by_user = facts->step.saves = true;
	end(facts, 0, EX_TEMPFAIL * CODE, "");
	end(facts, 2, EX_TEMPFAIL * CODE, "");
	end(facts, 3, EX_TEMPFAIL * CODE, "");
}

static void hang(struct ddp_facts *facts)
{
	cr_assert_eq(ddp_hang_begin(&facts->step, 60), 0);
	ddp_hang_judge(&facts->step, MS(FAILED_MS));
}

static void node_lost(struct ddp_facts *facts)
{
	facts->step.nodes[1].lost = true;
	facts->step.nodes[1].lost_ns = MS(14000);
}

static void agent_gone(struct ddp_facts *facts)
{
	facts->step.nodes[1].left = true;
	facts->step.nodes[1].left_ns = MS(14000);
	facts->step.nodes[1].open = false;
}

static void all_terminated(struct ddp_facts *facts)
{
	uint32_t i;

	for (i = 0; i < 4; i++)
		if (i != 1)
			end(facts, i, SIGTERM, "");
	for (i = 0; i < 4; i++)
		facts->step.ranks[i].at_ns = MS(15000);
}

static const struct {
	const char *row;		/* wanted */
	enum ddp_decision_kind kind;
	int waited_ms;
	uint32_t status;		/* of rank 1 */
	const char *cause;
	void (*change)(struct ddp_facts *);
} cases[] = {
	{ "others may fail in the same way", DDP_DECISION_WAIT, 249, CODE, "",
	  NULL },
	{ EARLIEST, DDP_DECISION_CANDIDATE, 250, CODE, "",
	  NULL },
	{ "others may have been killed, too", DDP_DECISION_WAIT, 499, SIGKILL,
	  "", NULL },
	{ EARLIEST, DDP_DECISION_CANDIDATE, 500, SIGKILL,
	  "", NULL },
	{ "others may fail in the same way", DDP_DECISION_WAIT, 100, SIGSEGV,
	  "", NULL },
	{ "others may not have started, either", DDP_DECISION_WAIT, 499, CODE,
	  "cannot execute a: No such file or directory", NULL },
	{ EARLIEST, DDP_DECISION_CANDIDATE, 500, CODE,
	  "cannot execute a: No such file or directory", NULL },
	{ "an agent has not answered since", DDP_DECISION_WAIT, 3999, CODE, "",
	  behind },
	{ EARLIEST, DDP_DECISION_CANDIDATE, 4000, CODE, "",
	  behind },
	{ EARLIEST, DDP_DECISION_CANDIDATE, 250, CODE, "",
	  behind_and_gone },
	{ "an agent has not answered since", DDP_DECISION_WAIT, 3999, CODE, "",
	  silent },
	{ "another rank may be the first", DDP_DECISION_HIDDEN, 4000, CODE, "",
	  silent },
	{ EARLIEST, DDP_DECISION_CANDIDATE, 250, SIGSEGV, "", silent },
	{ EARLIEST, DDP_DECISION_CANDIDATE, 4000, CODE, "", silent_and_lost },
	{ EARLIEST, DDP_DECISION_CANDIDATE, 250, CODE, "",
	  silent_with_nothing_to_tell },
	{ EARLIEST, DDP_DECISION_CANDIDATE, 250, CODE, "",
	  behind_with_nothing_to_tell },
	{ "it followed from our own end of the step", DDP_DECISION_NOBODY, 500,
	  SIGKILL, "", left_by_srun },
	{ "a node may be lost", DDP_DECISION_WAIT, 9999, CODE, "",
	  unreachable },
	{ EARLIEST, DDP_DECISION_CANDIDATE, 10000, CODE, "",
	  unreachable },
	{ EARLIEST, DDP_DECISION_CANDIDATE, 0, CODE, "",
	  unreachable_at_the_end },
	{ "a rank that runs had an error before", DDP_DECISION_WAIT, 1499,
	  CODE, "", error_before },
	{ EARLIEST, DDP_DECISION_CANDIDATE, 1500, CODE, "",
	  error_before },
	{ EARLIEST, DDP_DECISION_CANDIDATE, 600, SIGKILL,
	  "out of memory", error_before },
	{ "srun may end, as others ended the step", DDP_DECISION_WAIT, 4999,
	  SIGTERM, "", others_end },
	{ "the step was cancelled", DDP_DECISION_USER, 5000, SIGTERM, "",
	  others_end },
	{ "the step was cancelled", DDP_DECISION_USER, 500, SIGTERM, "",
	  others_end_srun },
	{ EARLIEST, DDP_DECISION_CANDIDATE, 600, SIGTERM, "",
	  others_end_later },
	{ EARLIEST, DDP_DECISION_CANDIDATE, 600, SIGKILL, "",
	  another_misses_it },
	{ "the step was cancelled", DDP_DECISION_USER, 600, SIGTERM, "",
	  another_misses_it },
	{ EARLIEST, DDP_DECISION_CANDIDATE, 500, SIGTERM,
	  "", ranks_abort },
	{ EARLIEST, DDP_DECISION_CANDIDATE, 250, CODE, "",
	  others_end },
	{ EARLIEST, DDP_DECISION_CANDIDATE, 500, SIGTERM,
	  "", we_cancel },
	{ "the step was cancelled", DDP_DECISION_USER, 250, CODE, "",
	  cancelled },
	{ EARLIEST, DDP_DECISION_CANDIDATE, 250, SIGSEGV,
	  "", cancelled },
	{ EARLIEST, DDP_DECISION_CANDIDATE, 250, CODE, "",
	  srun_ends_for_1 },
	{ "srun's reason may come", DDP_DECISION_WAIT, 1499, CODE, "",
	  srun_ends_for_3 },
	{ "the step was cancelled", DDP_DECISION_USER, 1500, CODE, "",
	  srun_ends_for_3 },
	{ "the job may be cancelled", DDP_DECISION_ASK, 250, CODE, "",
	  agent_killed },
	{ "the step was cancelled", DDP_DECISION_USER, 500, SIGTERM, "",
	  cancelled },
	{ "slurmctld is asked", DDP_DECISION_WAIT, 90000, CODE, "", job_asked },
	{ EARLIEST, DDP_DECISION_CANDIDATE, 250, CODE, "",
	  job_runs },
	{ "the step was cancelled", DDP_DECISION_USER, 250, CODE, "",
	  job_unknown },
	{ "srun was aborted", DDP_DECISION_USER, 500, SIGTERM, "", aborted },
	{ EARLIEST, DDP_DECISION_CANDIDATE, 250, CODE, "",
	  aborted },
	{ "it followed from our own end of the step", DDP_DECISION_NOBODY, 250,
	  CODE, "", unwatched_before },
	{ EARLIEST, DDP_DECISION_CANDIDATE, 250, CODE, "",
	  unwatched_after },
	{ "srun was told to end, or killed", DDP_DECISION_USER, 250, SIGSEGV,
	  "", by_user },
	{ "all have saved", DDP_DECISION_CANDIDATE, 0, EX_TEMPFAIL * CODE, "",
	  all_saved },
	{ "no rank makes progress", DDP_DECISION_CANDIDATE, 250, CODE, "",
	  hang },
	{ "the node was lost before a rank failed", DDP_DECISION_CANDIDATE,
	  250, CODE, "", node_lost },
	{ "one signal has ended all ranks", DDP_DECISION_CANDIDATE, 0, SIGTERM,
	  "", all_terminated },
	{ "who was first is in doubt",
	  DDP_DECISION_CANDIDATE, 500, SIGTERM, "", agent_gone },
};

Test(decide, rows)
{
	struct ddp_decision decision;
	struct ddp_facts facts;
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		begin(&facts);
		end(&facts, 1, cases[i].status, cases[i].cause);
		ddp_facts_fail(&facts, MS(FAILED_MS));
		if (cases[i].change)
			cases[i].change(&facts);
		decision = ddp_decide(&facts,
				      MS(FAILED_MS + cases[i].waited_ms));
		cr_expect_str_eq(decision.row, cases[i].row, "case %zu: %s", i,
				 decision.row);
		cr_expect_eq(decision.kind, cases[i].kind, "case %zu", i);
		cr_expect(strcmp(cases[i].row, EARLIEST) != 0 ||
			  (decision.verdict.kind == DDP_VERDICT_RANK &&
			   decision.verdict.rank == 1), "case %zu", i);
		ddp_facts_clear(&facts);
	}
}

/* What was said long before explains nothing. */
Test(decide, what_may_explain_a_failure)
{
	static const struct {
		int cancelled_ms, told_ms;
		bool cancelled, told;
	} rows[] = {
		{ 60000, 0, true, false },
		{ 20001, 0, true, false },
		{ 20000, 0, false, false },
		{ 0, 50001, false, true },
		{ 0, 50000, false, false },
		{ 0, 0, false, false },
	};
	struct ddp_facts facts;
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		begin(&facts);
		facts.said.cancelled_ns = MS(rows[i].cancelled_ms);
		facts.told_ns = MS(rows[i].told_ms);
		ddp_facts_fail(&facts, MS(60000));
		cr_expect_eq(facts.cancelled, rows[i].cancelled, "row %zu", i);
		cr_expect_eq(facts.told, rows[i].told, "row %zu", i);
		cr_expect_eq(facts.by_user, rows[i].told, "row %zu", i);
		ddp_facts_clear(&facts);
	}
}

/* A phase is entered once, and none after a later one. */
Test(decide, phases)
{
	struct ddp_facts facts;

	begin(&facts);
	cr_expect_eq(facts.phase, DDP_PHASE_LAUNCHING);
	ddp_facts_fail(&facts, MS(FAILED_MS));
	ddp_facts_fail(&facts, MS(FAILED_MS + 1));
	cr_expect_eq(facts.failed_ns, MS(FAILED_MS));
	ddp_facts_enter(&facts, DDP_PHASE_ENDING, MS(FAILED_MS + 2));
	ddp_facts_enter(&facts, DDP_PHASE_FAILING, MS(FAILED_MS + 3));
	ddp_facts_fail(&facts, MS(FAILED_MS + 3));
	cr_expect_eq(facts.phase, DDP_PHASE_ENDING);
	cr_expect_eq(facts.failed_ns, MS(FAILED_MS));
	ddp_facts_clear(&facts);
}

/* Which verdicts end a step, of which the user wants that or not. */
Test(decide, ends)
{
	static const struct {
		bool kills, alone, ends;
		enum ddp_verdict_kind kind;
		void (*change)(struct ddp_facts *);
	} rows[] = {
		{ true, false, true, DDP_VERDICT_RANK, NULL },
		{ true, false, true, DDP_VERDICT_NODE, NULL },
		{ false, false, false, DDP_VERDICT_RANK, NULL },
		{ false, false, true, DDP_VERDICT_HANG, NULL },
		{ true, true, false, DDP_VERDICT_SAVED, NULL },
		{ true, false, false, DDP_VERDICT_SIGNAL, NULL },
		{ true, true, true, DDP_VERDICT_SIGNAL, NULL },
		{ true, false, false, DDP_VERDICT_NONE, NULL },
		{ false, false, true, DDP_VERDICT_NONE, unwatched_before },
	};
	struct ddp_facts facts;
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		begin(&facts);
		facts.kills = rows[i].kills;
		facts.alone = rows[i].alone;
		facts.verdict.kind = rows[i].kind;
		facts.decided_ns = MS(FAILED_MS);
		if (rows[i].change)
			rows[i].change(&facts);
		cr_expect_eq(ddp_decide_ends(&facts, MS(FAILED_MS)),
			     rows[i].ends, "row %zu", i);
		ddp_facts_clear(&facts);
	}
	/* Slurm gives ranks of a cancelled step a time of its own. */
	begin(&facts);
	facts.alone = true;
	facts.verdict.kind = DDP_VERDICT_SIGNAL;
	facts.decided_ns = facts.said.cancelled_ns = MS(FAILED_MS);
	cr_expect_not(ddp_decide_ends(&facts, MS(FAILED_MS + 39999)));
	cr_expect(ddp_decide_ends(&facts, MS(FAILED_MS + 40000)));
	facts.kills = facts.told = true;
	cr_expect(ddp_decide_ends(&facts, MS(FAILED_MS)));
	ddp_facts_clear(&facts);
}
