/* SPDX-License-Identifier: BSD-3-Clause */
/* TF_CONFIG, the ranks as TensorFlow's workers. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layout/tf.h"

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
	/* In the order of ranks, not of nodes */
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

/* What fits is whole, and what does not fit is refused. */
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
