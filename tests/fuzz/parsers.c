/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every parser of lib/layout and the layout itself, for libFuzzer. The first
 * byte of the input chooses; see the switch at the end. What must hold for any
 * answer is checked, so that wrong ones crash too.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "layout/gres.h"
#include "layout/hostlist.h"
#include "layout/layout.h"
#include "layout/mapping.h"
#include "layout/port.h"
#include "layout/request.h"
#include "layout/tasks.h"
#include "layout/vars.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static void check(int holds)
{
	if (!holds)
		abort();
}

/* A refusal is one printable sentence. */
static void check_refusal(const struct ddp_error *error)
{
	const char *at;

	check(error->code == DDP_ERROR_ARGUMENT && error->text[0] != '\0');
	for (at = error->text; *at != '\0'; at++)
		check(*at >= ' ' && *at <= '~');
}

static void fuzz_hostlist(const char *text)
{
	struct ddp_error error = { 0 };
	struct ddp_hostlist *hosts = ddp_hostlist_create(text, &error);
	size_t count, length, i;

	if (hosts == NULL) {
		check_refusal(&error);
		return;
	}
	count = ddp_hostlist_count(hosts);
	check(count >= 1 && count <= DDP_HOSTLIST_MAX);
	for (i = 0; i < count; i++) {
		length = strlen(ddp_hostlist_get(hosts, i));
		check(length >= 1 && length <= DDP_HOSTNAME_MAX);
		check(strcspn(ddp_hostlist_get(hosts, i), "[], ") == length);
	}
	check(ddp_hostlist_get(hosts, count) == NULL);
	ddp_hostlist_destroy(hosts);
}

/* Every seat of every host is taken once, and nodes are in rank order. */
static void check_layout(const struct ddp_layout_params *params)
{
	struct ddp_layout *layout = ddp_layout_create(params, NULL);
	uint32_t next[256] = { 0 }, nodes = 0, rank;
	struct ddp_rank got;

	if (layout == NULL)
		return;
	for (rank = 0; rank < ddp_layout_world_size(layout); rank++) {
		check(ddp_layout_get(layout, rank, &got, NULL) == 0);
		check(got.rank == rank);
		check(got.local_rank == next[got.host_index]++);
		check(got.local_world_size == params->tasks[got.host_index]);
		if (got.local_rank == 0)
			check(got.node_rank == nodes++);
		check(strcmp(got.host, ddp_hostlist_get(params->hosts,
							got.host_index)) == 0);
	}
	check(nodes == ddp_layout_node_count(layout));
	check(ddp_layout_get(layout, rank, &got, NULL) == -1);
	ddp_layout_destroy(layout);
}

/* Bytes: the distribution, the plane size, then the tasks of each host. */
static void fuzz_layout(const unsigned char *data, size_t size)
{
	uint32_t tasks[256];
	struct ddp_layout_params params = { .tasks = tasks };
	struct ddp_hostlist *hosts;
	char text[] = "n[0-xxx]";
	size_t count, i;

	if (size < 3)
		return;
	count = size - 2 < 256 ? size - 2 : 256;
	text[4] = (char)('0' + (count - 1) / 100);
	text[5] = (char)('0' + (count - 1) / 10 % 10);
	text[6] = (char)('0' + (count - 1) % 10);
	hosts = ddp_hostlist_create(text, NULL);
	check(hosts != NULL && ddp_hostlist_count(hosts) == count);
	for (i = 0; i < count; i++)
		tasks[i] = data[i + 2];
	params.hosts = hosts;
	params.distribution = (enum ddp_distribution)(data[0] % 4);
	params.plane_size = data[1];
	check_layout(&params);
	ddp_hostlist_destroy(hosts);
}

/* A byte with the number of nodes, then text. */
static void fuzz_tasks(const char *text)
{
	size_t nodes = (unsigned char)text[0] % 16, i;
	struct ddp_error error = { 0 };
	uint32_t tasks[16];
	uint64_t sum = 0;

	if (*text == '\0')
		return;
	if (ddp_tasks_parse(text + 1, nodes, tasks, &error)) {
		check_refusal(&error);
		return;
	}
	for (i = 0; i < nodes; i++)
		sum += tasks[i];
	check(sum >= 1 && sum <= DDP_RANK_MAX);
}

/* Two bytes with the hosts and the ranks, then text. */
static void fuzz_mapping(const char *text)
{
	static const char *const lists[] = {
		"n1", "n[1-2]", "n[1-3]", "n[1-4]",
	};
	struct ddp_error error = { 0 };
	uint32_t tasks[4] = { 0 }, *rank_hosts;
	struct ddp_layout_params params = { .tasks = tasks };
	struct ddp_hostlist *hosts;
	size_t host_count, rank_count, i;

	if (strlen(text) < 2)
		return;
	host_count = (unsigned char)text[0] % 4 + 1;
	rank_count = (unsigned char)text[1] % 16;
	rank_hosts = ddp_mapping_parse(text + 2, host_count, rank_count,
				       &error);
	if (rank_hosts == NULL) {
		check_refusal(&error);
		return;
	}
	for (i = 0; i < rank_count; i++) {
		check(rank_hosts[i] < host_count);
		tasks[rank_hosts[i]]++;
	}
	hosts = ddp_hostlist_create(lists[host_count - 1], NULL);
	params.hosts = hosts;
	params.rank_hosts = rank_hosts;
	check_layout(&params);
	ddp_hostlist_destroy(hosts);
	free(rank_hosts);
}

static void fuzz_gres(int (*count)(const char *, uint32_t *,
				   struct ddp_error *), const char *text)
{
	struct ddp_error error = { 0 };
	uint32_t gpus = 99999;

	if (count(text, &gpus, &error)) {
		check_refusal(&error);
		check(gpus == 99999);
	} else {
		check(gpus <= DDP_GRES_MAX);
	}
}

static void fuzz_port(const char *text)
{
	struct ddp_error error = { 0 };
	uint16_t first, last, port;

	if (ddp_port_range_parse(text, &first, &last, &error) == 0) {
		check(first >= 1024 && last - first + 1 >= DDP_PORT_RANGE_MIN);
		port = ddp_port_derive(last, first, first, last);
		check(port >= first && port <= last);
	} else {
		check_refusal(&error);
	}
	if (ddp_port_reserved(text, &port, &error) == 0)
		check(port > 0);
	else
		check_refusal(&error);
}

static void fuzz_distribution(const char *text)
{
	struct ddp_error error = { 0 };
	enum ddp_distribution distribution;

	if (ddp_distribution_parse(text, &distribution, &error))
		check_refusal(&error);
	else
		check(distribution <= DDP_DISTRIBUTION_ARBITRARY);
}

/* The text serves as a record, and as a value to find in one. */
static void fuzz_record(const char *text)
{
	char record[64];

	ddp_vars_recorded(text, "MASTER_ADDR", "n1");
	check(ddp_vars_record_begin(record, sizeof(record), 1, 0) == 0);
	if (ddp_vars_record_add(record, sizeof(record), "A", text) == 0)
		check(ddp_vars_recorded(record, "A", text));
	else
		check(strcmp(record, "job=1.0") == 0);
}

/* Bits for what is yes or no, then texts; an empty one is not given. */
static void request_read(char *text, struct ddp_request *request)
{
	const char **fields[] = {
		&request->nodes, &request->gres, &request->gpus,
		&request->gpus_per_node, &request->ntasks,
		&request->cpus_per_task, &request->cpus_per_gpu,
		&request->mincpus, &request->ntasks_per_node,
		&request->ntasks_per_gpu, &request->gpus_per_task,
	};
	int bits = *text++;
	const char *field;
	size_t i;

	for (i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		field = strsep(&text, ";");
		*fields[i] = field != NULL && *field != '\0' ? field : NULL;
	}
	request->in_job = (bits & 1) != 0;
	request->nodes_typed = (bits & 2) != 0;
	request->pty = (bits & 4) != 0;
	request->cpus_open = (bits & 8) != 0;
	request->arbitrary = (bits & 16) != 0;
}

static void fuzz_request(char *text)
{
	struct ddp_error error = { 0 };
	struct ddp_request request = { 0 };
	struct ddp_fill fill;
	enum ddp_cpus cpus;
	uint32_t gpus = 99999;
	char share[16];
	int rc;

	if (*text == '\0')
		return;
	request_read(text, &request);
	rc = ddp_request_gpus(&request, &gpus, &error);
	check(rc == 0 ? gpus <= DDP_GRES_MAX : gpus == 99999);
	check(rc == 0 || error.text[0] != '\0');
	if (ddp_request_gpus_per_node(&request, share, sizeof(share), NULL) ||
	    !request.gpus)
		check(share[0] == '\0');
	rc = ddp_request_fill(&request, &fill, &error);
	check(rc == 0 || !request.ntasks);
	check(fill.ntasks_per_node <= DDP_GRES_MAX);
	if (request.ntasks_per_node || request.ntasks_per_gpu)
		check(rc == 0 && !fill.nodes && !fill.ntasks &&
		      !fill.ntasks_per_node);
	rc = ddp_request_check_cpus(&request, &cpus, &error);
	check(rc == 0 || !request.cpus_open);
	check(ddp_request_cpus_per_task(request.cpus_per_task, request.nodes,
					2, 3) <= DDP_RANK_MAX);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	char *text;

	if (size == 0)
		return 0;
	text = malloc(size);
	if (text == NULL)
		abort();
	memcpy(text, data + 1, size - 1);
	text[size - 1] = '\0';
	switch (data[0]) {
	case 'd': fuzz_distribution(text); break;
	case 'g': fuzz_gres(ddp_gres_count_gpus, text); break;
	case 'h': fuzz_hostlist(text); break;
	case 'l': fuzz_layout(data + 1, size - 1); break;
	case 'm': fuzz_mapping(text); break;
	case 'n': fuzz_gres(ddp_gpus_count, text); break;
	case 'p': fuzz_port(text); break;
	case 'q': fuzz_request(text); break;
	case 'r': fuzz_record(text); break;
	case 't': fuzz_tasks(text); break;
	}
	free(text);
	return 0;
}
