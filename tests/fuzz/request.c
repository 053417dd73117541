/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzzes what a step asks for, and the texts that name ports. The input is a
 * byte of bits for what is yes or no, then the values of the options, each
 * with a semicolon behind it; an empty one is not given.
 */
#define _GNU_SOURCE
#include "fuzz.h"
#include "layout/port_range.h"
#include "layout/tasks.h"
#include "request/gres.h"
#include "request/request.h"

enum { UNTOUCHED = 99999 };

static void read_request(char *text, unsigned char bits,
			 struct ddp_request *request)
{
	const char **fields[] = {
		&request->nodes, &request->gres, &request->gpus,
		&request->gpus_per_node, &request->ntasks,
		&request->cpus_per_task, &request->cpus_per_gpu,
		&request->mincpus, &request->ntasks_per_node,
		&request->ntasks_per_gpu, &request->gpus_per_task,
		&request->gpus_per_socket,
	};
	const char *field;
	size_t i;

	for (i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		field = strsep(&text, ";");
		*fields[i] = field && *field != '\0' ? field : NULL;
	}
	request->in_job = (bits & 1) != 0;
	request->nodes_typed = (bits & 2) != 0;
	request->pty = (bits & 4) != 0;
	request->cpus_open = (bits & 8) != 0;
	request->arbitrary = (bits & 16) != 0;
}

/* Returns 1 if rc is 0; a refusal is a sentence. */
static int check_answer(int rc, struct ddp_error *error)
{
	CHECK(rc == 0 || rc == -1);
	if (rc < 0)
		fuzz_check_error(error, DDP_ERROR_ARGUMENT);
	memset(error, 0, sizeof(*error));
	return rc == 0;
}

static void check_gpus(const struct ddp_request *request)
{
	struct ddp_error error = { 0 };
	uint32_t gpus = UNTOUCHED;
	char share[16];

	if (check_answer(ddp_request_gpus(request, &gpus, &error), &error))
		CHECK(gpus <= DDP_GRES_MAX);
	else
		CHECK(gpus == UNTOUCHED);
	if (!check_answer(ddp_request_gpus_per_node(request, share,
						    sizeof(share), &error),
			  &error) || !request->gpus)
		CHECK(*share == '\0');
}

static void check_request(const struct ddp_request *request)
{
	struct ddp_error error = { 0 };
	struct ddp_fill fill;
	enum ddp_cpus cpus;
	int fits;

	check_gpus(request);
	fits = check_answer(ddp_request_fill(request, &fill, &error), &error);
	CHECK(fits || !request->ntasks);
	CHECK(fill.ntasks_per_node <= DDP_GRES_MAX);
	if (request->ntasks_per_node || request->ntasks_per_gpu)
		CHECK(fits && !fill.nodes && !fill.ntasks_per_node);
	/* Slurm counts the GPUs of one node only, so -n is filled in beside
	 * --ntasks-per-gpu, but never beside a number of tasks per node. */
	CHECK(!fill.ntasks || !request->ntasks_per_node);
	fits = check_answer(ddp_request_check_cpus(request, &cpus, &error),
			    &error);
	CHECK(fits || !request->cpus_open);
	CHECK(ddp_request_cpus_per_task(request->cpus_per_task, request->nodes,
					2, 3) <= DDP_RANK_MAX);
}

static void check_ports(const char *text)
{
	struct ddp_error error = { 0 };
	uint16_t first, last, port;

	if (check_answer(ddp_port_range_parse(text, &first, &last, &error),
			 &error)) {
		CHECK(first >= 1024);
		CHECK(last - first + 1 >= DDP_PORT_RANGE_MIN);
		port = ddp_port_derive(last, first, last - first, first, last);
		CHECK(port >= first && port <= last);
	}
	if (check_answer(ddp_port_reserved(text, 0, &port, &error), &error)) {
		CHECK(port > 0);
		CHECK(ddp_port_reserved(text, 1, &port, NULL) >= 0);
		CHECK(port > 0);
	}
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	struct ddp_request request = { 0 };
	char *text;

	if (size == 0)
		return 0;
	text = fuzz_text(data + 1, size - 1);
	check_ports(text);
	read_request(text, data[0], &request);
	check_request(&request);
	free(text);
	return 0;
}
