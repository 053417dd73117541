/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzzes what Slurm tells of switches and blocks. The input is that text. */
#include "fuzz.h"
#include "layout/network.h"

enum { HOSTS = 8 };

/* Long numbers make lists that are slow to expand. */
static int is_slow(const char *text)
{
	size_t digits = 0;

	for (; *text && digits < 4; text++)
		digits = *text >= '0' && *text <= '9' ? digits + 1 : 0;
	return digits == 4;
}

static void check_network(const struct ddp_network *network,
			  const struct ddp_hostlist *hosts)
{
	uint32_t order[HOSTS], seen = 0, cut, i, k;
	int64_t used;

	CHECK(ddp_network_order(network, hosts, order, NULL) == 0);
	for (i = 0; i < HOSTS; i++)
		seen |= 1U << order[i];
	CHECK(seen == (1U << HOSTS) - 1);
	CHECK(ddp_network_crossings(network, hosts, order) <=
	      ddp_network_crossings(network, hosts, NULL));
	used = ddp_network_used(network, hosts, &cut);
	CHECK(used >= 1 && used <= HOSTS && cut <= used);
	for (i = 0; i < HOSTS; i++)
		for (k = 0; k < HOSTS; k++)
			CHECK(ddp_network_distance(network,
						   ddp_hostlist_get(hosts, i),
						   ddp_hostlist_get(hosts, k)) ==
			      ddp_network_distance(network,
						   ddp_hostlist_get(hosts, k),
						   ddp_hostlist_get(hosts, i)));
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	struct ddp_error error = { 0 };
	char *text = fuzz_text(data, size);
	struct ddp_hostlist *hosts = ddp_hostlist_create("n[1-8]", NULL);
	struct ddp_network *network = NULL;

	CHECK(hosts);
	if (!is_slow(text)) {
		network = ddp_network_create(text, &error);
		if (network)
			check_network(network, hosts);
		else
			fuzz_check_error(&error, DDP_ERROR_ARGUMENT);
	}
	ddp_network_destroy(network);
	ddp_hostlist_destroy(hosts);
	free(text);
	return 0;
}
