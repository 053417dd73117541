/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks, many on one GPU, that make communicators with the real NCCL and use
 * them. The arguments name the tests to run, in order. Rank 0 prints "ok NAME"
 * for a test that passes; a rank that fails prints "not ok NAME: rank R: why".
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ddp_nccl.h>

#define COUNT 100000		/* numbers that are reduced */

static struct ddp_job *job;
static int rank, size;
static const char *test;
static int failures;
static struct ddp_nccl_options options;
static cudaStream_t stream;
static int *numbers, *device;

static int fail(const char *format, ...)
{
	va_list args;

	failures++;
	printf("not ok %s: rank %d: ", test, rank);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
	fflush(stdout);
	return -1;
}

static int cuda(cudaError_t result, const char *call)
{
	return result == cudaSuccess ? 0 :
		fail("%s: %s", call, cudaGetErrorString(result));
}

#define CUDA(call) cuda(call, #call)

static int nccl(ncclResult_t result)
{
	return result == ncclSuccess || result == ncclInProgress ? 0 :
		fail("NCCL: %s", ncclGetErrorString(result));
}

static int want(int good, const char *what, const struct ddp_error *error)
{
	return good ? 0 : fail("%s (code %d, %s)", what, (int)error->code,
			       error->text);
}

/* Rank r gives (i + 1) * (r + 1) modulo 1000 at i, so the sum is known. */
static int give(int r, int i)
{
	return (i + 1) * (r + 1) % 1000;
}

static int enqueue_sum(ncclComm_t comm)
{
	int i, r;

	if (nccl(ncclCommUserRank(comm, &r)) != 0)
		return -1;
	for (i = 0; i < COUNT; i++)
		numbers[i] = give(r, i);
	if (CUDA(cudaMemcpyAsync(device, numbers, COUNT * sizeof(int),
				 cudaMemcpyHostToDevice, stream)) != 0)
		return -1;
	return nccl(ncclAllReduce(device, device, COUNT, ncclInt, ncclSum, comm,
				  stream));
}

static int check_sum(int members)
{
	int i, r, sum;

	if (CUDA(cudaMemcpy(numbers, device, COUNT * sizeof(int),
			    cudaMemcpyDeviceToHost)) != 0)
		return -1;
	for (i = 0; i < COUNT; i++) {
		sum = 0;
		for (r = 0; r < members; r++)
			sum += give(r, i);
		if (numbers[i] != sum)
			return fail("sum %d of %d ranks: %d, not %d", i,
				    members, numbers[i], sum);
	}
	return 0;
}

/*
 * All-reduce and compare, in a communicator of these members, in which this
 * rank must be number r.
 */
static int reduce(ncclComm_t comm, int r, int members)
{
	struct ddp_error error = { 0 };
	int had_rank = -1, had_size = -1;

	if (comm == NULL)
		return fail("no communicator");
	if (nccl(ncclCommUserRank(comm, &had_rank)) != 0 ||
	    nccl(ncclCommCount(comm, &had_size)) != 0)
		return -1;
	if (had_rank != r || had_size != members)
		return fail("is %d of %d, not %d of %d", had_rank, had_size, r,
			    members);
	if (enqueue_sum(comm) != 0)
		return -1;
	if (ddp_nccl_wait(comm, stream, 60000, &error) != 0)
		return want(0, "wait", &error);
	return check_sum(members);
}

static int create(unsigned int groups, struct ddp_nccl_comms *comms)
{
	struct ddp_error error = { 0 };

	memset(comms, 0, sizeof(*comms));
	return want(ddp_nccl_create(job, groups, &options, comms, &error) == 0,
		    "create", &error);
}

static int destroy(ncclComm_t comm)
{
	struct ddp_error error = { 0 };

	return want(ddp_nccl_destroy(comm, 60000, &error) == 0, "destroy",
		    &error);
}

/* The ranks with this local rank on the nodes before this one. */
static void across(int *r, int *members)
{
	uint32_t other, local = ddp_job_local_rank(job);

	*r = *members = 0;
	for (other = 0; other < (uint32_t)size; other++) {
		if (ddp_job_local_rank_of(job, other) != local)
			continue;
		++*members;
		*r += ddp_job_node_of(job, other) < ddp_job_node_rank(job);
	}
}

static void test_groups(void)
{
	struct ddp_nccl_comms comms;
	int r, members;

	across(&r, &members);
	if (create(7, &comms) != 0)
		return;
	reduce(comms.world, rank, size);
	reduce(comms.node, (int)ddp_job_local_rank(job),
	       (int)ddp_job_local_size(job));
	reduce(comms.cross, r, members);
	reduce(comms.world, rank, size);
	destroy(comms.cross);
	destroy(comms.node);
	destroy(comms.world);
}

static void test_roots(void)
{
	struct ddp_nccl_comms comms;

	options.ranks_per_root = 1;
	if (create(DDP_GROUP_WORLD, &comms) == 0)
		reduce(comms.world, rank, size);
	destroy(comms.world);
	options.ranks_per_root = 0;
}

static void test_again(void)
{
	struct ddp_nccl_comms comms;
	int i;

	for (i = 0; i < 3; i++) {
		if (create(DDP_GROUP_WORLD | DDP_GROUP_NODE, &comms) != 0)
			return;
		reduce(comms.world, rank, size);
		destroy(comms.node);
		destroy(comms.world);
	}
}

/* While another one is there, which has been used. */
static void test_another(void)
{
	struct ddp_nccl_comms first, second;

	if (create(DDP_GROUP_WORLD, &first) != 0)
		return;
	reduce(first.world, rank, size);
	if (create(DDP_GROUP_NODE, &second) == 0)
		reduce(second.node, (int)ddp_job_local_rank(job),
		       (int)ddp_job_local_size(job));
	reduce(first.world, rank, size);
	destroy(second.node);
	destroy(first.world);
}

/* Even and odd ranks apart, in reverse order; the last rank takes no part. */
static void test_split(void)
{
	uint32_t color = rank == size - 1 ? DDP_COLOR_NONE :
		(uint32_t)rank % 2;
	struct ddp_error error = { 0 };
	ncclComm_t comm = NULL;
	int other, r = 0, members = 0;

	for (other = 0; other < size - 1; other++) {
		members += other % 2 == rank % 2;
		r += other % 2 == rank % 2 && other > rank;
	}
	if (want(ddp_nccl_split(job, color, (uint32_t)(size - rank), &options,
				&comm, &error) == 0, "split", &error) != 0)
		return;
	if (rank == size - 1)
		want(comm == NULL, "joined", &error);
	else
		reduce(comm, r, members);
	destroy(comm);
}

static void test_config(void)
{
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	struct ddp_nccl_comms comms;

	config.minCTAs = config.maxCTAs = 1;
	config.blocking = 1;
	options.config = &config;
	if (create(DDP_GROUP_WORLD, &comms) == 0)
		reduce(comms.world, rank, size);
	destroy(comms.world);
	options.config = NULL;
}

/* All are on one GPU. Without share_gpu all must get the same error. */
static void test_refusal(void)
{
	struct ddp_error error = { 0 };
	struct ddp_nccl_comms comms = { NULL, NULL, NULL };

	options.share_gpu = 0;
	if (want(ddp_nccl_create(job, 1, &options, &comms, &error) != 0,
		 "was not refused", &error) == 0)
		want(error.code == DDP_ERROR_ARGUMENT &&
		     strstr(error.text, "the same GPU, GPU-") != NULL &&
		     comms.world == NULL, "another refusal", &error);
	options.share_gpu = 1;
}

static void sleep_on_host(void *data)
{
	usleep(*(useconds_t *)data);
}

/* Wait for a stream that is busy, without NCCL. */
static void test_stream(void)
{
	static useconds_t time = 1500000;
	struct ddp_error error = { 0 };

	if (CUDA(cudaLaunchHostFunc(stream, sleep_on_host, &time)) != 0)
		return;
	want(ddp_nccl_wait(NULL, stream, 300, &error) != 0 &&
	     error.code == DDP_ERROR_TIMEOUT, "did not wait", &error);
	want(ddp_nccl_wait(NULL, stream, 60000, &error) == 0, "not done",
	     &error);
}

/*
 * The last rank takes no part in a collective: the others stop waiting, all
 * abort, and a new communicator works.
 */
static void test_deadline(void)
{
	struct ddp_nccl_comms comms;
	struct ddp_error error = { 0 };

	if (create(DDP_GROUP_WORLD, &comms) != 0)
		return;
	reduce(comms.world, rank, size);
	if (rank == size - 1)
		sleep(4);
	else if (enqueue_sum(comms.world) == 0)
		want(ddp_nccl_wait(comms.world, stream, 1500, &error) != 0 &&
		     error.code == DDP_ERROR_TIMEOUT, "no deadline", &error);
	want(ddp_nccl_abort(comms.world, &error) == 0, "abort", &error);
	want(ddp_nccl_wait(NULL, stream, 60000, &error) == 0,
	     "abort did not stop the kernel", &error);
	test_again();
}

/* The last rank aborts at once; the others notice, or their deadline passes. */
static void test_async(void)
{
	struct ddp_nccl_comms comms;
	struct ddp_error error = { 0 };

	if (create(DDP_GROUP_WORLD, &comms) != 0)
		return;
	reduce(comms.world, rank, size);
	if (rank < size - 1 && enqueue_sum(comms.world) == 0 &&
	    want(ddp_nccl_wait(comms.world, stream, 10000, &error) != 0,
		 "no error", &error) == 0)
		printf("# rank %d, whose peer aborted: code %d native %d, %s\n",
		       rank, (int)error.code, error.native, error.text);
	want(ddp_nccl_abort(comms.world, &error) == 0, "abort", &error);
	want(ddp_nccl_wait(NULL, stream, 60000, &error) == 0,
	     "abort did not stop the kernel", &error);
	test_again();
}

/*
 * NCCL finds no network on the last rank, which fails at once. The others fail
 * at their deadline, and their communicator is aborted. No test can follow.
 */
static void test_init(void)
{
	struct ddp_error error = { 0 };
	struct ddp_nccl_comms comms = { NULL, NULL, NULL };

	if (rank == size - 1)
		setenv("NCCL_SOCKET_IFNAME", "=none", 1);
	options.timeout_ms = 5000;
	if (want(ddp_nccl_create(job, 1, &options, &comms, &error) != 0,
		 "was created", &error) == 0)
		want(error.code == DDP_ERROR_NCCL ||
		     (rank < size - 1 && error.code == DDP_ERROR_TIMEOUT),
		     "another error", &error);
	printf("# rank %d: code %d native %d, %s\n", rank, (int)error.code,
	       error.native, error.text);
	options.timeout_ms = 0;
}

/* This comes before a GPU is chosen, which CUDA can tell from version 12. */
static void test_chosen(void)
{
	struct ddp_error error = { 0 };
	struct ddp_nccl_comms comms = { NULL, NULL, NULL };

	want(ddp_nccl_create(job, 1, &options, &comms, &error) != 0 &&
	     strstr(error.text, "chosen no GPU") != NULL, "was created",
	     &error);
}

static const struct {
	const char *name;
	void (*function)(void);
} tests[] = {
	{ "groups", test_groups }, { "roots", test_roots },
	{ "again", test_again }, { "another", test_another },
	{ "split", test_split },
	{ "config", test_config }, { "refusal", test_refusal },
	{ "stream", test_stream }, { "deadline", test_deadline },
	{ "async", test_async }, { "init", test_init },
};

static void run(const char *name)
{
	struct ddp_error error = { 0 };
	int before = failures;
	size_t i;

	test = name;
	for (i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		if (strcmp(tests[i].name, name) == 0)
			break;
	if (i == sizeof(tests) / sizeof(tests[0])) {
		fail("there is no such test");
		return;
	}
	tests[i].function();
	if (ddp_job_barrier(job, &error) != 0)
		want(0, "barrier", &error);
	if (rank == 0 && failures == before)
		printf("ok %s\n", name);
	fflush(stdout);
}

static int begin(void)
{
	struct ddp_job_options wanted = { sizeof(wanted), DDP_LAUNCH_AUTO,
		60000 };
	struct ddp_error error = { 0 };
	int gpus;

	job = ddp_job_create(&wanted, &error);
	if (job == NULL) {
		printf("not ok job: %s\n", error.text);
		return -1;
	}
	rank = (int)ddp_job_rank(job);
	size = (int)ddp_job_size(job);
	options.size = sizeof(options);
	options.share_gpu = size > 1;
	numbers = malloc(COUNT * sizeof(*numbers));
	test = "begin";
	test_chosen();
	if (CUDA(cudaGetDeviceCount(&gpus)) != 0 || CUDA(cudaSetDevice(0)) != 0)
		return -1;
	return CUDA(cudaMalloc((void **)&device, COUNT * sizeof(int))) != 0 ||
		CUDA(cudaStreamCreateWithFlags(&stream,
					       cudaStreamNonBlocking)) != 0;
}

int main(int argc, char **argv)
{
	int i;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (begin() != 0)
		return 1;
	for (i = 1; i < argc; i++)
		run(argv[i]);
	ddp_job_destroy(job);
	return failures != 0;
}
