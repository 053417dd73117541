/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * exchange NCCL [forget|host|short]: three processes exchange through the fake
 * NCCL in streams of the emulated CUDA. With "forget" an event is left out,
 * with "host" memory is the host's, with "short" a peer sends less than is
 * taken.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "gpu.h"

enum { RANKS = 3, N = 300000, FP32 = 7, BF16 = 9, IN_PROGRESS = 7 };

struct unique { char internal[128]; };
struct config {				/* ncclConfig_t */
	size_t size;
	unsigned magic, version;
	int blocking, cga, least, most;
};

static int (*get_id)(unique *);
static int (*init)(void **, int, unique, int, config *);
static int (*get_error)(void *, int *);
static int (*all_reduce)(const void *, void *, size_t, int, int, void *,
			 void *);
static int (*reduce_scatter)(const void *, void *, size_t, int, int, void *,
			     void *);
static int (*all_gather)(const void *, void *, size_t, int, void *, void *);
static int (*broadcast)(const void *, void *, size_t, int, int, void *,
			void *);
static int (*reduce)(const void *, void *, size_t, int, int, int, void *,
		     void *);
static int (*send)(const void *, size_t, int, int, void *, void *);
static int (*receive)(void *, size_t, int, int, void *, void *);
static int (*group_start)(void), (*group_end)(void);
static int (*finalize)(void *), (*destroy)(void *);

static int rank;
static cudaStream_t compute, comm_stream;
static void *comm;
static cudaEvent_t ready, finished;
static const char *mode = "";
static int wrong;

static void expect(bool ok, const char *what)
{
	if (!ok)
		fprintf(stderr, "exchange: rank %d: %s\n", rank, what);
	wrong |= !ok;
}

template <class F> static void look_up(void *library, F *f, const char *name)
{
	*f = (F)dlsym(library, name);
	if (!*f)
		fprintf(stderr, "exchange: no %s\n", name);
}

static void load(const char *path)
{
	void *library = dlopen(path, RTLD_NOW);

	if (!library) {
		fprintf(stderr, "exchange: %s\n", dlerror());
		exit(2);
	}
	look_up(library, &get_id, "ncclGetUniqueId");
	look_up(library, &init, "ncclCommInitRankConfig");
	look_up(library, &get_error, "ncclCommGetAsyncError");
	look_up(library, &all_reduce, "ncclAllReduce");
	look_up(library, &reduce_scatter, "ncclReduceScatter");
	look_up(library, &all_gather, "ncclAllGather");
	look_up(library, &broadcast, "ncclBroadcast");
	look_up(library, &reduce, "ncclReduce");
	look_up(library, &send, "ncclSend");
	look_up(library, &receive, "ncclRecv");
	look_up(library, &group_start, "ncclGroupStart");
	look_up(library, &group_end, "ncclGroupEnd");
	look_up(library, &finalize, "ncclCommFinalize");
	look_up(library, &destroy, "ncclCommDestroy");
}

static int await(void)
{
	int state;

	do {
		usleep(100);
		get_error(comm, &state);
	} while (state == IN_PROGRESS);
	return state;
}

template <class T> __global__ void fill(T *x, float base)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < N)
		x[i] = narrow<T>(base + (float)(i % 5));
}

/* What streams have between them: compute fills, comm_stream exchanges. */
template <class T> static void fill_with(T *x, float base)
{
	launch(compute, (N + 255) / 256, 256, 0, fill<T>, x, base);
	cudaEventRecord(ready, compute);
	if (strcmp(mode, "forget") != 0)
		cudaStreamWaitEvent(comm_stream, ready, 0);
}

template <class T> static float *fetch(const T *x)
{
	static T got[N];
	static float values[N];

	cudaEventRecord(finished, comm_stream);
	cudaStreamWaitEvent(compute, finished, 0);
	cudaMemcpyAsync(got, x, sizeof(got), cudaMemcpyDeviceToHost, compute);
	for (int i = 0; i < N; i++)
		values[i] = widen(got[i]);
	return values;
}

template <class T> static void test_all(T *x, T *y, int type)
{
	const int part = N / RANKS;
	float *got;

	fill_with(x, (float)rank);
	expect(all_reduce(x, y, N, type, 0, comm, comm_stream) == IN_PROGRESS,
	       "a call is in progress");
	await();
	got = fetch(y);
	for (int i = 0; i < N; i++)
		expect(got[i] == 3 + 3 * (float)(i % 5), "all-reduce");
	fill_with(x, (float)rank);
	reduce_scatter(x, x + rank * part, part, type, 0, comm, comm_stream);
	all_gather(x + rank * part, x, part, type, comm, comm_stream);
	got = fetch(x);
	for (int i = 0; i < N; i++)
		expect(got[i] == 3 + 3 * (float)(i % 5),
		       "reduce-scatter and all-gather");
	fill_with(x, (float)rank);
	reduce(x, x, N, type, 0, 2, comm, comm_stream);
	broadcast(x, x, N, type, 2, comm, comm_stream);
	got = fetch(x);
	for (int i = 0; i < N; i++)
		expect(got[i] == 3 + 3 * (float)(i % 5), "reduce, broadcast");
}

/* Each sends every other one its part; so each has part `rank` of all. */
static void test_pairs(float *x, float *y)
{
	const int part = N / RANKS;
	float *got;

	fill_with(x, (float)(10 * rank));
	group_start();
	for (int peer = 0; peer < RANKS; peer++) {
		send(x + peer * part, part - (strcmp(mode, "short") == 0),
		     FP32, peer, comm, comm_stream);
		receive(y + peer * part, part, FP32, peer, comm, comm_stream);
	}
	expect(group_end() == IN_PROGRESS, "a group is in progress");
	got = fetch(y);
	for (int i = 0; i < N; i++)
		expect(got[i] == 10 * (float)(i / part) +
		       (float)((i % part + rank * part) % 5),
		       "send and receive");
}

static int run(unique id)
{
	config settings = { sizeof(config), 0xcafebeef, 22809, 0, 0, 0, 0 };
	float *x, *y;
	__nv_bfloat16 *hx, *hy;
	static float of_host[N];

	cudaStreamCreateWithFlags(&compute, cudaStreamNonBlocking);
	cudaStreamCreateWithFlags(&comm_stream, cudaStreamNonBlocking);
	cudaEventCreate(&ready);
	cudaEventCreate(&finished);
	cudaMalloc(&x, N * 4);
	cudaMalloc(&y, N * 4);
	cudaMalloc(&hx, N * 2);
	cudaMalloc(&hy, N * 2);
	init(&comm, RANKS, id, rank, &settings);
	if (await() != 0)
		return 3;
	if (strcmp(mode, "host") == 0)
		expect(all_reduce(of_host, y, N, FP32, 0, comm, comm_stream) ==
		       IN_PROGRESS, "the host's memory is refused");
	else if (strcmp(mode, "short") != 0) {
		test_all(x, y, FP32);
		test_all(hx, hy, BF16);
	}
	if (strcmp(mode, "host") != 0)
		test_pairs(x, y);
	cudaDeviceSynchronize();
	if (await() != 0)
		return 4;
	finalize(comm);
	await();
	destroy(comm);
	return wrong;
}

int main(int argc, char **argv)
{
	unique *id = (unique *)mmap(NULL, sizeof(*id), PROT_READ | PROT_WRITE,
				    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int status, worst = 0;
	int made[2];

	if (argc < 2 || pipe(made) != 0)
		return 2;
	load(argv[1]);
	mode = argc > 2 ? argv[2] : "";
	for (rank = 0; rank < RANKS; rank++) {
		if (fork() == 0) {
			char token = 0;

			if (rank == 0)
				get_id(id);
			if (rank == 0 ? write(made[1], "..", 2) != 2 :
			    read(made[0], &token, 1) != 1)
				exit(2);
			exit(run(*id));
		}
	}
	while (wait(&status) > 0) {
		status = WIFEXITED(status) ? WEXITSTATUS(status) : 98;
		worst = status > worst ? status : worst;
	}
	return worst;
}
