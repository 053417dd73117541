/* SPDX-License-Identifier: BSD-3-Clause */
/* A user's variable allows some interfaces, by the words of NCCL's guide. */
#include <criterion/criterion.h>

#include <stddef.h>

#include "util/net.h"

#define GLOO "GLOO_SOCKET_IFNAME"
#define NCCL "NCCL_SOCKET_IFNAME"

static const struct {
	const char *variable, *list, *name;
	bool other;
} rows[] = {
	{ NCCL, "eth", "eth0", false },
	{ NCCL, "eth0", "eth0", false },
	{ NCCL, "eth0", "eth01", false },
	{ NCCL, "eth0", "ib0", true },
	{ NCCL, "ib,eth", "eth0", false },
	{ NCCL, "ib,eth", "enp1s0", true },
	{ NCCL, "=eth0", "eth0", false },
	{ NCCL, "=eth0", "eth01", true },
	{ NCCL, "=eth1,eth0", "eth0", false },
	{ NCCL, "^docker", "eth0", false },
	{ NCCL, "^docker", "docker0", true },
	{ NCCL, "^docker,lo", "lo", true },
	{ NCCL, "^=eth0", "eth01", false },
	{ NCCL, "^=eth0", "eth0", true },
	{ NCCL, "eth0:1", "eth0", false },
	{ GLOO, "eth0", "eth0", false },
	{ GLOO, "eth", "eth0", true },
	{ GLOO, "ib0,eth0", "eth0", false },
	{ GLOO, "eth0:1", "eth0", true },
	{ GLOO, "^eth0", "ib0", true },
	{ GLOO, "=eth0", "eth0", true },
};

Test(interface, is_other)
{
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		cr_expect_eq(ddp_interface_is_other(rows[i].variable,
						    rows[i].list,
						    rows[i].name),
			     rows[i].other, "%s=%s and %s", rows[i].variable,
			     rows[i].list, rows[i].name);
}

/* Each machine has lo, with an address. */
Test(interface, lacks)
{
	cr_expect_not(ddp_interface_lacks(NCCL, "=lo"));
	cr_expect_not(ddp_interface_lacks(GLOO, "lo"));
	cr_expect(ddp_interface_lacks(GLOO, "nosuch0,lo"));
	cr_expect_not(ddp_interface_lacks(NCCL, "nosuch0,lo"));
	cr_expect(ddp_interface_lacks(GLOO, "nosuch0"));
	cr_expect(ddp_interface_lacks(NCCL, "=nosuch0"));
	cr_expect_not(ddp_interface_lacks(NCCL, NULL));
	cr_expect_not(ddp_interface_lacks(NCCL, ""));
}

Test(interface, find_flaw)
{
	char text[DDP_INTERFACE_FLAW_SIZE];

	ddp_interface_find_flaw("lo", "lo", text);
	cr_expect_str_eq(text, "");
	ddp_interface_find_flaw(NULL, "=x", text);
	cr_expect_str_eq(text, "NCCL_SOCKET_IFNAME==x");
	ddp_interface_find_flaw("nosuch0", "nosuch", text);
	cr_expect_str_eq(text, "GLOO_SOCKET_IFNAME=nosuch0 and "
			 "NCCL_SOCKET_IFNAME=nosuch");
}
