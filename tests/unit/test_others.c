/* SPDX-License-Identifier: BSD-3-Clause */
/* What is said of the ranks that are not named: four of them, on two nodes. */
#define _GNU_SOURCE
#include <criterion/criterion.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "verdict/facts.h"
#include "verdict/hang.h"
#include "verdict/verdict.h"

#define MS(count) ((int64_t)(count) * 1000000)

enum { FAILED = 1 << 8 };

struct end {
	uint32_t rank, status;
	const char *cause, *message, *tail;
	int seen_ms;
};

static void begin(struct ddp_step *step)
{
	struct ddp_wire wire = { .world_size = 4, .count = 2, .node = "n1" };
	uint32_t i;

	memset(step, 0, sizeof(*step));
	cr_assert_eq(ddp_step_add_node(step, &wire, 0), 0);
	strcpy(wire.node, "n2");
	cr_assert_eq(ddp_step_add_node(step, &wire, 0), 1);
	for (i = 0; i < 4; i++) {
		wire.rank = i;
		ddp_step_add_rank(step, i / 2, &wire);
	}
}

static void add(struct ddp_step *step, const struct end *end)
{
	struct ddp_wire wire = { .rank = end->rank, .status = end->status };

	strcpy(wire.cause, end->cause ? end->cause : "");
	strcpy(wire.message, end->message ? end->message : "");
	strcpy(wire.tail, end->tail ? end->tail : "");
	ddp_step_add_end(step, end->rank / 2, &wire, MS(end->seen_ms));
}

static char *say(const struct ddp_verdict *verdict, const struct ddp_step *step)
{
	struct ddp_text text = { 0 };

	ddp_verdict_add_others(&text, verdict, step);
	return text.length ? ddp_text_finish(&text) : strdup("");
}

#define ONE "slurm-ddp: 1 other rank "
#define TWO "slurm-ddp: 2 other ranks "
#define ALL "slurm-ddp: 3 other ranks "
#define ALIKE "failed in the same way\n"
#define BECAUSE "ended because of it\n"

/* Rank 0 is the one that is named. The others end later. */
static const struct {
	const char *wanted;
	struct end ends[4];
} said[] = {
	{ "", { { .status = FAILED, .tail = "a\n" }, { .rank = 1 },
		{ .rank = 2 }, { .rank = 3 } } },
	{ ALL ALIKE, { { .status = FAILED, .tail = "in f\nE: bad\n" },
		{ .rank = 1, .status = FAILED, .tail = "in g\nE: bad\n" },
		{ .rank = 2, .status = FAILED, .tail = "E: bad" },
		{ .rank = 3, .status = FAILED, .tail = "E: bad\n\n" } } },
	/* Numbers in it may differ, and nothing else. */
	{ ONE ALIKE TWO BECAUSE, {
		{ .status = FAILED, .tail = "[rank0]: E: 9 of 10\n" },
		{ .rank = 1, .status = FAILED, .tail = "[rank11]: E: 10 of 10" },
		{ .rank = 2, .status = FAILED, .tail = "[rank2]: E: a of 10" },
		{ .rank = 3, .status = FAILED, .tail = "[rank3]: E: 9 of " } } },
	{ TWO ALIKE ONE BECAUSE, {
		{ .status = FAILED, .message = "E: bad", .tail = "a\n" },
		{ .rank = 1, .status = FAILED, .message = "E: bad" },
		{ .rank = 2, .status = FAILED, .tail = "E: bad\n" },
		{ .rank = 3, .status = FAILED, .message = "E: reset" } } },
	/* Another exit code, another cause, a rank that ended well */
	{ TWO BECAUSE, { { .status = FAILED, .cause = "Xid 79" },
		{ .rank = 1, .status = 2 * FAILED, .cause = "Xid 79" },
		{ .rank = 2, .status = FAILED }, { .rank = 3 } } },
	{ ALL ALIKE, { { .status = SIGSEGV },
		{ .rank = 1, .status = SIGSEGV },
		{ .rank = 2, .status = SIGSEGV },
		{ .rank = 3, .status = SIGSEGV } } },
	/* Others get the same signal when a step ends. */
	{ ALL BECAUSE, { { .status = SIGKILL }, { .rank = 1, .status = SIGKILL },
		{ .rank = 2, .status = SIGKILL },
		{ .rank = 3, .status = SIGKILL } } },
	{ ONE ALIKE TWO BECAUSE, {
		{ .status = SIGKILL, .cause = "out of memory" },
		{ .rank = 1, .status = SIGKILL },
		{ .rank = 2, .status = SIGKILL, .cause = "out of memory" },
		{ .rank = 3, .status = SIGKILL } } },
};

Test(others, of_a_rank)
{
	const struct ddp_verdict verdict = { .kind = DDP_VERDICT_RANK };
	struct ddp_step step;
	size_t i, rank;
	char *text;

	for (i = 0; i < sizeof(said) / sizeof(said[0]); i++) {
		begin(&step);
		for (rank = 0; rank < 4; rank++)
			add(&step, &said[i].ends[rank]);
		text = say(&verdict, &step);
		cr_expect_str_eq(text, said[i].wanted, "%zu: %s", i, text);
		free(text);
		ddp_step_clear(&step);
	}
}

#define IN_ONE_WAY "failed in the same way"
#define AFTER ", after 0.0 s: "
#define FIRST(rank, node) "slurm-ddp: rank " rank " failed first on " node \
	" (pid 0) after 0.0 s: "

/* They have all ended in the order of the table before there is a verdict. */
static const struct {
	const char *wanted;
	struct end ends[4];
} together[] = {
	{ "slurm-ddp: all 4 ranks " IN_ONE_WAY AFTER "exit code 2\n"
	  "slurm-ddp: rank 0: | usage\nslurm-ddp: rank 0: | E: bad\n", {
		{ .status = 2 * FAILED, .tail = "usage\nE: bad\n" },
		{ .rank = 1, .status = 2 * FAILED, .tail = "usage\nE: bad\n" },
		{ .rank = 2, .status = 2 * FAILED, .tail = "usage\nE: bad\n" },
		{ .rank = 3, .status = 2 * FAILED, .tail = "E: bad\n" } } },
	/* One of them speaks for all, of the command line only. */
	{ "slurm-ddp: all 4 ranks " IN_ONE_WAY AFTER "exit code 2\n"
	  "slurm-ddp: rank 3: | E: bad\n", {
		{ .status = 2 * FAILED }, { .rank = 1, .status = 2 * FAILED },
		{ .rank = 2, .status = 2 * FAILED },
		{ .rank = 3, .status = 2 * FAILED, .tail = "E: bad\n" } } },
	{ FIRST("0", "n1") "exit code 1\n" ALL BECAUSE, {
		{ .status = FAILED },
		{ .rank = 1, .status = FAILED, .tail = "E: reset\n" },
		{ .rank = 2, .status = FAILED, .tail = "E: reset\n" },
		{ .rank = 3, .status = FAILED, .tail = "E: reset\n" } } },
	/* Silent ones say nothing of why. */
	{ FIRST("0", "n1") "exit code 2\n" ALL ALIKE, {
		{ .status = 2 * FAILED }, { .rank = 1, .status = 2 * FAILED },
		{ .rank = 2, .status = 2 * FAILED },
		{ .rank = 3, .status = 2 * FAILED } } },
	{ "slurm-ddp: all 4 ranks " IN_ONE_WAY AFTER
	  "cannot execute x: No such file, exit code 2\n", {
		{ .status = 2 * FAILED, .cause = "cannot execute x: No such file" },
		{ .rank = 1, .status = 2 * FAILED,
		  .cause = "cannot execute x: No such file" },
		{ .rank = 2, .status = 2 * FAILED,
		  .cause = "cannot execute x: No such file" },
		{ .rank = 3, .status = 2 * FAILED,
		  .cause = "cannot execute x: No such file" } } },
	/* One is not done yet; one ended well; one failed in another way. */
	{ "slurm-ddp: 3 of 4 ranks " IN_ONE_WAY ", while rank 2 still ran" AFTER
	  "exit code 1: E: late\n" ONE BECAUSE, {
		{ .status = FAILED, .message = "E: late" },
		{ .rank = 1, .status = FAILED, .message = "E: late" },
		{ .rank = 3, .status = FAILED, .message = "E: late" },
		{ .rank = 4 } } },
	{ FIRST("0", "n1") "exit code 1: E: late\nslurm-ddp: rank 2 had ended "
	  "with exit code 0, 0.0 s before; did rank 0 wait for it?\n"
	  TWO ALIKE, {
		{ .rank = 2, .seen_ms = -9 },
		{ .status = FAILED, .message = "E: late" },
		{ .rank = 1, .status = FAILED, .message = "E: late" },
		{ .rank = 3, .status = FAILED, .message = "E: late" } } },
	{ FIRST("1", "n1") "killed by signal 9 (SIGKILL)\n" ALL BECAUSE, {
		{ .rank = 1, .status = SIGKILL, .seen_ms = -9 },
		{ .status = FAILED, .tail = "E: reset\n" },
		{ .rank = 2, .status = FAILED, .tail = "E: reset\n" },
		{ .rank = 3, .status = FAILED, .tail = "E: reset\n" } } },
	/* The clocks know who was first. */
	{ "slurm-ddp: all 4 ranks " IN_ONE_WAY AFTER "exit code 1: E: late\n", {
		{ .status = FAILED, .message = "E: late", .seen_ms = -250 },
		{ .rank = 1, .status = FAILED, .message = "E: late" },
		{ .rank = 2, .status = FAILED, .message = "E: late" },
		{ .rank = 3, .status = FAILED, .message = "E: late" } } },
	{ FIRST("0", "n1") "exit code 1: E: late\n" ALL ALIKE, {
		{ .status = FAILED, .message = "E: late", .seen_ms = -251 },
		{ .rank = 1, .status = FAILED, .message = "E: late" },
		{ .rank = 2, .status = FAILED, .message = "E: late" },
		{ .rank = 3, .status = FAILED, .message = "E: late" } } },
	{ "slurm-ddp: 3 of 4 ranks " IN_ONE_WAY ", while rank 1 still ran" AFTER
	  "exit code 1: E: late\n" ONE ALIKE, {
		{ .status = FAILED, .message = "E: late" },
		{ .rank = 1, .status = FAILED, .message = "E: late",
		  .seen_ms = 600 },
		{ .rank = 2, .status = FAILED, .message = "E: late" },
		{ .rank = 3, .status = FAILED, .message = "E: late" } } },
	/* A silent one may have ended because of one that spoke before. */
	{ FIRST("3", "n2") "exit code 2\nslurm-ddp: rank 3: | E: bad\n"
	  ALL BECAUSE, {
		{ .rank = 3, .status = 2 * FAILED, .tail = "E: bad\n",
		  .seen_ms = -300 },
		{ .status = 2 * FAILED }, { .rank = 1, .status = 2 * FAILED },
		{ .rank = 2, .status = 2 * FAILED } } },
	{ FIRST("0", "n1") "exit code 2\n" TWO ALIKE ONE BECAUSE, {
		{ .status = 2 * FAILED, .seen_ms = -300 },
		{ .rank = 1, .status = 2 * FAILED, .seen_ms = -300 },
		{ .rank = 2, .status = 2 * FAILED, .seen_ms = -300 },
		{ .rank = 3, .status = 2 * FAILED, .tail = "E: bad\n" } } },
	/* Half of the ranks are not most of them. */
	{ FIRST("0", "n1") "exit code 1\nslurm-ddp: rank 0: | E: a\n"
	  ONE ALIKE TWO BECAUSE, {
		{ .status = FAILED, .tail = "E: a\n" },
		{ .rank = 1, .status = FAILED, .tail = "E: a\n" },
		{ .rank = 4 }, { .rank = 4 } } },
};

Test(others, of_ranks_that_fail_together)
{
	struct ddp_text words = { 0 };
	struct ddp_verdict verdict;
	struct ddp_step step;
	size_t i, k;
	char *text;

	for (i = 0; i < sizeof(together) / sizeof(together[0]); i++) {
		begin(&step);
		for (k = 0; k < 4; k++)
			add(&step, &together[i].ends[k]);
		verdict = ddp_verdict_find(&step);
		ddp_verdict_add(&words, &verdict, &step);
		ddp_verdict_add_others(&words, &verdict, &step);
		text = ddp_text_finish(&words);
		cr_expect_str_eq(text, together[i].wanted, "%zu: %s", i, text);
		free(text);
		ddp_step_clear(&step);
	}
}

/* Whether a rank still ran, its agent alone can tell. */
Test(others, of_which_nobody_tells)
{
	const struct end ends[] = {
		{ .status = FAILED, .message = "E: late" },
		{ .rank = 1, .status = FAILED, .message = "E: late" },
		{ .rank = 3, .status = FAILED, .message = "E: late" },
	};
	enum { LEFT, SILENT, LOST, CASES } i;
	struct ddp_text words = { 0 };
	struct ddp_verdict verdict;
	struct ddp_step step;
	size_t k;
	char *text;

	for (i = LEFT; i < CASES; i++) {
		begin(&step);
		for (k = 0; k < 3; k++)
			add(&step, &ends[k]);
		step.nodes[1].left = i == LEFT;
		step.nodes[1].silent = i == SILENT;
		step.nodes[1].lost = i == LOST;
		step.nodes[1].lost_ns = MS(900);
		verdict = ddp_verdict_find(&step);
		ddp_verdict_add(&words, &verdict, &step);
		text = ddp_text_finish(&words);
		cr_expect_str_eq(text, "slurm-ddp: 3 of 4 ranks " IN_ONE_WAY
				 AFTER "exit code 1: E: late\n", "%d: %s", i,
				 text);
		free(text);
		ddp_step_clear(&step);
	}
}

/* A clock that is known better later must not count a rank twice. */
Test(others, whose_clock_is_known_better_later)
{
	const struct end ends[] = {
		{ .status = 2 * FAILED, .message = "E: bad" },
		{ .rank = 1, .status = 2 * FAILED },
		{ .rank = 2, .status = 2 * FAILED, .seen_ms = 250 },
	};
	struct ddp_verdict verdict;
	struct ddp_step step;
	char *text;
	size_t i;

	begin(&step);
	for (i = 0; i < 3; i++)
		add(&step, &ends[i]);
	verdict = ddp_verdict_find(&step);
	cr_expect_eq(verdict.together, 3);
	step.ranks[2].seen_ns = MS(251);
	text = say(&verdict, &step);
	cr_expect_str_eq(text, TWO BECAUSE);
	free(text);
	ddp_step_clear(&step);
}

Test(others, alike_as_json)
{
	struct ddp_facts facts = {
		.verdict = { .kind = DDP_VERDICT_RANK, .rank = 1 },
	};
	struct end end = { .status = FAILED, .tail = "E: bad\n" };
	struct ddp_text text = { 0 };
	char *json;

	begin(&facts.step);
	for (end.rank = 0; end.rank < 3; end.rank++)
		add(&facts.step, &end);
	ddp_facts_add_json(&text, &facts, "a", "b", NULL);
	json = ddp_text_finish(&text);
	cr_expect(strstr(json, "\"stderr\": [\"E: bad\"], \"alike\": [0, 2]},"),
		  "%s", json);
	free(json);
	ddp_step_clear(&facts.step);
}

#define BEFORE " killed before that, and not by slurm-ddp; Slurm's PMIx plugin " \
	"does so when a rank ends without MPI_Finalize\n"

/*
 * Rank 0 is named. SIGTERM was sent at 1000 ms, and SIGKILL at 3000: those that
 * ended by SIGKILL before were not killed by us.
 */
static const struct {
	const char *wanted;
	struct end ends[3];
} graced[] = {
	{ "slurm-ddp: --ddp-grace=2: 3 other ranks ended by themselves, none "
	  "had to be killed\n", { { .rank = 1, .seen_ms = 1010 },
		{ .rank = 2, .status = FAILED, .seen_ms = 2000 },
		{ .rank = 3, .status = SIGUSR1, .seen_ms = 1000 } } },
	{ "slurm-ddp: --ddp-grace=2: 2 other ranks ended by themselves, none "
	  "had to be killed\nslurm-ddp: --ddp-grace=2: 1 other rank was ended by "
	  "SIGTERM itself; if it has not saved, let the program handle SIGTERM, "
	  "and a shell exec it\n", { { .rank = 1, .seen_ms = 1010 },
		{ .rank = 2, .status = FAILED, .seen_ms = 2000 },
		{ .rank = 3, .status = SIGTERM, .seen_ms = 1000 } } },
	{ "", { { .rank = 1, .seen_ms = 900 },
		{ .rank = 2, .seen_ms = 900 }, { .rank = 3, .seen_ms = 999 } } },
	{ ONE ALIKE "slurm-ddp: --ddp-grace=2: 1 other rank ended by itself, 1 "
	  "had to be killed\n", {
		{ .rank = 1, .status = FAILED, .seen_ms = 990 },
		{ .rank = 2, .seen_ms = 1100 },
		{ .rank = 3, .status = SIGKILL, .seen_ms = 3000 } } },
	{ ONE BECAUSE "slurm-ddp: --ddp-grace=2: 1 other rank was" BEFORE
	  "slurm-ddp: --ddp-grace=2: no other rank ended by itself, 2 had to be "
	  "killed\n", {
		{ .rank = 1, .status = SIGKILL, .seen_ms = 2999 },
		{ .rank = 2, .status = SIGKILL, .seen_ms = 3001 },
		{ .rank = 3, .status = SIGKILL, .seen_ms = 3001 } } },
	/* Slurm may be faster than SIGTERM; for memory it is the kernel. */
	{ ALL BECAUSE "slurm-ddp: --ddp-grace=2: 2 other ranks were" BEFORE, {
		{ .rank = 1, .status = SIGKILL, .seen_ms = 990 },
		{ .rank = 2, .status = SIGKILL, .seen_ms = 1001 },
		{ .rank = 3, .status = SIGKILL, .seen_ms = 1001,
		  .cause = "out of memory" } } },
};

Test(others, with_time_to_end)
{
	const struct ddp_verdict verdict = { .kind = DDP_VERDICT_RANK };
	const struct end first = { .status = FAILED, .seen_ms = 700 };
	struct ddp_step step;
	size_t i, rank;
	char *text;

	for (i = 0; i < sizeof(graced) / sizeof(graced[0]); i++) {
		begin(&step);
		step.grace = (struct ddp_step_grace){
			.seconds = 2, .began_ns = MS(1000), .over_ns = MS(3000),
		};
		add(&step, &first);
		for (rank = 0; rank < 3; rank++)
			add(&step, &graced[i].ends[rank]);
		text = say(&verdict, &step);
		cr_expect_str_eq(text, graced[i].wanted, "%zu: %s", i, text);
		free(text);
		ddp_step_clear(&step);
	}
}

/*
 * Rank 0 has failed, at 700 ms. The agent of n2 went without a word of its two
 * ranks: with them, since then and before the time was over, or not.
 */
static const struct {
	int left_ms, over_ms;
	bool early;
} gone[] = {
	{ 750, 0, true }, { 1100, 0, true }, { 2999, 3000, true },
	{ 3000, 3000, false }, { 600, 0, false },
};

Test(others, whose_agent_is_killed_with_them)
{
	const struct ddp_verdict verdict = { .kind = DDP_VERDICT_RANK };
	const struct end ends[] = {
		{ .status = FAILED, .seen_ms = 700 },
		{ .rank = 1, .seen_ms = 800 },
	};
	struct ddp_step step;
	size_t i;
	char *text;

	for (i = 0; i < sizeof(gone) / sizeof(gone[0]); i++) {
		begin(&step);
		step.grace = (struct ddp_step_grace){
			.seconds = 2, .began_ns = MS(1000),
			.over_ns = MS(gone[i].over_ms),
		};
		add(&step, &ends[0]);
		add(&step, &ends[1]);
		step.nodes[1].left = true;
		step.nodes[1].left_ns = MS(gone[i].left_ms);
		text = say(&verdict, &step);
		cr_expect_str_eq(text, gone[i].early ? TWO BECAUSE
				 "slurm-ddp: --ddp-grace=2: 2 other ranks were"
				 BEFORE : TWO BECAUSE, "%zu: %s", i, text);
		free(text);
		ddp_step_clear(&step);
	}
}

/* All ranks of a lost node are named with it; of a hang nobody is. */
Test(others, of_a_node_and_of_a_hang)
{
	struct ddp_verdict verdict = { .kind = DDP_VERDICT_NODE, .node = 1 };
	struct end end = { .status = SIGKILL, .seen_ms = 3000 };
	struct ddp_step step;
	char *text;

	begin(&step);
	text = say(&verdict, &step);
	cr_expect_str_eq(text, TWO BECAUSE);
	free(text);
	verdict.kind = DDP_VERDICT_HANG;
	for (end.rank = 0; end.rank < 4; end.rank++)
		add(&step, &end);
	text = say(&verdict, &step);
	cr_expect_str_eq(text, "");
	free(text);
	step.grace = (struct ddp_step_grace){ 5, MS(1000), MS(3000) };
	text = say(&verdict, &step);
	cr_expect_str_eq(text, "slurm-ddp: --ddp-grace=5: no rank ended by "
			 "itself, 4 had to be killed\n");
	free(text);
	ddp_step_clear(&step);
}
