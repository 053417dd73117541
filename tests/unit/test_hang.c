/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether a step hangs, who holds it up, and how that is said. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verdict/hang.h"
#include "verdict/verdict.h"

enum { WORLD = 4 };

/* Two nodes with two ranks each. */
static void begin(struct ddp_step *step)
{
	struct ddp_wire wire = {
		.kind = DDP_WIRE_HELLO, .job_id = 7, .step_id = 1,
		.world_size = WORLD, .count = 2, .node = "n1",
	};
	uint32_t i;

	memset(step, 0, sizeof(*step));
	cr_assert_eq(ddp_step_add_node(step, &wire, 0), 0);
	strcpy(wire.node, "n2");
	cr_assert_eq(ddp_step_add_node(step, &wire, 0), 1);
	for (i = 0; i < WORLD; i++) {
		wire.rank = i;
		wire.pid = 100 + i;
		ddp_step_add_rank(step, i / 2, &wire);
	}
}

static void pulse(struct ddp_step *step, uint32_t node, uint32_t idle_ms)
{
	struct ddp_wire wire = { .kind = DDP_WIRE_PULSE, .idle_ms = idle_ms };

	ddp_hang_add_pulse(step, node, &wire);
}

/* At 1 s. */
static void end(struct ddp_step *step, uint32_t rank)
{
	struct ddp_wire wire = { .kind = DDP_WIRE_END, .rank = rank };

	ddp_step_add_end(step, rank / 2, &wire, INT64_C(1000000000));
}

static uint32_t idle_ms(const struct ddp_step *step, int now_s)
{
	return ddp_hang_idle_ms(step, now_s * INT64_C(1000000000));
}

Test(hang, time_of_a_step)
{
	struct ddp_wire hello = {
		.kind = DDP_WIRE_HELLO, .world_size = 2, .count = 1,
	}, rank = { .kind = DDP_WIRE_RANK };
	struct ddp_step step = { 0 };

	cr_expect_eq(idle_ms(&step, 60), 0, "nobody is there");
	ddp_step_add_node(&step, &hello, 0);
	ddp_step_add_rank(&step, 0, &rank);
	pulse(&step, 0, 9000);
	cr_expect_eq(idle_ms(&step, 60), 0, "a rank is still missing");
	ddp_step_clear(&step);

	begin(&step);
	pulse(&step, 0, 9000);
	cr_expect_eq(idle_ms(&step, 60), 0, "a node has said nothing");
	pulse(&step, 1, 5000);
	cr_expect_eq(idle_ms(&step, 60), 5000, "the last to move counts");
	end(&step, 2);
	cr_expect_eq(idle_ms(&step, 60), 5000);
	end(&step, 3);
	cr_expect_eq(idle_ms(&step, 60), 9000, "who has ended does not");
	cr_expect_eq(idle_ms(&step, 4), 3000, "but its end was progress");
	step.nodes[0].silent = true;
	cr_expect_eq(idle_ms(&step, 60), 0, "an agent is held up");
	step.nodes[0].silent = false;
	step.nodes[0].left = true;
	cr_expect_eq(idle_ms(&step, 60), 0, "an agent is gone");
	ddp_step_clear(&step);
}

struct does {
	char state;		/* 0: it has ended; '-': it does not say */
	const char *where;
	uint32_t depth, beats, idle_s, behind;
};

#define WAITS(state, where, depth, beats, idle) \
	{ state, where, depth, beats, idle, 0 }
#define FUTEX(depth, beats, idle) WAITS('S', "futex", depth, beats, idle)
#define SPINS(behind) { 'R', "", 0, 0, 9, behind }
#define ENDED { .state = 0 }

static const struct {
	const char *name;
	struct does ranks[WORLD];
	enum ddp_hang_why why;
	const char *lags;
} rules[] = {
	{ "all alike", { FUTEX(600, 0, 9), FUTEX(600, 0, 9), FUTEX(600, 0, 9),
			 FUTEX(600, 0, 9) }, DDP_HANG_NOBODY, "" },
	{ "one stopped, and another waits elsewhere",
	  { FUTEX(600, 0, 9), WAITS('S', "poll", 600, 0, 9),
	    WAITS('T', "do_signal_stop", 600, 0, 9), FUTEX(600, 0, 9) },
	  DDP_HANG_STOPPED, "2" },
	{ "two of four are stopped, one by a debugger",
	  { FUTEX(600, 0, 9), WAITS('T', "a", 1, 0, 9),
	    WAITS('t', "b", 2, 0, 9), FUTEX(600, 0, 9) },
	  DDP_HANG_STOPPED, "12" },
	{ "all are stopped",
	  { WAITS('T', "a", 6, 0, 9), WAITS('T', "a", 6, 0, 9),
	    WAITS('T', "a", 6, 0, 9), WAITS('T', "a", 6, 0, 9) },
	  DDP_HANG_NOBODY, "" },
	{ "one in the kernel", { FUTEX(600, 0, 9), WAITS('D', "nfs", 6, 0, 9),
				 FUTEX(600, 0, 9), ENDED },
	  DDP_HANG_BLOCKED, "1" },
	{ "one has ended", { FUTEX(600, 0, 9), FUTEX(600, 0, 9), ENDED,
			     WAITS('S', "poll", 6, 0, 9) },
	  DDP_HANG_ENDED, "2" },
	{ "half have ended", { FUTEX(600, 0, 9), FUTEX(600, 0, 9), ENDED,
			       ENDED }, DDP_HANG_ENDED, "23" },
	{ "most have ended", { ENDED, FUTEX(600, 0, 9), ENDED, ENDED },
	  DDP_HANG_LEFT, "1" },
	{ "one has fewer heartbeats, another waits elsewhere",
	  { FUTEX(600, 4, 9), FUTEX(600, 4, 9), WAITS('S', "poll", 6, 4, 9),
	    FUTEX(600, 3, 9) }, DDP_HANG_BEATS, "3" },
	{ "only rank 0 has heartbeats at all",
	  { FUTEX(600, 4, 9), FUTEX(600, 0, 9), FUTEX(600, 0, 9),
	    FUTEX(600, 0, 9) }, DDP_HANG_NOBODY, "" },
	{ "heartbeats without a majority",
	  { FUTEX(600, 4, 9), FUTEX(600, 4, 9), FUTEX(600, 3, 9),
	    FUTEX(600, 3, 9) }, DDP_HANG_NOBODY, "" },
	{ "one waits elsewhere, which is not idle for longest",
	  { FUTEX(600, 0, 30), FUTEX(600, 0, 9), WAITS('S', "nap", 600, 0, 15),
	    FUTEX(600, 0, 9) }, DDP_HANG_PLACE, "2" },
	{ "the same wait, called from elsewhere",
	  { FUTEX(6064, 0, 9), FUTEX(6064, 0, 9), FUTEX(2656, 0, 9),
	    FUTEX(6064, 0, 9) }, DDP_HANG_PLACE, "2" },
	{ "the same call, but for alignment and one that is not known",
	  { FUTEX(6064, 0, 9), FUTEX(6128, 0, 9), FUTEX(0, 0, 9),
	    FUTEX(5936, 0, 9) }, DDP_HANG_NOBODY, "" },
	{ "two waits, two ranks each",
	  { FUTEX(600, 0, 9), FUTEX(600, 0, 9), WAITS('S', "nap", 600, 0, 9),
	    WAITS('S', "nap", 600, 0, 9) }, DDP_HANG_NOBODY, "" },
	{ "one runs, and the others wait",
	  { FUTEX(600, 0, 9), WAITS('R', "", 0, 0, 9), FUTEX(600, 0, 9),
	    FUTEX(600, 0, 9) }, DDP_HANG_PLACE, "1" },
	{ "one of three waits elsewhere, and one says nothing",
	  { FUTEX(600, 0, 9), WAITS('-', "", 0, 0, 0), FUTEX(600, 0, 9),
	    WAITS('S', "nap", 600, 0, 9) }, DDP_HANG_PLACE, "3" },
	{ "the same, and it is the first that says nothing",
	  { WAITS('-', "", 0, 0, 0), FUTEX(600, 0, 9), FUTEX(600, 0, 9),
	    WAITS('S', "nap", 600, 0, 9) }, DDP_HANG_PLACE, "3" },
	{ "one is idle for longer",
	  { FUTEX(600, 0, 9), FUTEX(600, 0, 20), FUTEX(600, 0, 9),
	    FUTEX(600, 0, 13) }, DDP_HANG_IDLE, "1" },
	{ "all use a CPU, and one has launched less",
	  { SPINS(0), SPINS(0), SPINS(0), SPINS(3) }, DDP_HANG_NCCL, "3" },
	{ "all have launched less",
	  { SPINS(1), SPINS(1), SPINS(1), SPINS(1) }, DDP_HANG_NOBODY, "" },
	{ "without a majority, and one of two that nap has launched less",
	  { SPINS(0), WAITS('S', "nap", 6, 0, 9), { 'S', "nap", 6, 0, 9, 7 },
	    SPINS(0) }, DDP_HANG_NCCL, "2" },
	{ "one waits elsewhere, another has launched less: no fewer",
	  { FUTEX(600, 0, 9), WAITS('S', "nap", 600, 0, 9),
	    { 'S', "futex", 600, 0, 9, 2 }, FUTEX(600, 0, 9) },
	  DDP_HANG_PLACE, "1" },
	{ "two are idle for longer, and one of them has launched less",
	  { FUTEX(600, 0, 9), FUTEX(600, 0, 20),
	    { 'S', "futex", 600, 0, 20, 1 }, FUTEX(600, 0, 9) },
	  DDP_HANG_NCCL, "2" },
	{ "one is stopped, and does not answer; another is behind",
	  { FUTEX(600, 0, 9), { 'T', "a", 600, 0, 9, UINT32_MAX },
	    FUTEX(600, 0, 9), { 'S', "futex", 600, 0, 9, 1 } },
	  DDP_HANG_STOPPED, "1" },
	{ "all but one are idle for longer: they wait for it",
	  { FUTEX(600, 0, 30), FUTEX(600, 0, 9), FUTEX(600, 0, 30),
	    FUTEX(600, 0, 30) }, DDP_HANG_NOBODY, "" },
};

static void fill(struct ddp_step *step, const struct does *ranks)
{
	uint32_t i;

	begin(step);
	cr_assert_eq(ddp_hang_begin(step, 9), 0);
	for (i = 0; i < WORLD; i++) {
		struct ddp_wire wire = {
			.kind = DDP_WIRE_DETAIL, .rank = i,
			.status = (uint32_t)ranks[i].state,
			.depth = ranks[i].depth, .beats = ranks[i].beats,
			.idle_ms = 1000 * ranks[i].idle_s,
			.behind = ranks[i].behind,
		};

		if (!ranks[i].state)
			end(step, i);
		if (!ranks[i].state || ranks[i].state == '-')
			continue;
		strcpy(wire.message, ranks[i].where);
		ddp_hang_add_detail(step, i / 2, &wire);
	}
	ddp_hang_judge(step, 1);
}

Test(hang, who_lags)
{
	struct ddp_step step;
	char lags[WORLD + 1];
	size_t row;
	uint32_t i;

	for (row = 0; row < sizeof(rules) / sizeof(rules[0]); row++) {
		fill(&step, rules[row].ranks);
		lags[0] = '\0';
		for (i = 0; i < WORLD; i++)
			if (step.hang->ranks[i].lags)
				sprintf(lags + strlen(lags), "%u", i);
		cr_expect_eq(step.hang->why, rules[row].why, "%s: %d",
			     rules[row].name, step.hang->why);
		cr_expect_str_eq(lags, rules[row].lags, "%s",
				 rules[row].name);
		ddp_step_clear(&step);
	}
}

Test(hang, details)
{
	struct ddp_wire wire = {
		.kind = DDP_WIRE_DETAIL, .rank = 1, .status = 'S',
	};
	struct ddp_step step;
	uint32_t i;

	begin(&step);
	ddp_hang_add_detail(&step, 0, &wire);	/* nobody has asked */
	cr_expect_null(step.hang);
	cr_assert_eq(ddp_hang_begin(&step, 9), 0);
	ddp_hang_add_detail(&step, 1, &wire);	/* another node's rank */
	wire.rank = WORLD;
	ddp_hang_add_detail(&step, 0, &wire);
	end(&step, 3);
	for (i = 0; i < 3; i++) {
		cr_expect_not(ddp_hang_complete(&step), "%u", i);
		wire.rank = i;
		ddp_hang_add_detail(&step, i / 2, &wire);
	}
	cr_expect(ddp_hang_complete(&step), "who has ended need not tell");
	wire.status = 'T';
	wire.rank = 0;
	ddp_hang_add_detail(&step, 0, &wire);
	cr_expect_eq(step.hang->ranks[0].state, 'S', "the first counts");
	cr_expect_eq(ddp_verdict_find(&step).kind, DDP_VERDICT_NONE);
	ddp_hang_clear(&step);
	cr_expect_null(step.hang);
	ddp_step_clear(&step);
}

static void expect_text(struct ddp_text *text, const char *wanted)
{
	char *all = ddp_text_finish(text);

	cr_expect_str_eq(all, wanted);
	free(all);
}

Test(hang, words)
{
	struct ddp_wire wire = {
		.kind = DDP_WIRE_DETAIL, .rank = 2, .status = 'T',
		.idle_ms = 61900, .beats = 12, .behind = 3,
		.message = "do_signal_stop",
		.tail = "barrier (a.py:3)\nmain\n",
	};
	struct ddp_text text = { 0 };
	struct ddp_verdict verdict;
	struct ddp_step step;
	uint32_t i;

	begin(&step);
	cr_assert_eq(ddp_hang_begin(&step, 60), 0);
	ddp_hang_add_detail(&step, 1, &wire);
	wire.status = 'S';
	wire.behind = 0;
	strcpy(wire.message, "futex_wait");
	strcpy(wire.tail, "?? ()\nall_reduce (b.py:1)\n");
	for (i = 0; i < 2; i++) {
		wire.rank = i;
		ddp_hang_add_detail(&step, 0, &wire);
	}
	ddp_hang_judge(&step, 5000000000);
	verdict = ddp_verdict_find(&step);
	cr_expect_eq(verdict.kind, DDP_VERDICT_HANG);
	cr_expect_eq(verdict.after_ns, 5000000000);
	cr_expect_eq(ddp_verdict_code(&verdict, &step), 124);
	ddp_verdict_add(&text, &verdict, &step);
	expect_text(&text,
		    "slurm-ddp: no rank has made progress for 60 s, and so the "
		    "step ends; rank 2 holds the others up: stopped\n"
		    "slurm-ddp: rank 2 on n2 (pid 102): stopped in "
		    "do_signal_stop; last progress 61 s ago, 12 heartbeats; "
		    "NCCL: 3 operations behind\n"
		    "slurm-ddp: rank 2: | barrier (a.py:3)\n"
		    "slurm-ddp: rank 2: | main\n"
		    "slurm-ddp: ranks 0-1: sleeping in futex_wait, all_reduce\n"
		    "slurm-ddp: rank 3: not known\n");
	memset(&text, 0, sizeof(text));
	ddp_hang_add_json(&text, &step);
	ddp_hang_add_rank_json(&text, &step, 2);
	ddp_hang_add_rank_json(&text, &step, 3);
	ddp_hang_add_rank_json(&text, &step, 1);
	step.hang->ranks[1].behind = UINT32_MAX;
	ddp_hang_add_rank_json(&text, &step, 1);
	expect_text(&text, ", \"seconds\": 60, \"why\": \"stopped\", "
		    "\"lagging\": [2], \"state\": \"T\", \"waits_in\": "
		    "\"do_signal_stop\", \"idle_s\": 61.900, \"heartbeats\": "
		    "12, \"nccl_behind\": 3, \"stack\": [\"barrier (a.py:3)\", "
		    "\"main\"]"
		    ", \"state\": \"S\", \"waits_in\": \"futex_wait\", "
		    "\"idle_s\": 61.900, \"heartbeats\": 12, "
		    "\"nccl_behind\": 0, \"stack\": [\"?? ()\", "
		    "\"all_reduce (b.py:1)\"]"
		    ", \"state\": \"S\", \"waits_in\": \"futex_wait\", "
		    "\"idle_s\": 61.900, \"heartbeats\": 12, "
		    "\"nccl_behind\": -1, \"stack\": [\"?? ()\", "
		    "\"all_reduce (b.py:1)\"]");
	ddp_step_clear(&step);
}

Test(hang, words_name_who_lags_once)
{
	static const struct does ranks[WORLD] = {
		FUTEX(600, 4, 9), FUTEX(600, 4, 9), FUTEX(600, 4, 9),
		FUTEX(600, 3, 9),
	};
	struct ddp_text text = { 0 };
	struct ddp_step step;

	fill(&step, ranks);
	ddp_hang_add_words(&text, &step);
	expect_text(&text,
		    "slurm-ddp: no rank has made progress for 9 s, and so the "
		    "step ends; rank 3 holds the others up: behind in "
		    "heartbeats\n"
		    "slurm-ddp: rank 3 on n2 (pid 103): sleeping in futex; "
		    "last progress 9 s ago, 3 heartbeats\n"
		    "slurm-ddp: ranks 0-2: sleeping in futex\n");
	ddp_step_clear(&step);
}

Test(hang, words_of_a_large_world_are_few)
{
	struct ddp_wire wire = {
		.kind = DDP_WIRE_HELLO, .world_size = 3000, .count = 3000,
		.node = "n1",
	};
	struct ddp_text text = { 0 };
	struct ddp_step step = { 0 };
	char *all, *at;
	int lines = 0;
	uint32_t i;

	cr_assert_eq(ddp_step_add_node(&step, &wire, 0), 0);
	for (i = 0; i < 3000; i++) {
		wire.rank = i;
		ddp_step_add_rank(&step, 0, &wire);
	}
	cr_assert_eq(ddp_hang_begin(&step, 60), 0);
	wire.kind = DDP_WIRE_DETAIL;
	for (i = 0; i < 3000; i++) {
		wire.rank = i;
		wire.status = i % 3 ? 'S' : 'T';
		sprintf(wire.message, "place %u", i % 40);
		ddp_hang_add_detail(&step, 0, &wire);
	}
	ddp_hang_judge(&step, 5000000000);
	ddp_hang_add_words(&text, &step);
	all = ddp_text_finish(&text);
	for (at = all; (at = strchr(at, '\n')); at++)
		lines++;
	cr_expect_eq(lines, 1 + 8 + 8 + 1, "%d", lines);
	cr_expect_lt(strlen(all), 4096);
	free(all);
	ddp_step_clear(&step);
}
