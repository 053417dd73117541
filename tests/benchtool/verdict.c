/* SPDX-License-Identifier: BSD-3-Clause */
/* ddp-bench --preflight's verdicts against values reasoned by hand; TAP. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verdict.h"

enum { RANKS = 8 };

static int count, failed;

static void check(int passed, const char *name)
{
	printf("%sok %d - %s\n", passed ? "" : "not ", ++count, name);
	failed |= !passed;
}

/* So many nodes n0, n1, ... of two ranks each. */
static struct member members[RANKS];
static struct world make_world(int nodes)
{
	for (int rank = 0; rank < RANKS; rank++) {
		members[rank].node = rank / 2;
		members[rank].local_rank = rank % 2;
		snprintf(members[rank].host, sizeof(members[rank].host),
			 "n%d", rank / 2);
	}
	return (struct world){
		.size = 2 * nodes, .node_count = nodes, .members = members
	};
}

/* Whether the findings are these, as "n1 clock, n2 gpu", with words in the
 * first one's text; then forget them. */
static int says(struct verdict *verdict, const char *wanted, const char *words)
{
	char had[512] = "";
	int same;

	for (size_t i = 0; i < verdict->count; i++) {
		size_t used = strlen(had);

		snprintf(had + used, sizeof(had) - used, "%sn%d %s",
			 i > 0 ? ", " : "", verdict->list[i].node,
			 verdict->list[i].check);
	}
	same = strcmp(had, wanted) == 0 &&
		(verdict->count == 0 || strstr(verdict->list[0].text, words));
	if (!same)
		printf("# had: %s; %s\n", had, verdict->count > 0 ?
		       verdict->list[0].text : "");
	free(verdict->list);
	*verdict = (struct verdict){ 0 };
	return same;
}

static void fill_facts(struct facts *all)
{
	memset(all, 0, RANKS * sizeof(*all));
	for (int rank = 0; rank < RANKS; rank++) {
		all[rank].gpus_given = all[rank].gpus_seen = 2;
		strcpy(all[rank].versions[NCCL], "2.28.9");
		strcpy(all[rank].versions[LIBDDP], "0.1.0");
		all[rank].clock_error_s = 0.001;
		all[rank].link = all[rank].most = (struct link){ 320, 16 };
	}
}

static void test_facts(void)
{
	struct world four = make_world(4), three = make_world(3);
	struct world two = make_world(2);
	struct verdict verdict = { 0 };
	struct facts all[RANKS];
	bool here[RANKS] = { 1, 1, 1, 0, 0, 0, 1, 1 };

	verdict_absent(&verdict, &four, here, false);
	check(says(&verdict, "n1 rank, n2 rank", "rank 3 has not come to the master"),
	      "ranks that did not come are named, once a node");
	check(!verdict_is_bad(&verdict) && verdict_is_bad(&(struct verdict){
		.failed = true }), "without memory nothing has passed");
	here[1] = false;
	verdict_absent(&verdict, &four, here, false);
	check(says(&verdict, "n0 rank, n1 rank, n2 rank", "rank 1 has not"),
	      "also if half of all have not come");
	verdict_absent(&verdict, &three, here, false);
	check(says(&verdict, "n0 rank, n1 rank, n2 rank", "rank 1 has not"),
	      "or most of three nodes");
	here[0] = false;
	verdict_absent(&verdict, &four, here, true);
	check(says(&verdict, "n-1 rank", "5 of 8 ranks"),
	      "more than half of the ranks are no node's fault");
	memset(here, 0, sizeof(here));
	verdict_absent(&verdict, &two, here, false);
	check(says(&verdict, "n-1 rank", "no rank has come to the master"),
	      "where rank 0 is not reached from its own node none is left out");
	verdict_absent(&verdict, &two, here, true);
	check(says(&verdict, "n0 rank, n1 rank", "rank 0 began"),
	      "but ranks that had come are named");
	fill_facts(all);
	verdict_facts(&verdict, &four, all);
	check(says(&verdict, "", ""), "equal facts say nothing");
	strcpy(all[6].interface, "NCCL_SOCKET_IFNAME=eth9");
	verdict_facts(&verdict, &four, all);
	check(says(&verdict, "n3 interface", "for your NCCL_SOCKET_IFNAME=eth9: unset"),
	      "a node without the interface that the user chose is named");
	all[6].interface[0] = '\0';
	strcpy(all[4].versions[NCCL], "2.18.1");
	strcpy(all[5].versions[NCCL], "2.18.1");
	all[7].versions[LIBDDP][0] = '\0';
	verdict_facts(&verdict, &four, all);
	check(says(&verdict, "n2 nccl, n3 libddp", "NCCL is 2.18.1, but 2.28.9 "
		   "on 6 of 8 ranks"), "what is odd or missing is named");
	/* Three of four nodes have the lower version. */
	fill_facts(all);
	for (int rank = 2; rank < RANKS; rank++)
		strcpy(all[rank].versions[NCCL], "2.18.1");
	verdict_facts(&verdict, &four, all);
	check(says(&verdict, "n0 nccl", "NCCL is 2.28.9, but 2.18.1 on 6"),
	      "also if it is the first node");
	check(strcmp(verdict_version(&four, all, NCCL), "2.18.1") == 0 &&
	      !verdict_version(&four, all, MPI),
	      "the common version is that of most, or none");
	verdict_facts(&verdict, &two, all);
	check(says(&verdict, "n1 nccl", "neither is the more common"),
	      "of two nodes the second, and the sentence says why");
	fill_facts(all);
	all[2].gpus_seen = 1;
	all[4].gpus_given = 0;
	strcpy(all[7].gpu_error, "why not");
	verdict_facts(&verdict, &four, all);
	check(says(&verdict, "n1 gpu, n2 gpu, n3 gpu", "has 2 GPUs here and "
		   "CUDA finds 1"), "missing GPUs are named, three causes");
	fill_facts(all);
	for (int rank = 0; rank < RANKS; rank++)
		all[rank].gpus_given = all[rank].gpus_seen = 0;
	verdict_facts(&verdict, &four, all);
	check(says(&verdict, "", ""), "a step without GPUs misses none");
	for (int rank = 0; rank < RANKS; rank++)
		all[rank].gpus_untried = 2;
	verdict_facts(&verdict, &four, all);
	check(says(&verdict, "", ""), "GPUs that CUDA cannot use miss nothing");
	all[5].gpus_untried = 0;
	verdict_facts(&verdict, &four, all);
	check(says(&verdict, "n2 gpu", "has no GPU here, but has some"),
	      "but a node that has none is named");
	for (int rank = 0; rank < RANKS; rank++)
		all[rank].gpus_untried = 0;
	strcpy(all[3].gpu_error, "killed");
	memset(all[3].versions, 0, sizeof(all[3].versions));
	verdict_facts(&verdict, &four, all);
	check(says(&verdict, "n1 rank", "rank 3 cannot tell what it has: "
		   "killed"), "but a rank that tells nothing is named");
	/* The driver hangs on every node. */
	memset(all, 0, sizeof(all));
	for (int rank = 0; rank < RANKS; rank++) {
		all[rank].gpus_given = 2;
		strcpy(all[rank].gpu_error, "no answer");
	}
	verdict_facts(&verdict, &two, all);
	check(says(&verdict, "n0 gpu, n1 gpu", "rank 0 cannot use them: no "
		   "answer"), "also if all tell as little");
}

static void test_clocks(void)
{
	struct world four = make_world(4), two = make_world(2);
	struct verdict verdict = { 0 };
	struct facts all[RANKS];

	fill_facts(all);
	all[2].clock_s = 0.9;
	all[5].clock_s = -0.9;
	verdict_facts(&verdict, &four, all);
	check(says(&verdict, "", ""), "clocks may be 0.9 s off");
	all[2].clock_s = 30;
	all[5].clock_s = -30;
	verdict_facts(&verdict, &four, all);
	check(says(&verdict, "n1 clock, n2 clock", "30.0 s behind"),
	      "but not 30 s, behind or ahead");
	/* Rank 0's node is 30 s ahead: all others differ from its clock. */
	for (int rank = 0; rank < RANKS; rank++)
		all[rank].clock_s = rank < 2 ? 0 : 30;
	verdict_facts(&verdict, &four, all);
	check(says(&verdict, "n0 clock", "30.0 s ahead of"),
	      "rank 0's node is the odd one if its clock is");
	verdict_facts(&verdict, &two, all);
	check(says(&verdict, "n1 clock", "of two, either"),
	      "of two clocks the second, and the sentence says why");
	fill_facts(all);
	all[2].clock_s = 30;
	all[2].clock_error_s = -1;
	all[3].clock_s = 3;
	all[3].clock_error_s = 2.5;
	verdict_facts(&verdict, &four, all);
	check(says(&verdict, "", ""),
	      "a clock that was not measured, or too roughly, is not judged");
}

static void test_links(void)
{
	struct world four = make_world(4);
	struct verdict verdict = { 0 };
	struct facts all[RANKS];

	fill_facts(all);
	all[3].link.width = 8;
	all[4].link.speed = 25;
	verdict_facts(&verdict, &four, all);
	check(says(&verdict, "n1 link, n2 link", "is 32.0 GT/s x8, those of 6 "
		   "other GPUs like it 32.0 GT/s x16"),
	      "a narrow link and a slow one are named");
	for (int rank = 0; rank < RANKS; rank++)
		all[rank].link = (struct link){ 160, 16 };
	verdict_facts(&verdict, &four, all);
	check(says(&verdict, "", ""),
	      "links of one speed are right, even if GPUs could do more");
	for (int rank = 0; rank < 2; rank++)
		all[rank].link = all[rank].most = (struct link){ 80, 16 };
	verdict_facts(&verdict, &four, all);
	check(says(&verdict, "", ""), "GPUs of another kind have their own");
	all[1].link.width = 8;
	verdict_facts(&verdict, &four, all);
	check(says(&verdict, "n0 link", "is 8.0 GT/s x8, those of 1 other GPUs "
		   "like it 8.0 GT/s x16"), "compared among themselves");
	fill_facts(all);
	for (int rank = 0; rank < RANKS; rank++)
		if (rank < 5)
			all[rank].link = (struct link){ 160, 16 };
	verdict_facts(&verdict, &four, all);
	check(says(&verdict, "", ""), "what few have is not asked of most");
	all[4].link = all[5].link;
	verdict_facts(&verdict, &four, all);
	check(says(&verdict, "n0 link, n1 link", "those of 4 other GPUs like "
		   "it 32.0 GT/s x16"), "of two halves the fast one is right");
	for (int rank = 0; rank < 5; rank++)
		all[rank].link = (struct link){ 0, 0 };
	all[7].link.width = 4;
	verdict_facts(&verdict, &four, all);
	check(says(&verdict, "n3 link", "is 32.0 GT/s x4"),
	      "a link that is not known does not count");
}

static void fill_moved(struct moved *all)
{
	memset(all, 0, RANKS * sizeof(*all));
	for (int rank = 0; rank < RANKS; rank++) {
		all[rank].stage = STAGE_DONE;
		all[rank].matches = 3;
	}
}

static void test_stuck(void)
{
	struct world four = make_world(4);
	struct verdict verdict = { 0 };
	struct moved all[RANKS];

	fill_moved(all);
	verdict_moved(&verdict, &four, all);
	check(says(&verdict, "", ""), "all that ended is right");
	/* In round 0 of four nodes, n1 meets n2; both hang in it. n0 waits for
	 * n2 in round 2, and n3 for the rest. */
	for (int rank = 0; rank < RANKS; rank++)
		all[rank].stage = STAGE_MATCH;
	all[2].matches = all[4].matches = 0;
	all[0].matches = 2;
	verdict_moved(&verdict, &four, all);
	check(says(&verdict, "n1 transfer, n2 transfer", "exchange with n2"),
	      "those in the first match that hangs are named");
	/* The same in a second attempt at the rounds. */
	for (int rank = 0; rank < RANKS; rank++)
		all[rank].matches += 3;
	verdict_moved(&verdict, &four, all);
	check(says(&verdict, "n1 transfer, n2 transfer", "exchange with n2"),
	      "also in a later attempt");
	for (int rank = 0; rank < 5; rank++)
		all[rank].matches = 0;
	verdict_moved(&verdict, &four, all);
	check(says(&verdict, "n-1 transfer", "5 of 8 ranks"),
	      "but no node if more than half of the ranks hang there");
	fill_moved(all);
	all[5].stage = STAGE_SUM;
	check(verdict_count_last(&four, all) == 1, "and counted as the last");
	verdict_moved(&verdict, &four, all);
	check(says(&verdict, "n2 sum", "rank 5 does not get through"),
	      "who hangs in the all-reduce is named");
	all[5].stage = STAGE_MEET;
	verdict_moved(&verdict, &four, all);
	check(says(&verdict, "n2 meet", "rank 5 does not get through MPI_Init"),
	      "or in MPI_Init");
	for (int rank = 0; rank < RANKS; rank++)
		all[rank].stage = STAGE_MEET;
	verdict_moved(&verdict, &four, all);
	check(says(&verdict, "n-1 transfer", "8 of 8 ranks do not get through "
		   "MPI_Init"), "but no node if all hang");
	strcpy(all[6].error, "no GPU");
	verdict_moved(&verdict, &four, all);
	check(says(&verdict, "n3 transfer", "rank 6 cannot exchange data: no "
		   "GPU"), "who fails is named, not who waits for it");
}

static void test_moved(void)
{
	struct world four = make_world(4);
	struct verdict verdict = { 0 };
	struct moved all[RANKS];
	double median;

	fill_moved(all);
	all[2].slow = true;
	all[2].seconds = 0.009;
	all[2].common = 0.001;
	all[6].wrong_sum = 5;
	all[7].wrong = 1;
	verdict_moved(&verdict, &four, all);
	check(says(&verdict, "n1 slow, n3 sum, n3 data", "of rank 2 takes 9.0 "
		   "ms, for which the median of the ranks is 1.0 ms"),
	      "slow nodes and wrong data are named");
	for (int rank = 0; rank < RANKS; rank++)
		all[rank].wrong_sum = 1;
	verdict_moved(&verdict, &four, all);
	check(says(&verdict, "n-1 sum", "on every rank"),
	      "but no node if all have a wrong sum");
	/* Four times the median, and 12 ms more than it. */
	check(verdict_find_slow((double[]){ 1, 9, 1, 1 }, 4, &median) == 4 &&
	      median == 1, "slow is above four times the median");
	check(fabs(verdict_find_slow((double[]){ 1e-4, 9e-3, 1e-4 }, 3,
				     &median) - 0.0121) < 1e-9,
	      "and at least 12 ms more");
	check(verdict_find_slow((double[]){ 1, 9, 0, 0 }, 4, &median) > 1e9,
	      "of two that met none is slow");
	check(verdict_find_slow((double[]){ 2, 0, 9, 2, 0, 0 }, 6,
				&median) == 8 &&
	      median == 2, "who met nobody does not count");
}

int main(void)
{
	test_facts();
	test_clocks();
	test_links();
	test_stuck();
	test_moved();
	printf("1..%d\n", count);
	return failed;
}
