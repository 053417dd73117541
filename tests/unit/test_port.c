/* SPDX-License-Identifier: BSD-3-Clause */
/* Port ranges, the ports that steps derive, and TF_CONFIG. */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layout/port_range.h"

struct port_row {
	char text[32];
	int first;		/* -1: refused */
	int last;
};

ParameterizedTestParameters(port, parses_ranges)
{
	static struct port_row table[] = {
		{ "1024-65535", 1024, 65535 },
		{ "20000-20063", 20000, 20063 },
		{ "20000-20062", -1, 0 },
		{ "20000-20000", -1, 0 },
		{ "20001-20000", -1, 0 },
		{ "1023-2000", -1, 0 },
		{ "20000-65536", -1, 0 },
		{ "65535-65535", -1, 0 },
		{ "20000", -1, 0 },
		{ "20000-", -1, 0 },
		{ "-20000", -1, 0 },
		{ "20000-21000,", -1, 0 },
		{ "20000-21000 ", -1, 0 },
		{ "20000 -21000", -1, 0 },
		{ "20000--21000", -1, 0 },
		{ "a-b", -1, 0 },
		{ "", -1, 0 },
	};

	return cr_make_param_array(struct port_row, table,
				   sizeof(table) / sizeof(table[0]));
}

ParameterizedTest(struct port_row *row, port, parses_ranges)
{
	struct ddp_error error = { 0 };
	uint16_t first = 1, last = 2;
	int result = ddp_port_range_parse(row->text, &first, &last, &error);

	if (row->first >= 0) {
		cr_expect_eq(result, 0, "%s", error.text);
		cr_expect_eq(first, row->first);
		cr_expect_eq(last, row->last);
		return;
	}
	cr_expect_eq(result, -1, "%s", row->text);
	cr_expect_eq(error.code, DDP_ERROR_ARGUMENT);
	cr_expect_eq(strncmp(error.text, "port range '", 12), 0);
	cr_expect_eq(first, 1);
	cr_expect_eq(last, 2);
}

ParameterizedTestParameters(port, parses_reservations)
{
	static struct port_row table[] = {
		{ "12000-12003", 12000, 0 },
		{ "12000", 12000, 0 },
		{ "12000,12005-12007", 12000, 0 },
		{ "65535", 65535, 0 },
		{ "1", 1, 0 },
		{ "", -1, 0 },
		{ "0", -1, 0 },
		{ "65536", -1, 0 },
		{ "-12000", -1, 0 },
		{ "(null)", -1, 0 },
		{ "[12000-12003]", -1, 0 },
		{ "12000-12003x", -1, 0 },
		{ "12003-12000", -1, 0 },
		{ "12000-", -1, 0 },
		{ "12000,", -1, 0 },
		{ "12000,,12001", -1, 0 },
		{ "12000-65536", -1, 0 },
	};

	return cr_make_param_array(struct port_row, table,
				   sizeof(table) / sizeof(table[0]));
}

ParameterizedTest(struct port_row *row, port, parses_reservations)
{
	struct ddp_error error = { 0 };
	uint16_t port = 7;
	int result = ddp_port_reserved(row->text, 0, &port, &error);

	cr_expect_eq(result, row->first >= 0 ? 0 : -1, "%s", row->text);
	cr_expect_eq(port, row->first >= 0 ? row->first : 7);
	cr_expect_eq(error.code, row->first >= 0 ? DDP_ERROR_NONE :
		     DDP_ERROR_ARGUMENT);
}

Test(port, counts_reservations)
{
	static const uint16_t ports[] = { 12000, 12005, 12006, 12007, 11999 };
	const char *text = "12000,12005-12007,11999";
	uint16_t port;
	uint32_t i;

	for (i = 0; i < 5; i++) {
		cr_expect_eq(ddp_port_reserved(text, i, &port, NULL), 0);
		cr_expect_eq(port, ports[i], "%u", i);
	}
	cr_expect_eq(ddp_port_reserved(text, 5, &port, NULL), 1);
	cr_expect_eq(ddp_port_reserved(text, UINT32_MAX, &port, NULL), 1);
	cr_expect_eq(ddp_port_reserved("12000", 1, &port, NULL), 1);
	cr_expect_eq(port, 11999);
	cr_expect_eq(ddp_port_reserved("1,x", 0, &port, NULL), -1);
}

Test(port, null_is_an_error)
{
	uint16_t first, last;

	cr_expect_eq(ddp_port_range_parse(NULL, &first, &last, NULL), -1);
	cr_expect_eq(ddp_port_reserved(NULL, 0, &first, NULL), -1);
}

Test(port, default_range_is_a_range)
{
	char text[32];
	uint16_t first, last;

	snprintf(text, sizeof(text), "%d-%d", DDP_PORT_FIRST, DDP_PORT_LAST);
	cr_expect_eq(ddp_port_range_parse(text, &first, &last, NULL), 0);
	cr_expect_lt(last, 32768);
}

Test(port, stays_in_the_range)
{
	static const uint32_t ids[] = {
		0, 1, 2, 49, 8000, 65535, 0x7fffffff, 0xfffffffa, 0xffffffff,
	};
	static const uint16_t ranges[][2] = {
		{ DDP_PORT_FIRST, DDP_PORT_LAST }, { 1024, 65535 },
		{ 20000, 20063 }, { 30000, 30000 },
	};
	const size_t count = sizeof(ids) / sizeof(ids[0]);
	size_t i, j, k;
	uint16_t port;

	for (i = 0; i < count; i++) {
		for (j = 0; j < count; j++) {
			for (k = 0; k < 4; k++) {
				port = ddp_port_derive(ids[i], ids[j],
						       ids[count - 1 - j],
						       ranges[k][0],
						       ranges[k][1]);
				cr_expect_geq(port, ranges[k][0]);
				cr_expect_leq(port, ranges[k][1]);
			}
		}
	}
}

/*
 * How many of the first ports of each step are given twice to the steps of jobs
 * job to job + 15.
 */
static int count_shared(uint32_t job, uint32_t steps, uint32_t ports,
			uint16_t first, uint16_t last)
{
	static bool taken[65536];
	uint32_t offset, step, number;
	uint16_t port;
	int count = 0;

	memset(taken, 0, sizeof(taken));
	for (offset = 0; offset < 16; offset++)
		for (step = 0; step < steps; step++)
			for (number = 0; number < ports; number++) {
				port = ddp_port_derive(job + offset, step,
						       number, first, last);
				count += taken[port];
				taken[port] = true;
			}
	return count;
}

/* The ports of a step: halfway round the range, then between, then between. */
Test(port, ports_of_a_step_are_apart)
{
	static const uint16_t ports[] = {
		0, 500, 250, 750, 125, 625, 375, 875,
	};
	static bool taken[65536];
	uint16_t first = ddp_port_derive(12, 3, 0, 20000, 20999), port;
	uint32_t i;

	for (i = 0; i < 8; i++)
		cr_expect_eq(ddp_port_derive(12, 3, i, 20000, 20999),
			     20000 + (first - 20000 + ports[i]) % 1000, "%u",
			     i);
	/* The largest number that is promised to have one of its own */
	for (i = 0; i < 500; i++) {
		port = ddp_port_derive(12, 3, i, 20000, 20999);
		cr_expect_not(taken[port], "%u", i);
		taken[port] = true;
	}
}

Test(port, steps_of_one_job_differ)
{
	static bool taken[65536];
	uint32_t step;
	uint16_t port;

	for (step = 0; step <= DDP_PORT_LAST - DDP_PORT_FIRST; step++) {
		port = ddp_port_derive(4711, step, 0, DDP_PORT_FIRST,
				       DDP_PORT_LAST);
		cr_expect_not(taken[port]);
		taken[port] = true;
	}
	memset(taken, 0, sizeof(taken));
	for (step = 0; step <= (DDP_PORT_LAST - DDP_PORT_FIRST) / 2; step++) {
		port = ddp_port_derive(4711, step, 0, DDP_PORT_FIRST,
				       DDP_PORT_LAST);
		cr_expect_not(taken[port]);
		taken[port] = true;
		port = ddp_port_derive(4711, step, 1, DDP_PORT_FIRST,
				       DDP_PORT_LAST);
		cr_expect_not(taken[port]);
		taken[port] = true;
	}
}

Test(port, neighbouring_jobs_differ)
{
	uint32_t job, i;

	for (i = 0; i < 4000; i++) {
		job = i < 2000 ? i : i * 2654433u;
		cr_expect_eq(count_shared(job, 50, 1, DDP_PORT_FIRST,
					DDP_PORT_LAST), 0, "job %u", job);
		cr_expect_eq(count_shared(job, 266, 1, DDP_PORT_FIRST,
					DDP_PORT_LAST), 0, "job %u", job);
		cr_expect_eq(count_shared(job, 222, 2, DDP_PORT_FIRST,
					DDP_PORT_LAST), 0, "job %u", job);
		cr_expect_eq(count_shared(job, 1, 2, 20000, 20063), 0,
			     "job %u", job);
		cr_expect_eq(count_shared(job, 2, 1, 20000, 20063), 0, "job %u",
			     job);
	}
}

/* ---- TF_CONFIG, the ranks as workers of TensorFlow */

/* Port 1000 + number, but none for number 7. */
static int get_port(void *context, uint32_t number, uint16_t *port,
		    struct ddp_error *error)
{
	(void)context;
	*port = (uint16_t)(1000 + number);
	return number != 7 ? 0 :
		ddp_error_set(error, DDP_ERROR_ARGUMENT, "no port 7");
}

static void expect_config(const char *names, const uint32_t *tasks,
			  const uint32_t *rank_hosts, uint32_t rank,
			  const char *wanted)
{
	struct ddp_hostlist *hosts = ddp_hostlist_create(names, NULL);
	struct ddp_layout_params params = {
		.hosts = hosts, .tasks = tasks, .rank_hosts = rank_hosts,
		.distribution = DDP_DISTRIBUTION_BLOCK,
	};
	struct ddp_layout *layout = ddp_layout_create(&params, NULL);
	struct ddp_error error = { 0 };
	char *config = ddp_tf_config(layout, rank, get_port, NULL, &error);

	cr_expect_str_eq(config ? config : error.text, wanted);
	free(config);
	ddp_layout_destroy(layout);
	ddp_hostlist_destroy(hosts);
}

Test(tf, config)
{
	static const uint32_t two[] = { 2, 2 }, three[] = { 1, 2, 2 };
	static const uint32_t four[] = { 1, 2, 2, 1 };
	static const uint32_t nine[] = { 8 }, reverse[] = { 1, 0, 1, 0 };

	expect_config("n[1-2]", two, NULL, 3, "{\"cluster\":{\"worker\":["
		      "\"n1:1000\",\"n1:1001\",\"n2:1000\",\"n2:1001\"]},"
		      "\"task\":{\"type\":\"worker\",\"index\":3}}");
	/* Workers stand in the order of ranks, not of nodes. */
	expect_config("n[1-2]", two, reverse, 0, "{\"cluster\":{\"worker\":["
		      "\"n2:1000\",\"n1:1000\",\"n2:1001\",\"n1:1001\"]},"
		      "\"task\":{\"type\":\"worker\",\"index\":0}}");
	/* Components of a heterogeneous step on one machine */
	expect_config("a,b,a", three, NULL, 1, "{\"cluster\":{\"worker\":["
		      "\"a:1000\",\"b:1000\",\"b:1001\",\"a:1001\","
		      "\"a:1002\"]},"
		      "\"task\":{\"type\":\"worker\",\"index\":1}}");
	expect_config("a,b,a,a", four, NULL, 0, "{\"cluster\":{\"worker\":["
		      "\"a:1000\",\"b:1000\",\"b:1001\",\"a:1001\","
		      "\"a:1002\",\"a:1003\"]},"
		      "\"task\":{\"type\":\"worker\",\"index\":0}}");
	expect_config("n1", nine, NULL, 0, "no port 7");
}

/* A text that fits is whole, and one that does not fit is refused. */
Test(tf, config_is_not_too_long)
{
	static uint32_t tasks[20000];
	struct ddp_hostlist *hosts = ddp_hostlist_create("n[10001-30000]",
							 NULL);
	struct ddp_layout_params params = {
		.hosts = hosts, .tasks = tasks,
		.distribution = DDP_DISTRIBUTION_BLOCK,
	};
	struct ddp_layout *layout;
	struct ddp_error error;
	size_t i;
	char *config;

	/* 14 bytes for each: "n10001:1000", and a comma */
	for (i = 0; i < 7000; i++)
		tasks[i] = 1;
	layout = ddp_layout_create(&params, NULL);
	config = ddp_tf_config(layout, 6999, get_port, NULL, &error);
	cr_assert_not_null(config);
	cr_expect_eq(strlen(config), 22 + 14 * 7000 - 1 +
		     strlen("]},\"task\":{\"type\":\"worker\","
			    "\"index\":6999}}"));
	cr_expect_lt(strlen(config), DDP_TF_SIZE);
	free(config);
	ddp_layout_destroy(layout);

	for (; i < 20000; i++)
		tasks[i] = 1;
	layout = ddp_layout_create(&params, NULL);
	cr_expect_null(ddp_tf_config(layout, 0, get_port, NULL, &error));
	cr_expect_not_null(strstr(error.text, "the addresses of 20000 ranks "
				  "do not fit into one variable, only those of "
				  "the first 70"), "%s", error.text);
	ddp_layout_destroy(layout);
	ddp_hostlist_destroy(hosts);
}
