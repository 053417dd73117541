/* SPDX-License-Identifier: BSD-3-Clause */
/* Which nodes a step has, and whether and where it is started again. */
#define _GNU_SOURCE
#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verdict/restart.h"

#define S(count) ((int64_t)(count) * 1000000000)

static const struct {
	struct ddp_restart_job job;
	const char *nodes, *spares, *error;
} chosen[] = {
	{ { "n[1-4]", NULL, NULL, 0, 1 }, "n1,n2,n3", "n4", NULL },
	{ { "n[1-4]", NULL, NULL, 0, 3 }, "n1", "n2,n3,n4", NULL },
	{ { "n[1-4]", NULL, NULL, 2, 1 }, "n1,n2", "n3", NULL },
	{ { "n[1-4]", "n3,n1", NULL, 0, 1 }, "n1,n3", "n2", NULL },
	{ { "n[1-4]", "n4", NULL, 2, 1 }, "n4,n1", "n2", NULL },
	{ { "n[1-4]", NULL, "n[1,3]", 0, 1 }, "n2", "n4", NULL },
	{ { "n1", NULL, NULL, 0, 1 }, NULL, NULL, "--ddp-spares=1: too "
	  "few nodes in the job for it: 1, of which the step itself needs 1; ask "
	  "for more, or keep back fewer" },
	{ { "n[1-3]", NULL, NULL, 3, 1 }, NULL, NULL, "--ddp-spares=1: too "
	  "few nodes in the job for it: 3, of which the step itself needs 3; ask "
	  "for more, or keep back fewer" },
	{ { "n[1-3]", NULL, "n1", 2, 1 }, NULL, NULL, "--ddp-spares=1: too "
	  "few nodes in the job for it: 2, of which the step itself needs 2; ask "
	  "for more, or keep back fewer" },
	{ { "n[1-3]", "n9", NULL, 0, 1 }, NULL, NULL, "--nodelist: n9 is not a "
	  "node of the job; leave it out" },
};

/* The spares are read as if they were the step's. */
static void expect_nodes(const struct ddp_restart *restart, const char *nodes,
			 const char *spares)
{
	const struct ddp_restart rest = {
		.count = restart->spares,
		.names = restart->names + restart->count,
	};
	char *list = ddp_restart_format(restart);
	char *others = ddp_restart_format(&rest);

	cr_expect_str_eq(list, nodes);
	cr_expect_str_eq(others, spares);
	free(list);
	free(others);
}

Test(restart, chooses_nodes)
{
	struct ddp_restart restart;
	struct ddp_error error;
	size_t i;

	for (i = 0; i < sizeof(chosen) / sizeof(chosen[0]); i++) {
		restart = (struct ddp_restart){ .max = 1 };
		if (ddp_restart_choose(&restart, &chosen[i].job, &error) < 0) {
			cr_assert(chosen[i].error, "%zu: %s", i, error.text);
			cr_expect_str_eq(error.text, chosen[i].error);
		} else {
			cr_expect_null(chosen[i].error, "%zu", i);
			expect_nodes(&restart, chosen[i].nodes,
				     chosen[i].spares);
		}
		ddp_restart_clear(&restart);
	}
}

/* An attempt: it failed after some seconds, and lost some nodes. */
struct attempt {
	int after_s;
	const char *lost;
	enum {
		NAMED, UNKNOWN, SIGNALLED, SAVED, NOTICED, STAYS, NEVER, HANGS,
		REFUSED, ONE_REFUSED
	} how;
};

static void begin(struct ddp_step *step, const char *names)
{
	struct ddp_wire wire = {
		.kind = DDP_WIRE_HELLO, .job_id = 7, .count = 1,
	};
	char list[64], *name, *save;

	memset(step, 0, sizeof(*step));
	strcpy(list, names);
	for (name = list; *name; name++)
		wire.world_size += *name == ',';
	wire.world_size++;
	for (name = strtok_r(list, ",", &save); name;
	     name = strtok_r(NULL, ",", &save)) {
		strcpy(wire.node, name);
		cr_assert_geq(ddp_step_add_node(step, &wire, S(1)), 0);
	}
}

/* Add the line that follows an attempt on the nodes that there now are. */
static bool follow(struct ddp_restart *restart, const struct attempt *attempt,
		   struct ddp_text *text)
{
	struct ddp_verdict verdict = {
		.kind = attempt->how == UNKNOWN ? DDP_VERDICT_NONE :
			attempt->how == SIGNALLED ? DDP_VERDICT_SIGNAL :
			attempt->how == HANGS ? DDP_VERDICT_HANG :
			attempt->how == SAVED ? DDP_VERDICT_SAVED :
			attempt->lost ? DDP_VERDICT_NODE : DDP_VERDICT_RANK,
		.after_ns = S(attempt->after_s),
	};
	char *nodes = ddp_restart_format(restart);
	struct ddp_step step;
	uint32_t i;
	bool again;

	begin(&step, *nodes ? nodes : "n1,n2");
	free(nodes);
	step.noticed = attempt->how == NOTICED || attempt->how == SAVED;
	for (i = 0; i < step.world_size; i++) {
		step.ranks[i].ended = true;
		step.ranks[i].status = attempt->how == NEVER ? 65 << 8 :
				       attempt->how == REFUSED ||
				       attempt->how == ONE_REFUSED ? 2 << 8 :
				       3 << 8;
	}
	if (attempt->how == ONE_REFUSED)
		step.ranks[step.world_size - 1].status = 9;
	for (i = 0; attempt->lost && i < step.node_count; i++)
		step.nodes[i].lost = strstr(attempt->lost, step.nodes[i].name);
	again = ddp_restart_next(restart, &verdict, &step,
				 attempt->how != STAYS, text);
	ddp_step_clear(&step);
	return again;
}

#define SAME " on the same nodes\n"
#define NOT "slurm-ddp: the step is not started again: "
#define AGAIN "slurm-ddp: restart "

static const struct {
	uint32_t max;
	const char *nodes;
	uint32_t spares;
	struct attempt attempts[5];	/* up to the first that is the last */
	const char *said, *left;
} followed[] = {
	{ 0, NULL, 0, { { .after_s = 20 } }, "", NULL },
	{ 2, NULL, 0, { { .after_s = 1 }, { .after_s = 1 }, { .after_s = 20 } },
	  AGAIN "1 of 2:" SAME AGAIN "2 of 2:" SAME
	  NOT "all its restarts are used up\n", "n1,n2" },
	{ 9, NULL, 0, { { .after_s = 9 }, { .after_s = 9 }, { .after_s = 9 } },
	  AGAIN "1 of 9:" SAME AGAIN "2 of 9:" SAME
	  NOT "it failed within 10 s of its start three times in a row, so "
	  "that it would fail again\n", "n1,n2" },
	{ 4, NULL, 0, { { .after_s = 9 }, { .after_s = 9 }, { .after_s = 10 },
			   { .after_s = 9 }, { .after_s = 9 } },
	  AGAIN "1 of 4:" SAME AGAIN "2 of 4:" SAME AGAIN "3 of 4:" SAME
	  AGAIN "4 of 4:" SAME NOT "all its restarts are used up\n", "n1,n2" },
	{ 3, "n[1-4]", 2, { { 20, "n1", NAMED }, { .after_s = 20 }, { 20, "n2", NAMED },
				 { .after_s = 20 } },
	  AGAIN "1 of 3: n3 in place of n1, which was lost\n"
	  AGAIN "2 of 3:" SAME
	  AGAIN "3 of 3: n4 in place of n2, which was lost\n"
	  NOT "all its restarts are used up\n", "n3,n4" },
	{ 3, "n[1-4]", 2, { { 20, "n1 n2", NAMED }, { 20, "n4", NAMED } },
	  AGAIN "1 of 3: n3 in place of n1, which was lost, n4 in place of "
	  "n2, which was lost\n"
	  NOT "a node was lost, and no spare node is left; keep some back with "
	  "--ddp-spares\n", NULL },
	{ 9, "n[1-5]", 3, { { 7, "n1", NAMED }, { 7, "n2", NAMED },
			    { 7, "n3", NAMED }, { 7, "n4", NAMED } },
	  AGAIN "1 of 9: n3 in place of n1, which was lost\n"
	  AGAIN "2 of 9: n4 in place of n2, which was lost\n"
	  AGAIN "3 of 9: n5 in place of n3, which was lost\n"
	  NOT "a node was lost, and no spare node is left; keep some back with "
	  "--ddp-spares\n", NULL },
	{ 3, NULL, 0, { { 20, "n2", NAMED } },
	  NOT "a node was lost, and no spare node is left; keep some back with "
	  "--ddp-spares\n", NULL },
	{ 3, NULL, 0, { { .after_s = 20, .how = SIGNALLED } }, "", NULL },
	{ 1, NULL, 0, { { .after_s = 20, .how = HANGS }, { .after_s = 20 } },
	  AGAIN "1 of 1:" SAME NOT "all its restarts are used up\n", NULL },
	{ 3, NULL, 0, { { .after_s = 20, .how = UNKNOWN } },
	  NOT "it is not known which rank or node failed\n", NULL },
	{ 3, NULL, 0, { { .after_s = 20, .how = NOTICED } },
	  NOT "its job is about to end\n", NULL },
	{ 3, NULL, 0, { { .after_s = 20, .how = SAVED } },
	  NOT "its ranks have saved, so that the job can be requeued\n", NULL },
	{ 3, NULL, 0, { { .after_s = 20, .how = NEVER } },
	  NOT "exit code 65 says that it would fail again\n", NULL },
	{ 3, NULL, 0, { { .after_s = 0, .how = REFUSED } },
	  NOT "all ranks refuse their command line, so that it would fail "
	  "again\n", NULL },
	{ 1, NULL, 0, { { .after_s = 0, .how = ONE_REFUSED }, { .after_s = 0 } },
	  AGAIN "1 of 1:" SAME NOT "all its restarts are used up\n", "n1,n2" },
	{ 3, NULL, 0, { { .after_s = 20, .how = STAYS } },
	  NOT "processes of it may still run\n", NULL },
};

Test(restart, follows_attempts)
{
	struct ddp_restart_job job = { .nodes = NULL };
	struct ddp_restart restart;
	struct ddp_text text = { 0 };
	char *said, *nodes;
	size_t i, k;

	for (i = 0; i < sizeof(followed) / sizeof(followed[0]); i++) {
		restart = (struct ddp_restart){
			.max = followed[i].max, .lists = true,
		};
		job.nodes = followed[i].nodes;
		job.spares = followed[i].spares;
		if (job.nodes)
			cr_assert_eq(ddp_restart_choose(&restart, &job, NULL),
				     0);
		for (k = 0; k < 5 && follow(&restart, &followed[i].attempts[k],
					    &text); k++)
			;
		said = ddp_text_finish(&text);
		cr_expect_str_eq(said, followed[i].said);
		nodes = ddp_restart_format(&restart);
		if (followed[i].left)
			cr_expect_str_eq(nodes, followed[i].left);
		free(nodes);
		free(said);
		text = (struct ddp_text){ 0 };
		ddp_restart_clear(&restart);
	}
}

/* Failures in a row until there is no restart, at most 20. */
static uint32_t count_failures(const struct attempt *attempt, uint32_t lost,
			       struct ddp_text *text)
{
	const struct attempt loss = { attempt->after_s, "n1", NAMED };
	const struct ddp_restart_job job = { .nodes = "n[1-3]", .spares = 1 };
	struct ddp_restart restart = { .max = 30, .lists = true };
	uint32_t count = 0;

	cr_assert_eq(ddp_restart_choose(&restart, &job, NULL), 0);
	do
		text->length = 0;
	while (++count < 20 &&
	       follow(&restart, count == lost ? &loss : attempt, text));
	ddp_restart_clear(&restart);
	return count;
}

Test(restart, counts_failures_in_a_time)
{
	const struct attempt within = { .after_s = 59 }, later = { .after_s = 60 };
	struct ddp_text text = { 0 };
	char *said;

	cr_expect_eq(count_failures(&within, 0, &text), 10);
	said = ddp_text_finish(&text);
	cr_expect_str_eq(said, NOT "it failed ten times within 10 minutes, so "
			 "that it would fail again\n");
	free(said);
	text = (struct ddp_text){ 0 };
	cr_expect_eq(count_failures(&later, 0, &text), 20);
	cr_expect_eq(count_failures(&within, 4, &text), 14);
	free(ddp_text_finish(&text));
}

/* n1 and n4 are on one switch, n2 and n3 on another, and n5 on the next. */
Test(restart, takes_the_nearest_spare)
{
	static const char switches[] = "SwitchName=s1 Nodes=n[1,4]\n"
				       "SwitchName=s2 Nodes=n[2-3]\n"
				       "SwitchName=s3 Nodes=n5\n"
				       "SwitchName=r1 Switches=s[1-2]\n"
				       "SwitchName=r2 Switches=s3\n"
				       "SwitchName=top Switches=r[1-2]\n";
	const struct ddp_restart_job job = {
		.nodes = "n[1-2,5,3-4]", .count = 2, .spares = 3,
	};
	struct ddp_restart restart = { .max = 1 };

	cr_assert_eq(ddp_restart_choose(&restart, &job, NULL), 0);
	restart.network = ddp_network_create(switches, NULL);
	cr_assert(restart.network);
	cr_expect_str_eq(ddp_restart_replace(&restart, "n1"), "n4");
	cr_expect_str_eq(ddp_restart_replace(&restart, "n4"), "n3");
	cr_expect_str_eq(ddp_restart_replace(&restart, "n2"), "n5");
	cr_expect_null(ddp_restart_replace(&restart, "n3"));
	ddp_restart_clear(&restart);
}

Test(restart, drops_spares)
{
	const struct ddp_restart_job job = {
		.nodes = "n[1-5]", .count = 2, .spares = 3,
	};
	struct ddp_restart restart = { .max = 1 };

	cr_assert_eq(ddp_restart_choose(&restart, &job, NULL), 0);
	cr_expect(!ddp_restart_drop(&restart, "n2"), "a node of the step");
	cr_expect(ddp_restart_drop(&restart, "n4"));
	cr_expect(!ddp_restart_drop(&restart, "n4"), "which is gone");
	cr_expect_str_eq(ddp_restart_replace(&restart, "n1"), "n3");
	cr_expect_str_eq(ddp_restart_replace(&restart, "n2"), "n5");
	cr_expect_null(ddp_restart_replace(&restart, "n3"));
	ddp_restart_clear(&restart);
}
