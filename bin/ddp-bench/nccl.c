/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * NCCL as a backend: libddp's job and world communicator, and NCCL's
 * collectives, looked up in the library that libddp has chosen.
 *
 * * libddp's communicator does not block. From NCCL 2.23 on each call of such a
 * communicator starts a thread, which takes longer than a small message. So
 * what is measured goes through a copy that blocks, as in NVIDIA's nccl-tests.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend.h"
#include "job/job.h"
#include "nccl/comm.h"
#include "nccl/driver.h"
#include "nccl/nccl.h"

enum { STREAM_NON_BLOCKING = 1, TIMEOUT_S = 300 };

static int gpu = -1;
static void *stream;		/* of the GPU */
static struct ddp_nccl_calls nccl;
static struct ddp_job *job;
static const struct ddp_nccl *library;
static ncclComm_t world;	/* libddp's */
static ncclComm_t copy;		/* of it, that blocks */
static atomic_uint steps;	/* odd: in NCCL, or waiting for it */
static bool shares_gpu;
static void *token;		/* 4 bytes of the GPU, for barriers */

/* ---- the GPU of this process, through the CUDA driver's library */

static int ended(const char *what, int result, struct ddp_error *error)
{
	return result == DDP_DRIVER_SUCCESS ? 0 :
	       ddp_driver_fail(what, result, error);
}

static int choose(int local_rank, bool share, int *ordinal,
		  struct ddp_error *error)
{
	int count = 0, result;

	if (ddp_driver_load("there is no GPU for --backend nccl (",
			    "); without one, choose --backend mpi", error) != 0)
		return -1;
	result = ddp_driver.init(0);
	if (result == 0)
		result = ddp_driver.count_devices(&count);
	if (ended("there is no GPU for --backend nccl", result, error) < 0)
		return -1;
	if (count == 0)
		return ddp_error_set(error, DDP_ERROR_CUDA, "there is no GPU "
				     "for --backend nccl; without one, choose "
				     "--backend mpi");
	if (count > 1 && local_rank >= count && !share)
		return ddp_error_set(error, DDP_ERROR_CUDA, "local rank %d "
				     "finds only %d GPUs; start one rank a "
				     "GPU, or test with --share-gpu",
				     local_rank, count);
	*ordinal = local_rank % count;
	return 0;
}

int device_count(uint32_t *count, int *version, struct ddp_error *error)
{
	int devices = 0;

	if (ddp_driver_load("there is no NVIDIA driver (", ")", error) != 0 ||
	    ended("cuInit", ddp_driver.init(0), error) < 0 ||
	    ended("cuDeviceGetCount", ddp_driver.count_devices(&devices),
		  error) < 0)
		return -1;
	if (!ddp_driver.get_version || ddp_driver.get_version(version) != 0)
		*version = 0;
	*count = (uint32_t)devices;
	return 0;
}

int device_open(int local_rank, bool share, char *name, size_t size,
		struct ddp_error *error)
{
	char bus_id[32] = "", model[64] = "";
	void *context;
	int ordinal = 0, chosen;

	if (choose(local_rank, share, &ordinal, error) < 0 ||
	    ddp_driver_check_memory(error) < 0 ||
	    ended("cuDeviceGet", ddp_driver.get_device(&chosen, ordinal),
		  error) ||
	    ended("cuDevicePrimaryCtxRetain",
		  ddp_driver.retain(&context, chosen), error))
		return -1;
	gpu = chosen;
	if (ended("cuCtxSetCurrent", ddp_driver.set_current(context), error) ||
	    ended("cuStreamCreate",
		  ddp_driver.create_stream(&stream, STREAM_NON_BLOCKING),
		  error))
		return -1;
	ddp_driver.get_bus_id(bus_id, sizeof(bus_id), chosen);
	ddp_driver.get_name(model, sizeof(model), chosen);
	snprintf(name, size, "%s %s", bus_id, model);
	return 0;
}

void device_close(void)
{
	if (stream)
		ddp_driver.destroy_stream(stream);
	if (gpu >= 0)
		ddp_driver.release(gpu);
	stream = NULL;
	gpu = -1;
}

void *device_reserve(size_t size, struct ddp_error *error)
{
	uintptr_t memory = 0;
	char what[96];

	snprintf(what, sizeof(what), "the buffers take %zu bytes of the GPU; "
		 "choose a smaller --maxbytes", size);
	if (ended(what, ddp_driver.alloc(&memory, size), error) < 0)
		return NULL;
	return (void *)memory;
}

void device_release(void *memory)
{
	ddp_driver.free((uintptr_t)memory);
}

/*
 * cuMemcpyHtoD returns while the last of pageable memory is on its way ("API
 * synchronization behavior" of CUDA's documents), and our stream does not wait for
 * it. To read a byte back does.
 */
int device_put(void *memory, const void *from, size_t size,
	       struct ddp_error *error)
{
	char byte;

	if (ended("cuMemcpyHtoD",
		  ddp_driver.put((uintptr_t)memory, from, size), error) < 0)
		return -1;
	return size ? device_get(&byte, memory, 1, error) : 0;
}

int device_get(void *to, const void *memory, size_t size,
	       struct ddp_error *error)
{
	return ended("cuMemcpyDtoH",
		     ddp_driver.get(to, (uintptr_t)memory, size), error);
}

/* ---- the backend */

static _Noreturn void nccl_abort(const char *sentence)
{
	ddp_abort(job, 1, "%s", sentence);
}

/* A bad argument of a call of libddp, or a peer's, is not a bad option. */
static int refuse(struct ddp_error *error)
{
	if (error->code == DDP_ERROR_ARGUMENT || error->code == DDP_ERROR_PEER)
		error->code = DDP_ERROR_SYSTEM;
	return -1;
}

static int nccl_open(int *rank, int *size, struct ddp_error *error)
{
	job = ddp_job_create(NULL, error);
	if (!job)
		return refuse(error);
	*rank = (int)ddp_job_rank(job);
	*size = (int)ddp_job_size(job);
	return 0;
}

static int look_up(struct ddp_error *error)
{
	library = ddp_nccl_get(error);
	return library ? ddp_nccl_find_calls(library, &nccl, error) : -1;
}

static int nccl_prepare(int local_rank, int local_size, bool share,
			char *device, size_t size, struct ddp_error *error)
{
	(void)local_size;
	shares_gpu = share;
	/* NCCL is looked up later: it reads share_gpu when it is first used. */
	if (device_open(local_rank, share, device, size, error) < 0)
		return -1;
	token = device_reserve(sizeof(float), error);
	return token ? 0 : -1;
}

static int nccl_connect(struct ddp_error *error)
{
	const struct ddp_nccl_options options = {
		.size = sizeof(options), .share_gpu = shares_gpu
	};
	struct ddp_nccl_comms comms;

	if (ddp_nccl_create(job, DDP_GROUP_WORLD, &options, &comms, error) < 0)
		return refuse(error);
	world = comms.world;
	return look_up(error);
}

/* Gather in parts, as a record of libddp's exchange has a largest size. */
static void nccl_gather(const void *mine, void *all, size_t size)
{
	const char *from = mine;
	size_t ranks = ddp_job_size(job);
	size_t most = size < DDP_RECORD_MAX ? size : DDP_RECORD_MAX;
	char *part = malloc(ranks * most);
	struct ddp_error error;

	if (!part)
		nccl_abort("out of memory for the ranks' records");
	for (size_t at = 0; at < size; at += most) {
		size_t n = size - at < most ? size - at : most;

		if (ddp_job_allgather(job, from + at, n, part, &error) < 0)
			nccl_abort(error.text);
		for (size_t rank = 0; rank < ranks; rank++)
			memcpy((char *)all + rank * size + at, part + rank * n,
			       n);
	}
	free(part);
}

static void nccl_put(void *buffer, const void *from, size_t size)
{
	struct ddp_error error;

	if (device_put(buffer, from, size, &error) < 0)
		nccl_abort(error.text);
}

static void nccl_get(void *to, const void *buffer, size_t size)
{
	struct ddp_error error;

	if (device_get(to, buffer, size, &error) < 0)
		nccl_abort(error.text);
}

static _Noreturn void fail(const char *call, int result)
{
	struct ddp_error error;

	ddp_nccl_set_error(&error, library, call, result);
	nccl_abort(error.text);
}

/*
 * Ends all ranks if NCCL keeps the other thread for long: a call that blocks
 * does not return where a peer is gone or cannot be reached.
 */
static void *watch_steps(void *nothing)
{
	unsigned int seen = 0, now;

	for (int seconds = 0; ; seconds++) {
		now = steps;
		if (now != seen || now % 2 == 0)
			seconds = 0;
		seen = now;
		if (seconds > TIMEOUT_S)
			nccl_abort("NCCL has not ended within 300 s");
		sleep(1);
	}
	return nothing;
}

static int nccl_ready(struct ddp_error *error)
{
	ncclConfig_t *config = ddp_init_copy_config(NULL, error);
	pthread_t watcher;
	int result;

	if (!config)
		return -1;
	if (pthread_create(&watcher, NULL, watch_steps, NULL) != 0) {
		free(config);
		return ddp_error_set(error, DDP_ERROR_SYSTEM,
				     "no thread is left to watch NCCL");
	}
	config->blocking = 1;
	result = nccl.split(world, 0, (int)ddp_job_rank(job), &copy, config);
	free(config);
	if (result != DDP_NCCL_SUCCESS && result != DDP_NCCL_IN_PROGRESS)
		return ddp_nccl_set_error(error, library, "ncclCommSplit",
					  result);
	return ddp_await_comm(library, world, "ncclCommSplit",
			      ddp_job_deadline(job, 0), error);
}

static ncclComm_t begin_call(void)
{
	steps++;
	return copy;
}

/* NCCL_COMM_BLOCKING=0 keeps the copy from blocking, too. */
static void finish_call(const char *call, int result)
{
	while (result == DDP_NCCL_IN_PROGRESS) {
		sched_yield();
		result = ddp_await_look(library, copy);
	}
	if (result != DDP_NCCL_SUCCESS)
		fail(call, result);
	steps++;
}

/*
 * Returns 1 if all that was enqueued in the stream is done; 0: not yet; -1 with
 * error set.
 */
static int query_stream(struct ddp_error *error)
{
	int result = ddp_driver.query_stream(stream);

	if (result == DDP_DRIVER_NOT_READY)
		return 0;
	return ended("a collective failed", result, error) == 0 ? 1 : -1;
}

/* Spins, because the naps of ddp_nccl_wait would be part of the times. */
static void nccl_wait(void)
{
	struct ddp_error error;
	int done, state;

	steps++;
	for (unsigned int i = 1; (done = query_stream(&error)) == 0; i++) {
		if (i % 256 != 0)
			continue;
		state = ddp_await_look(library, copy);
		if (state != DDP_NCCL_SUCCESS)
			fail("an NCCL collective", state);
		sched_yield();
	}
	if (done < 0)
		nccl_abort(error.text);
	steps++;
}

static void nccl_barrier(void)
{
	struct ddp_error error;

	if (copy) {
		finish_call("ncclAllReduce",
			    nccl.all_reduce(token, token, 1, FLOAT, SUM,
					    begin_call(), stream));
		nccl_wait();
	} else if (ddp_job_barrier(job, &error) < 0) {
		nccl_abort(error.text);
	}
}

static void nccl_run(const struct call *call)
{
	char *send = call->send, *receive = call->receive;
	size_t own = ddp_job_rank(job) * call->count * type_width(call->type);
	bool in_place = send == receive;
	ncclComm_t comm = begin_call();

	switch (call->collective) {
	case ALL_REDUCE:
		finish_call("ncclAllReduce",
		      nccl.all_reduce(send, receive, call->count, call->type,
				      call->redop, comm, stream));
		return;
	case REDUCE_SCATTER:
		finish_call("ncclReduceScatter",
		      nccl.reduce_scatter(send, receive + (in_place ? own : 0),
					  call->count, call->type, call->redop,
					  comm, stream));
		return;
	case ALL_GATHER:
		finish_call("ncclAllGather",
		      nccl.all_gather(send + (in_place ? own : 0), receive,
				      call->count, call->type, comm, stream));
		return;
	case BROADCAST:
		finish_call("ncclBroadcast",
		      nccl.broadcast(send, receive, call->count, call->type,
				     call->root, comm, stream));
		return;
	}
}

static void nccl_exchange(int peer, const void *send, void *receive,
			  size_t size)
{
	ncclComm_t comm = begin_call();
	int result = nccl.group_start();

	if (result == DDP_NCCL_SUCCESS)
		result = nccl.send(send, size, UINT8, peer, comm, stream);
	if (result == DDP_NCCL_SUCCESS || result == DDP_NCCL_IN_PROGRESS)
		result = nccl.receive(receive, size, UINT8, peer, comm,
				      stream);
	if (result != DDP_NCCL_SUCCESS && result != DDP_NCCL_IN_PROGRESS)
		fail("an NCCL exchange", result);
	finish_call("ncclGroupEnd", nccl.group_end());
}

static void nccl_describe(char *text, size_t size)
{
	int version = library->version;

	snprintf(text, size, "NCCL %d.%d.%d", version / 10000,
		 version / 100 % 100, version % 100);
}

static void nccl_close(void)
{
	steps++;
	ddp_nccl_destroy(copy, 0, NULL);
	steps++;
	ddp_nccl_destroy(world, 0, NULL);
	if (token)
		device_release(token);
	device_close();
	ddp_job_destroy(job);
}

const struct backend backend_nccl = {
	.name = "nccl",
	.count_max = SIZE_MAX,
	.open = nccl_open,
	.prepare = nccl_prepare,
	.connect = nccl_connect,
	.ready = nccl_ready,
	.gather = nccl_gather,
	.barrier = nccl_barrier,
	.reserve = device_reserve,
	.release = device_release,
	.put = nccl_put,
	.get = nccl_get,
	.run = nccl_run,
	.exchange = nccl_exchange,
	.wait = nccl_wait,
	.describe = nccl_describe,
	.close = nccl_close,
	.abort = nccl_abort
};
