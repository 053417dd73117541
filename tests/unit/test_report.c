/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows as a table, as JSON, as variables and as records. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "machines.h"
#include "place/report.h"

/* Two ranks: one with two GPUs, one with none. */
static void make_rows(struct ddp_row rows[2])
{
	struct ddp_machine *machine = machine_make(1, 2, 2, 1, 1);
	struct ddp_rank rank = { .rank = 4, .node_rank = 1, .host = "n2" };
	struct ddp_placement placement = {
		.gpu_count = 2, .gpus = { 1, 0 },
		.visible_count = 2, .visible = { 1, 0 },
		.local_rank_is_device = true,
		.why_count = 2, .why = { "one \"reason\"", "another" },
	};
	struct ddp_view view;
	struct ddp_error error = { 0 };

	machine_attach(machine, 0, 1);
	strcpy(machine->gpus[0].model, "H100");
	strcpy(machine->gpus[0].interface, "ib0");
	view_make(&view, 2);
	view.gpus[0].gpu = DDP_GPU_NONE;
	view.gpus[1].gpu = 0;
	ddp_cpuset_parse("0-2", &placement.cpus, NULL);
	cr_assert_eq(ddp_row_make(&rows[0], &rank, machine, &view, &view,
				  &placement, NULL, &error), 0, "%s",
		     error.text);
	rank.rank = 13;
	rank.local_rank = 9;
	rank.host = "node-with-a-name";
	memset(&placement, 0, sizeof(placement));
	ddp_cpuset_parse("3", &placement.cpus, NULL);
	cr_assert_eq(ddp_row_make(&rows[1], &rank, machine, &view, &view,
				  &placement, "eth0", &error), 0);
	ddp_machine_destroy(machine);
}

static void clear_rows(struct ddp_row rows[2])
{
	ddp_row_clear(&rows[0]);
	ddp_row_clear(&rows[1]);
}

static void expect_text(char *text, const char *expected)
{
	cr_expect_str_eq(text, expected, "%s", text);
	free(text);
}

Test(report, table)
{
	struct ddp_table table = { .colour = true };
	struct ddp_row rows[2];

	make_rows(rows);
	expect_text(ddp_table_format(rows, 2, false),
"RANK NODE             LOCAL GPU BUS-ID       MODEL NUMA CPUS INTERFACE WHY\n"
"4    n2               0     1   0000:01:00.0 H100  0-1  0-2  ib0       a,b\n"
"                            0   -            -\n"
"13   node-with-a-name 9     -   -            -     1    3    eth0\n"
"WHY a: one \"reason\"\n"
"WHY b: another\n");
	expect_text(ddp_table_format(rows, 0, true),
"\033[1mRANK NODE LOCAL GPU BUS-ID NUMA CPUS INTERFACE\033[0m\n");
	ddp_table_fit(&table, rows, 1);
	ddp_table_fit(&table, rows + 1, 1);
	expect_text(ddp_table_lines(&table, rows + 1, 1, false),
"13   node-with-a-name 9     -   -            -     1    3    eth0\n");
	expect_text(ddp_table_end(&table),
"WHY a: one \"reason\"\n"
"WHY b: another\n");
	ddp_table_clear(&table);
	clear_rows(rows);
}

/* The longest that is usual: a node of 192 CPUs, the names of its NICs. */
Test(report, table_of_two_servers_fits_a_terminal)
{
	struct ddp_row_gpu gpu = { 7, "0000:dd:00.0", "H100 80GB HBM3" };
	struct ddp_row rows[2] = {
		{ .node = "ip-10-100-12-34", .cpus = "0-11,96-107",
		  .numa = "0", .interface = "enp157s0f0", .gpu_count = 1,
		  .gpus = &gpu, .why_count = 2, .why = { "all", "a" } },
		{ .rank = 15, .node = "ip-10-100-12-35", .local_rank = 7,
		  .cpus = "84-95,180-191", .numa = "1",
		  .interface = "enp157s0f1np1", .gpu_count = 1, .gpus = &gpu,
		  .why_count = 1, .why = { "all" } },
	};

	expect_text(ddp_table_format(rows, 2, false),
"RANK NODE            LOCAL GPU BUS-ID       NUMA CPUS          INTERFACE     WHY\n"
"0    ip-10-100-12-34 0     7   0000:dd:00.0 0    0-11,96-107   enp157s0f0    a\n"
"15   ip-10-100-12-35 7     7   0000:dd:00.0 1    84-95,180-191 enp157s0f1np1\n"
"MODEL all: H100 80GB HBM3\nWHY all: all\nWHY a: a\n");
}

/* Five rows of which the last two are copies of others. */
Test(report, table_says_each_reason_once)
{
	static char first[1], second[1];
	struct ddp_row rows[] = {
		{ .why_count = 3, .why = { "x", "all", "y" },
		  .storage = first },
		{ .why_count = 2, .why = { "all", "z" }, .local_rank = 1,
		  .storage = second },
		{ .why_count = 4, .why = { "y", "y", "all", "all" },
		  .local_rank = 2 },
		{ .rank = 8, .storage = first }, { .rank = 9,
		  .local_rank = 1, .storage = second },
	};
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		rows[i].node = "n1";
		rows[i].cpus = rows[i].numa = "0";
		rows[i].interface = "";
	}
	expect_text(ddp_table_format(rows, 5, false),
"RANK NODE LOCAL GPU BUS-ID NUMA CPUS INTERFACE WHY\n"
"0    n1   0     -   -      0    0    -         a,b\n"
"0    n1   1     -   -      0    0    -         c\n"
"0    n1   2     -   -      0    0    -         b,b\n"
"8    n1   0     -   -      0    0    -         a,b\n"
"9    n1   1     -   -      0    0    -         c\n"
"WHY all: all\nWHY a: x\nWHY b: y\nWHY c: z\n");
	rows[1] = rows[4] = rows[0];
	rows[2] = rows[3] = rows[0];
	expect_text(ddp_table_format(rows, 2, false),
"RANK NODE LOCAL GPU BUS-ID NUMA CPUS INTERFACE\n"
"0    n1   0     -   -      0    0    -\n"
"0    n1   0     -   -      0    0    -\n"
"WHY all: x\nWHY all: all\nWHY all: y\n");
}

/* 28 ranks, each with a reason of its own: a, b, ... z, a1, b1. */
Test(report, table_has_letters_enough)
{
	struct ddp_row rows[28];
	char whys[28][4], *table;
	uint32_t i;

	for (i = 0; i < 28; i++) {
		sprintf(whys[i], "r%u", i);
		rows[i] = (struct ddp_row){ .rank = i, .node = "n1",
			.local_rank = i, .cpus = "", .numa = "",
			.interface = "", .why_count = 1, .why = { whys[i] } };
	}
	table = ddp_table_format(rows, 28, false);
	cr_expect_not_null(strstr(table,
"\n25   n1   25    -   -      -    -    -         z\n"
"26   n1   26    -   -      -    -    -         a1\n"
"27   n1   27    -   -      -    -    -         b1\n"
"WHY a: r0\n"), "%s", table);
	cr_expect_not_null(strstr(table,
"\nWHY z: r25\nWHY a1: r26\nWHY b1: r27\n"), "%s", table);
	free(table);
}

Test(report, json)
{
	struct ddp_row rows[2];

	make_rows(rows);
	expect_text(ddp_report_json(rows, 1, true),
"{\"version\":1,\"ranks\":[\n"
"{\"rank\":4,\"node\":\"n2\",\"node_rank\":1,\"local_rank\":0,\"gpus\":["
"{\"index\":1,\"bus_id\":\"0000:01:00.0\",\"model\":\"H100\"},"
"{\"index\":0,\"bus_id\":\"\",\"model\":\"\"}],\"cpus\":\"0-2\","
"\"numa\":\"0-1\",\"interface\":\"ib0\","
"\"why\":[\"one \\\"reason\\\"\",\"another\"]}");
	expect_text(ddp_report_json(rows + 1, 1, false),
",\n{\"rank\":13,\"node\":\"node-with-a-name\",\"node_rank\":1,"
"\"local_rank\":9,\"gpus\":[],\"cpus\":\"3\",\"numa\":\"1\","
"\"interface\":\"eth0\",\"why\":[]}");
	expect_text(ddp_report_json_end("n1", 23456),
"],\n\"master\":{\"addr\":\"n1\",\"port\":23456}}\n");
	expect_text(ddp_report_json(rows, 0, true),
"{\"version\":1,\"ranks\":[");
	expect_text(ddp_report_json_end("n1", 0),
"],\n\"master\":{\"addr\":\"n1\",\"port\":null}}\n");
	clear_rows(rows);
}

Test(report, env)
{
	struct ddp_vars vars = {
		.rank = { .rank = 1, .local_rank = 1, .local_world_size = 2,
			  .host = "n1" },
		.world_size = 2, .node_count = 1, .cpus = 4,
		.master_addr = "n\t1",
	};
	struct ddp_row rows[2];

	make_rows(rows);
	vars.visible = rows[0].visible;
	expect_text(ddp_report_env(&vars),
"# rank 1 on n1\n"
"RANK=1\nLOCAL_RANK=1\nWORLD_SIZE=2\nLOCAL_WORLD_SIZE=2\nNODE_RANK=0\n"
"GROUP_RANK=0\nGROUP_WORLD_SIZE=1\nROLE_RANK=1\nROLE_WORLD_SIZE=2\n"
"MASTER_ADDR=n?1\nOMP_NUM_THREADS=4\n"
"CUDA_DEVICE_ORDER=PCI_BUS_ID\nCUDA_VISIBLE_DEVICES=1,0\n"
"PET_NNODES=torchrun-needs-srun---ddp=torchrun\n");
	cr_expect_str_eq(rows[1].visible, "");
	clear_rows(rows);
}

/* A row may come from the environment, which can hold anything. */
Test(report, foreign_text_is_made_printable)
{
	struct ddp_row_gpu gpu = { 0, "b\n1", "m\033[2J" };
	struct ddp_row row = {
		.node = "n\n1", .visible = "", .cpus = "0\n", .numa = "\r",
		.interface = "e\0337", .gpu_count = 1, .gpus = &gpu,
		.why_count = 1, .why = { "w\ny" },
	};

	expect_text(ddp_table_format(&row, 1, false),
"RANK NODE LOCAL GPU BUS-ID NUMA CPUS INTERFACE\n"
"0    n?1  0     0   b?1    ?    0?   e?7\n"
"MODEL all: m?[2J\n"
"WHY all: w?y\n");
	expect_text(ddp_report_json(&row, 1, false),
",\n{\"rank\":0,\"node\":\"n\\u000a1\",\"node_rank\":0,\"local_rank\":0,"
"\"gpus\":[{\"index\":0,\"bus_id\":\"b\\u000a1\","
"\"model\":\"m\\u001b[2J\"}],\"cpus\":\"0\\u000a\",\"numa\":\"\\u000d\","
"\"interface\":\"e\\u001b7\",\"why\":[\"w\\u000ay\"]}");
	expect_text(ddp_report_json_end("a\377", 0),
"],\n\"master\":{\"addr\":\"a?\",\"port\":null}}\n");
}

/* A tab ends a field of a record, so no field may have one. */
Test(report, a_row_has_no_tab_in_it)
{
	struct ddp_machine *machine = machine_make(1, 1, 1, 1, 1);
	struct ddp_rank rank = { .host = "n\t1" };
	struct ddp_placement placement = { .why_count = 1, .why = { "a\tb" } };
	struct ddp_view view = { .count = 0 };
	struct ddp_row row;
	char interface[1001];

	memset(interface, 'x', sizeof(interface) - 1);
	interface[0] = '\t';
	interface[sizeof(interface) - 1] = '\0';
	cr_assert_eq(ddp_row_make(&row, &rank, machine, &view, &view,
				  &placement, interface, NULL), 0);
	cr_expect_str_eq(row.node, "n?1");
	cr_expect_str_eq(row.why[0], "a?b");
	cr_expect_eq(strlen(row.interface), 255);
	cr_expect_eq(row.interface[0], '?');
	ddp_row_clear(&row);
	ddp_machine_destroy(machine);
}

Test(report, record_is_reversible)
{
	struct ddp_row rows[2], read;
	uint32_t i;

	make_rows(rows);
	for (i = 0; i < 2; i++) {
		char *record = ddp_row_format(&rows[i]), *again;

		cr_assert_eq(ddp_row_parse(record, &read, NULL), 0);
		again = ddp_row_format(&read);
		cr_expect_str_eq(again, record);
		cr_expect_eq(read.device, i == 0 ? 0 : DDP_GPU_NONE);
		cr_expect_str_eq(read.node, rows[i].node);
		ddp_row_clear(&read);
		free(record);
		free(again);
	}
	clear_rows(rows);
}

Test(report, record_of_less_or_more_is_refused)
{
	struct ddp_row rows[2], read;
	struct ddp_error error = { 0 };
	char *record, *more;
	size_t length;

	make_rows(rows);
	record = ddp_row_format(&rows[0]);
	more = malloc(strlen(record) + 2);
	strcpy(more, record);
	strcat(more, "x");
	cr_expect_eq(ddp_row_parse(more, &read, &error), -1);
	for (length = strlen(record); length-- > 0; ) {
		record[length] = '\0';
		cr_expect_eq(ddp_row_parse(record, &read, &error), -1,
			     "%zu bytes", length);
	}
	cr_expect_eq(ddp_row_parse("0\t0\t0\t0\tn\t\t\t\t\t65\t", &read,
				   &error), -1);
	free(record);
	free(more);
	clear_rows(rows);
}

/* The user can change DDP_PLACEMENT, and other ranks write records too. */
Test(report, record_that_is_not_printable)
{
	struct ddp_row row;
	char *table;

	cr_assert_eq(ddp_row_parse("0\t0\t0\t0\tn\n1\t\t0\t0\t\t1\t0\t\t"
				   "A\x1b[2J\t1\tw\xff\t", &row, NULL), 0);
	cr_expect_str_eq(row.node, "n?1");
	cr_expect_str_eq(row.gpus[0].model, "A?[2J");
	cr_expect_str_eq(row.why[0], "w?");
	table = ddp_table_format(&row, 1, false);
	cr_expect_not_null(strstr(table, "\n0    n?1  0     0   -      0    "
				  "0    -\nMODEL all: A?[2J\nWHY all: w?\n"),
			   "%s", table);
	free(table);
	ddp_row_clear(&row);
}

Test(report, a_gpu_out_of_sight_is_an_error)
{
	struct ddp_machine *machine = machine_make(1, 1, 1, 1, 0);
	struct ddp_placement placement = { .visible_count = 1 };
	struct ddp_rank rank = { .host = "n1" };
	struct ddp_view view, nothing = { .count = 0 };
	struct ddp_row row;

	view_make(&view, 1);
	cr_expect_eq(ddp_row_make(&row, &rank, machine, &view, &nothing,
				  &placement, NULL, NULL), -1);
	ddp_machine_destroy(machine);
}
