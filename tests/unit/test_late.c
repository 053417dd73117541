/* SPDX-License-Identifier: BSD-3-Clause */
/* Nodes that begin late: their addresses, and when one of them is lost. */
#include <criterion/criterion.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "supervisor/late.h"

#define MS(count) ((int64_t)(count) * 1000000)

static size_t read_answer(struct ddp_late *late, const char *answer)
{
	char copy[512];
	size_t count;

	snprintf(copy, sizeof(copy), "%s", answer);
	*late = (struct ddp_late){ .count = 0 };
	count = ddp_late_read(late, copy);
	cr_expect_eq(late->count, count);
	return count;
}

Test(late, answers_name_slurmds)
{
	struct ddp_late late;
	const struct sockaddr_in *four;
	const struct sockaddr_in6 *six;
	char text[64];

	cr_assert_eq(read_answer(&late, "n1 10.0.0.1 6818\nn2 fe80::2 7000\n"
				 "end\n"), 2);
	cr_expect_str_eq(late.all[0].name, "n1");
	four = (const void *)&late.all[0].address;
	cr_expect_eq(four->sin_family, AF_INET);
	cr_expect_eq(ntohs(four->sin_port), 6818);
	cr_expect_eq(ntohl(four->sin_addr.s_addr), 0x0a000001);
	cr_expect_eq(late.all[0].length, sizeof(*four));
	cr_expect_eq(late.all[0].fd, -1);
	six = (const void *)&late.all[1].address;
	cr_expect_eq(six->sin6_family, AF_INET6);
	cr_expect_eq(ntohs(six->sin6_port), 7000);
	cr_expect_str_eq(inet_ntop(AF_INET6, &six->sin6_addr, text,
				   sizeof(text)), "fe80::2");
	ddp_late_clear(&late);
	cr_expect_eq(late.count, 0);
}

/* What is not whole tells nothing; a bad line hides no good one. */
Test(late, answers_may_be_cut_or_wrong)
{
	static const char *const none[] = {
		"", "end", "end\n", "\nend\n", "n1 10.0.0.1 6818\n",
		"n1 10.0.0.1 6818\nen", "n1 10.0.0.1 6818\nend",
		"n1 10.0.0.1 6818 end\n", "n1 10.0.0.1 6818\nfriend\n",
		"n1 10.0.0.1 6818\nend\nn2",
	};
	static const char *const one[] = {
		"n1\nn2 10.0.0.2 6818\nend\n",
		"n1 10.0.0.1\nn2 10.0.0.2 6818\nend\n",
		"n1 host 6818\nn2 10.0.0.2 6818\nend\n",
		"n1 10.0.0.1 port\nn2 10.0.0.2 6818\nend\n",
		"n1 10.0.0.999 6818\n\n\nn2 10.0.0.2 6818\nend\n",
	};
	struct ddp_late late;
	size_t i;

	for (i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		cr_expect_eq(read_answer(&late, none[i]), 0, "%s", none[i]);
		ddp_late_clear(&late);
	}
	for (i = 0; i < sizeof(one) / sizeof(one[0]); i++) {
		cr_assert_eq(read_answer(&late, one[i]), 1, "%s", one[i]);
		cr_expect_str_eq(late.all[0].name, "n2");
		ddp_late_clear(&late);
	}
}

enum what { ANSWERS, REFUSES, SILENT, RESTARTED, FAILS };

/* What comes of a connection at this time; FAILS is a fault of this host. */
static void knock(struct ddp_late *late, struct ddp_late_node *node,
		  enum what what, int64_t now_ns)
{
	bool accepted = what == ANSWERS ||
			(what == RESTARTED && now_ns < MS(2000));

	ddp_late_take(late, node, accepted, accepted || what == SILENT ? 0 :
		      what == FAILS ? ENETUNREACH : ECONNREFUSED);
}

/*
 * When the last of these nodes is lost, in ms after the first round; -1: within
 * two minutes it is not. No other one may be. A connection is looked at when
 * the next round is due, as the supervisor does it.
 */
static int find_loss(const enum what *what, size_t count, size_t most)
{
	struct ddp_late_node *all = calloc(count, sizeof(*all));
	struct ddp_late late = { .all = all, .count = count };
	size_t chosen[DDP_LATE_AT_ONCE], tried = 0, i;
	int now_ms;

	for (i = 0; i < count; i++)
		all[i].fd = -1;
	for (now_ms = 0; now_ms < 120000; now_ms += 100) {
		if (MS(now_ms) < late.next_ns)
			continue;
		for (i = 0; i < tried; i++)
			knock(&late, &all[chosen[i]], what[chosen[i]],
			      MS(now_ms));
		for (i = 0; i + 1 < count; i++)
			cr_assert_not(ddp_late_is_lost(&late, &all[i]));
		if (ddp_late_is_lost(&late, &all[count - 1]))
			break;
		tried = ddp_late_choose(&late, MS(now_ms), most, chosen);
		cr_assert_leq(tried, most);
	}
	free(all);
	return now_ms < 120000 ? now_ms : -1;
}

/* The numbers: five rounds of 1.2 s, and 24 where nobody answers. */
Test(late, nodes_are_lost_by_their_slurmds)
{
	static const struct {
		enum what what[2];
		int wanted_ms;
	} cases[] = {
		{ { ANSWERS, SILENT }, 6000 },
		{ { ANSWERS, REFUSES }, 6000 },
		{ { FAILS, SILENT }, 28800 },
		{ { FAILS, REFUSES }, 28800 },
		/* A slurmd that has answered is started again. */
		{ { ANSWERS, ANSWERS }, -1 },
		{ { ANSWERS, RESTARTED }, -1 },
		{ { ANSWERS, FAILS }, -1 },
		{ { FAILS, FAILS }, -1 },
	};
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		cr_expect_eq(find_loss(cases[i].what, 2, DDP_LATE_AT_ONCE),
			     cases[i].wanted_ms, "%zu", i);
}

/*
 * Of 300 nodes 128 are tried at once, every third round, so that the last one is
 * reached in the seventh; from then on it is tried in each.
 */
Test(late, many_nodes_have_their_turns)
{
	enum what what[300];
	size_t i;

	for (i = 0; i < 300; i++)
		what[i] = i < 299 ? ANSWERS : SILENT;
	cr_expect_eq(find_loss(what, 300, DDP_LATE_AT_ONCE), 6 * 1200 + 6000);
	/* Where one file can be open, nodes are tried one by one. */
	cr_expect_eq(find_loss(what + 297, 3, 1), 6 * 1200 + 6000);
}

/* One that has begun shows that others can be reached, and is not lost. */
Test(late, nodes_that_have_begun_are_not_lost)
{
	struct ddp_late_node all[2] = { { .here = true }, { .fd = -1 } };
	struct ddp_late late = { .all = all, .count = 2 };
	size_t chosen[2];

	cr_expect_eq(ddp_late_choose(&late, MS(5000), 2, chosen), 2);
	cr_expect_eq(ddp_late_choose(&late, MS(6199), 2, chosen), 0);
	all[0].failed = DDP_LATE_ALONE;
	cr_expect_not(ddp_late_is_lost(&late, &all[0]));
	ddp_late_take(&late, &all[0], true, 0);
	cr_expect(late.reached);
	/* Nothing is left to show; the other one fails, and is tried again. */
	all[1].failed = 1;
	cr_expect_eq(ddp_late_choose(&late, MS(6200), 2, chosen), 1);
	cr_expect_eq(chosen[0], 1);
}
