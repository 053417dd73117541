/* SPDX-License-Identifier: BSD-3-Clause */
/* The variables of a task, and the record of what was set. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

#include "layout/vars.h"

static const struct ddp_vars vars = {
	.rank = { .rank = 5, .local_rank = 1, .local_world_size = 3,
		  .node_rank = 2, .host_index = 7, .host = "n8" },
	.world_size = 9, .node_count = 4, .cpus = 16, .master_addr = "n1",
	.master_port = 23456, .interface = "eth0",
	.nccl_interface = "=eth0",
};

static const struct {
	const char *name, *value;
	bool user_wins;
} table[] = {
	{ "RANK", "5", false },
	{ "LOCAL_RANK", "1", false },
	{ "WORLD_SIZE", "9", false },
	{ "LOCAL_WORLD_SIZE", "3", false },
	{ "NODE_RANK", "2", false },
	{ "GROUP_RANK", "2", false },
	{ "GROUP_WORLD_SIZE", "4", false },
	{ "ROLE_RANK", "5", false },
	{ "ROLE_WORLD_SIZE", "9", false },
	{ "MASTER_ADDR", "n1", true },
	{ "MASTER_PORT", "23456", true },
	{ "OMP_NUM_THREADS", "16", true },
	{ "GLOO_SOCKET_IFNAME", "eth0", true },
	{ "NCCL_SOCKET_IFNAME", "=eth0", true },
};

#define COUNT (sizeof(table) / sizeof(table[0]))

Test(vars, formats_the_table)
{
	char value[DDP_VARS_VALUE_SIZE];
	size_t i;

	cr_assert_eq(ddp_vars_count(), COUNT);
	for (i = 0; i < COUNT; i++) {
		cr_expect_str_eq(ddp_vars_name(i), table[i].name);
		cr_expect_eq(ddp_vars_user_wins(i), table[i].user_wins);
		cr_expect_eq(ddp_vars_format(i, &vars, value, sizeof(value)),
			     1);
		cr_expect_str_eq(value, table[i].value, "%s", table[i].name);
	}
	cr_expect_null(ddp_vars_name(COUNT));
	cr_expect_not(ddp_vars_user_wins(COUNT));
	cr_expect_eq(ddp_vars_format(COUNT, &vars, value, sizeof(value)), -1);
}

Test(vars, leaves_out_what_is_not_known)
{
	struct ddp_vars none = { .world_size = 1 };
	char value[DDP_VARS_VALUE_SIZE];
	size_t i;

	for (i = 0; i < COUNT; i++) {
		cr_expect_eq(ddp_vars_format(i, &none, value, sizeof(value)),
			     table[i].user_wins ? 0 : 1, "%s", table[i].name);
		if (table[i].user_wins)
			cr_expect_str_empty(value);
	}
	none.master_addr = none.interface = "";
	cr_expect_eq(ddp_vars_format(9, &none, value, sizeof(value)), 0);
	cr_expect_eq(ddp_vars_format(12, &none, value, sizeof(value)), 0);
}

Test(vars, refuses_to_cut)
{
	struct ddp_vars long_vars = vars;
	char host[DDP_HOSTNAME_MAX + 1], value[DDP_VARS_VALUE_SIZE];

	memset(host, 'n', DDP_HOSTNAME_MAX);
	host[DDP_HOSTNAME_MAX] = '\0';
	long_vars.master_addr = host;
	cr_expect_eq(ddp_vars_format(9, &long_vars, value, sizeof(value)), 1);
	cr_expect_str_eq(value, host);
	cr_expect_eq(ddp_vars_format(9, &long_vars, value, 255), -1);
	cr_expect_eq(ddp_vars_format(10, &long_vars, value, 5), -1);
	cr_expect_eq(ddp_vars_format(10, &long_vars, value, 6), 1);
}

Test(vars, records)
{
	char record[DDP_VARS_RECORD_SIZE];

	cr_expect_eq(ddp_vars_record_begin(record, sizeof(record), 12, 3), 0);
	cr_expect_str_eq(record, "job=12.3");
	cr_expect_eq(ddp_vars_record_add(record, sizeof(record),
					 "MASTER_ADDR", "n1"), 0);
	cr_expect_eq(ddp_vars_record_add(record, sizeof(record),
					 "MASTER_PORT", "23456"), 0);
	cr_expect_str_eq(record,
			 "job=12.3 MASTER_ADDR=n1 MASTER_PORT=23456");
	cr_expect(ddp_vars_recorded(record, "MASTER_ADDR", "n1"));
	cr_expect(ddp_vars_recorded(record, "MASTER_PORT", "23456"));
	cr_expect_not(ddp_vars_recorded(record, "MASTER_ADDR", "n"));
	cr_expect_not(ddp_vars_recorded(record, "MASTER_ADDR", "n12"));
	cr_expect_not(ddp_vars_recorded(record, "MASTER_ADDR", ""));
	cr_expect_not(ddp_vars_recorded(record, "MASTER_PORT", "2345"));
	cr_expect_not(ddp_vars_recorded(record, "MASTER", "n1"));
	cr_expect_not(ddp_vars_recorded(record, "ADDR", "n1"));
	cr_expect_not(ddp_vars_recorded(record, "OMP_NUM_THREADS", "1"));
	cr_expect_not(ddp_vars_recorded(record, "MASTER_ADDR",
					"n1 MASTER_PORT=23456"));
	cr_expect_not(ddp_vars_recorded("", "MASTER_ADDR", "n1"));
	cr_expect_not(ddp_vars_recorded(NULL, "MASTER_ADDR", "n1"));
}

Test(vars, record_does_not_overflow)
{
	char record[20];

	cr_expect_eq(ddp_vars_record_begin(record, 8, 12, 3), -1);
	cr_expect_eq(ddp_vars_record_begin(record, sizeof(record), 12, 3), 0);
	cr_expect_eq(ddp_vars_record_add(record, sizeof(record),
					 "MASTER_ADDR", "n1"), -1);
	cr_expect_str_eq(record, "job=12.3");
	cr_expect_eq(ddp_vars_record_add(record, sizeof(record), "A", "n 1"),
		     -1);
	cr_expect_str_eq(record, "job=12.3");
	cr_expect_eq(ddp_vars_record_add(record, sizeof(record), "A",
					 "12345678"), 0);
	cr_expect_str_eq(record, "job=12.3 A=12345678");
}

/* A record has room for all values even if each is as long as it may be. */
Test(vars, record_holds_the_longest)
{
	char record[DDP_VARS_RECORD_SIZE], value[DDP_VARS_VALUE_SIZE];
	size_t i;

	memset(value, 'x', sizeof(value) - 1);
	value[sizeof(value) - 1] = '\0';
	cr_expect_eq(ddp_vars_record_begin(record, sizeof(record), UINT32_MAX,
					   UINT32_MAX), 0);
	cr_expect_eq(ddp_vars_record_add(record, sizeof(record),
					 DDP_VARS_DEVICE_ORDER, "PCI_BUS_ID"),
		     0);
	/* All others are numbers of 32 bits. */
	for (i = 0; i < ddp_vars_count(); i++)
		cr_expect_eq(ddp_vars_record_add(record, sizeof(record),
						 ddp_vars_name(i),
						 ddp_vars_user_wins(i) ?
						 value : "4294967295"), 0);
}
