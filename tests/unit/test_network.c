/* SPDX-License-Identifier: BSD-3-Clause */
/* Switches and blocks: what is near what, and the order of a ring. */
#define _GNU_SOURCE
#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layout/network.h"

/* Two racks of two switches each; s4's nodes are named against their order. */
static const char tree[] =
	"# a comment\n"
	"SwitchName=r1 Level=1 LinkSpeed=1 Nodes=n[1-4] Switches=s[1,3]\n"
	"SwitchName=s1 Level=0 LinkSpeed=1 Nodes=n[1-2]\n"
	"SwitchName=s2 Level=0 LinkSpeed=1 Nodes=n[5-6]\n"
	"SwitchName=s3 Level=0 LinkSpeed=1 Nodes=n[3-4]\n"
	"switchname=s4 nodes=n8,n7 \\\n"
	"  Description=two # more\n"
	"SwitchName=r2 Level=1 LinkSpeed=1 Switches=s[2,4]\n"
	"SwitchName=top Level=2 LinkSpeed=1 Switches=r[1-2]\n";

static const char blocks[] =
	"BlockName=b1 BlockIndex=0 Nodes=n[1,3] BlockSize=2\n"
	"BlockName=b2 BlockIndex=1 Nodes=n[2,4] BlockSize=2\n"
	"AggregatedBlock=b[1-2] BlockIndex=2 Nodes=n[1-4] BlockSize=4\n";

static struct ddp_network *create(const char *text)
{
	struct ddp_error error = { 0 };
	struct ddp_network *network = ddp_network_create(text, &error);

	cr_assert_not_null(network, "%s", error.text);
	return network;
}

static const struct {
	const char *text, *node, *other;
	uint32_t links;
} distances[] = {
	{ tree, "n1", "n1", 0 },
	{ tree, "n1", "n2", 0 },
	{ tree, "n1", "n3", 2 },
	{ tree, "n1", "n5", 4 },
	{ tree, "n8", "n5", 2 },
	/* A node that is on no switch is beside top, under a root of their own. */
	{ tree, "n1", "n9", 4 },
	{ tree, "n9", "n9", 0 },
	{ tree, "n9", "n10", 2 },
	{ blocks, "n1", "n3", 0 },
	{ blocks, "n1", "n2", 2 },
	{ blocks, "n1", "n5", 2 },
};

Test(network, distances)
{
	struct ddp_network *network;
	size_t i;

	for (i = 0; i < sizeof(distances) / sizeof(distances[0]); i++) {
		network = create(distances[i].text);
		cr_expect_eq(ddp_network_distance(network, distances[i].node,
						  distances[i].other),
			     distances[i].links, "%s to %s", distances[i].node,
			     distances[i].other);
		cr_expect_eq(ddp_network_distance(network, distances[i].other,
						  distances[i].node),
			     distances[i].links);
		ddp_network_destroy(network);
	}
}

/* The ring goes up so often before it is ordered, and after. */
static const struct {
	const char *text, *hosts, *order;
	uint64_t before, after;
	int64_t used;
	uint32_t cut;
} orders[] = {
	/* n1 n2 | n3 n4 || n5 n6 | n8 n7: up once in each rack, twice to the
	 * other and twice back. */
	{ tree, "n[1-8]", "n1,n2,n3,n4,n5,n6,n7,n8", 6, 6, 4, 0 },
	/* every second hop goes to the other rack and back: eight times two */
	{ tree, "n[1,5,2,6,3,7,4,8]", "n1,n2,n3,n4,n5,n6,n7,n8", 16, 6, 4, 0 },
	{ tree, "n[3,1,5]", "n1,n3,n5", 5, 5, 3, 3 },
	{ tree, "n[2,1]", "n2,n1", 0, 0, 1, 0 },
	{ tree, "n5", "n5", 0, 0, 1, 1 },
	/* The last is on no switch, so that all are left for it: 1+2 up from the
	 * leaf, 1 from itself; the ring between them is as long as it was. */
	{ tree, "n[9,1]", "n1,n9", 4, 4, 2, 1 },
	{ blocks, "n[1-4]", "n1,n3,n2,n4", 4, 2, 2, 0 },
	{ blocks, "n[1-3]", "n1,n3,n2", 2, 2, 2, 1 },
};

Test(network, orders)
{
	uint32_t order[8], cut;
	struct ddp_network *network;
	struct ddp_hostlist *hosts;
	char text[64];
	size_t i, j;

	for (i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
		network = create(orders[i].text);
		hosts = ddp_hostlist_create(orders[i].hosts, NULL);
		cr_assert(hosts);
		cr_assert_eq(ddp_network_order(network, hosts, order, NULL), 0);
		for (j = 0, text[0] = '\0'; j < ddp_hostlist_count(hosts); j++)
			sprintf(text + strlen(text), "%s%s", j ? "," : "",
				ddp_hostlist_get(hosts, order[j]));
		cr_expect_str_eq(text, orders[i].order);
		cr_expect_eq(ddp_network_crossings(network, hosts, NULL),
			     orders[i].before, "%s", orders[i].hosts);
		cr_expect_eq(ddp_network_crossings(network, hosts, order),
			     orders[i].after, "%s", orders[i].hosts);
		cr_expect_eq(ddp_network_used(network, hosts, &cut),
			     orders[i].used, "%s", orders[i].hosts);
		cr_expect_eq(cut, orders[i].cut, "%s: %u", orders[i].hosts,
			     cut);
		ddp_hostlist_destroy(hosts);
		ddp_network_destroy(network);
	}
}

static const struct { const char *text, *error; } refused[] = {
	{ "", "the topology has no SwitchName= and no BlockName=" },
	{ "RingName=r Nodes=n[1-4]\n",
	  "the topology has no SwitchName= and no BlockName=" },
	{ "SwitchName=s1 Nodes=n[1-\n", "node list 'n[1-', byte 5: expected" },
	{ "SwitchName=s1 Switches=s[2-3]\nSwitchName=s2 Nodes=n1\n",
	  "the topology has no switch s3, which is below s1" },
	{ "SwitchName=s1 Switches=s2\nSwitchName=s2 Switches=s1\n",
	  "the topology has a switch s1 that is below itself, or below more "
	  "than 32 others" },
	{ "SwitchName=s1 Switches=s1\n",
	  "the topology has a switch s1 that is below itself, or below more "
	  "than 32 others" },
};

Test(network, refuses)
{
	struct ddp_error error;
	size_t i;

	for (i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		cr_expect_null(ddp_network_create(refused[i].text, &error));
		cr_expect_eq(strncmp(error.text, refused[i].error,
				     strlen(refused[i].error)), 0, "%s",
			     error.text);
	}
	ddp_network_destroy(NULL);
}

/* ---- against all orders that there are */

enum { LEAVES = 4, RACKS = 2, SMALL = 7 };

struct small {
	uint32_t leaf[SMALL];		/* of each node */
	uint32_t rack[LEAVES];		/* of each leaf */
	uint32_t nodes;
};

static uint32_t draw(uint32_t *seed, uint32_t below)
{
	*seed = *seed * 1664525 + 1013904223;
	return (*seed >> 16) % below;
}

static void make_small(uint32_t seed, struct small *small)
{
	uint32_t i;

	small->nodes = 2 + draw(&seed, SMALL - 1);
	for (i = 0; i < SMALL; i++)
		small->leaf[i] = draw(&seed, LEAVES);
	for (i = 0; i < LEAVES; i++)
		small->rack[i] = draw(&seed, RACKS);
}

static void write_small(const struct small *small, char *text)
{
	uint32_t i, j;

	for (i = 0; i < LEAVES; i++) {
		text += sprintf(text, "SwitchName=s%u Nodes=none%u", i, i);
		for (j = 0; j < small->nodes; j++)
			if (small->leaf[j] == i)
				text += sprintf(text, ",n%u", j);
		text += sprintf(text, "\n");
	}
	for (i = 0; i < RACKS; i++) {
		text += sprintf(text, "SwitchName=r%u Nodes=no%u Switches=", i,
				i);
		for (j = 0; j < LEAVES; j++)
			if (small->rack[j] == i)
				text += sprintf(text, "s%u,", j);
		/* A rack has a switch, even where it has no node of ours. */
		text += sprintf(text, "e%u\nSwitchName=e%u Nodes=empty%u\n", i,
				i, i);
	}
	sprintf(text, "SwitchName=top Switches=r[0-%u]\n", RACKS - 1);
}

static uint32_t count_up(const struct small *small, const uint32_t *order)
{
	uint32_t i, up = 0, one, other;

	for (i = 0; i < small->nodes; i++) {
		one = small->leaf[order[i]];
		other = small->leaf[order[(i + 1) % small->nodes]];
		up += one == other ? 0 :
		      small->rack[one] == small->rack[other] ? 1 : 2;
	}
	return up;
}

/* The fewest of all orders that begin with order[0..done). */
static uint32_t find_fewest(const struct small *small, uint32_t *order,
			    uint32_t done)
{
	uint32_t fewest = UINT32_MAX, i, up, kept;

	if (done == small->nodes)
		return count_up(small, order);
	for (i = done; i < small->nodes; i++) {
		kept = order[done];
		order[done] = order[i];
		order[i] = kept;
		up = find_fewest(small, order, done + 1);
		if (up < fewest)
			fewest = up;
		order[i] = order[done];
		order[done] = kept;
	}
	return fewest;
}

Test(network, no_order_is_better)
{
	uint32_t seed, i, order[SMALL], all[SMALL];
	struct ddp_network *network;
	struct ddp_hostlist *hosts;
	char text[1024], list[32];
	struct small small;

	for (seed = 0; seed < 300; seed++) {
		make_small(seed, &small);
		write_small(&small, text);
		snprintf(list, sizeof(list), "n[0-%u]", small.nodes - 1);
		network = create(text);
		hosts = ddp_hostlist_create(list, NULL);
		cr_assert_eq(ddp_network_order(network, hosts, order, NULL), 0);
		for (i = 0; i < SMALL; i++)
			all[i] = i;
		cr_expect_eq(ddp_network_crossings(network, hosts, NULL),
			     count_up(&small, all));
		cr_expect_eq(ddp_network_crossings(network, hosts, order),
			     find_fewest(&small, all, 1), "%s", text);
		ddp_hostlist_destroy(hosts);
		ddp_network_destroy(network);
	}
}
