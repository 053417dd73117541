/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the CUDA device says where it cannot compute: cuda.c, find.c and
 * memory.c over the fake runtime of machine.c. Prints TAP.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "machine.h"
#include "place/report.h"
#include "util/error.h"

/* A good machine but for what is said. */
#pragma GCC diagnostic ignored "-Woverride-init"
#define MACHINE(...) (&(struct machine){ .count = 2, .driver = 13000, \
	.major = 9, .room = 1000, .pinned_room = 1000, __VA_ARGS__ })
#define OR_CPU "or choose --device cpu"

static const struct machine good = {
	.count = 2, .driver = 13000, .major = 9, .room = 1000,
	.pinned_room = 1000
};

static int tests, failures;

static void ok(bool passed, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void ok(bool passed, const char *format, ...)
{
	va_list arguments;

	printf("%sok %d - ", passed ? "" : "not ", ++tests);
	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	putchar('\n');
	failures += !passed;
}

extern const struct device_table ddp_device_table;
static const struct device_table *const table = &ddp_device_table;
static const size_t some[SPACES] = { 64 << 20, 1 << 20, 1 << 20 };

static bool is_clean(void)
{
	return mallocs == 0 && events == 0 && streams == 0;
}

/* Begin anew on a machine, with these variables. */
static void begin(const struct machine *machine, const char *local_rank,
		  const char *local_id, const char *visible)
{
	const char *const names[] = { "LOCAL_RANK", "SLURM_LOCALID",
				      "CUDA_VISIBLE_DEVICES" };
	const char *const values[] = { local_rank, local_id, visible };

	for (int i = 0; i < 3; i++)
		if (values[i])
			setenv(names[i], values[i], 1);
		else
			unsetenv(names[i]);
	now = *machine;
	used = pinned = 0;
	odd_streams = 0;
}

static void refuse(const struct machine *machine, const char *local_rank,
		   const char *visible, const size_t *bytes,
		   const char *wanted)
{
	struct device device = { .table = table };
	struct ddp_error error = { 0 };
	bool right;

	begin(machine, local_rank, NULL, visible);
	right = table->open(&device, DEVICE_BF16, bytes, 1, &error) < 0 &&
		strcmp(error.text, wanted) == 0 && is_clean() && !device.state;
	ok(right, "%s", wanted);
	if (!right)
		printf("# had: %s; %d allocations, %d events, %d streams\n",
		       error.text, mallocs, events, streams);
}

static void test_machines(void)
{
	refuse(MACHINE(.counting = cudaErrorInsufficientDriver, .driver = 0),
	       NULL, NULL, some, "this node has no NVIDIA driver "
	       "(libcuda.so.1), which --device cuda needs: install one, "
	       OR_CPU);
	refuse(MACHINE(.counting = cudaErrorInsufficientDriver,
		       .driver = 12040), NULL, NULL, some,
	       "the NVIDIA driver of this node is too old: it knows CUDA 12.4, "
	       "and ddp_cuda.so was built with CUDA 13.0; update the driver, "
	       OR_CPU);
	refuse(MACHINE(.counting = cudaErrorNoDevice), NULL, NULL, some,
	       "no GPU is visible to this rank: ask Slurm for one "
	       "(--gpus-per-task 1), " OR_CPU);
	refuse(MACHINE(.counting = cudaErrorNoDevice), NULL, "", some,
	       "no GPU is visible to this rank, whose CUDA_VISIBLE_DEVICES is "
	       "'': ask Slurm for one (--gpus-per-task 1), " OR_CPU);
	refuse(MACHINE(.counting = cudaErrorSystemNotReady), NULL, NULL, some,
	       "CUDA does not start on this node: system not yet initialized "
	       "(cudaErrorFake); see nvidia-smi and the node's kernel log, "
	       OR_CPU);
	refuse(MACHINE(.major = 7, .minor = 5), NULL, NULL, some,
	       "GPU 0 (Fake A) has compute capability 7.5, and ddp-train needs "
	       "8.0 (A100) or later: choose another GPU, " OR_CPU);
	refuse(MACHINE(.setting = cudaErrorDevicesUnavailable), NULL, NULL,
	       some, "GPU 0 (Fake A) is taken: another process has it for "
	       "itself alone, or it was lost; see nvidia-smi, or choose "
	       "another GPU");
	refuse(MACHINE(.setting = cudaErrorMemoryAllocation), NULL, NULL,
	       some, "GPU 0 (Fake A) has no memory left even to begin: another "
	       "process fills it; see nvidia-smi");
	refuse(MACHINE(.kernel = cudaErrorNoKernelImageForDevice, .major = 12,
		       .minor = 1), NULL, NULL, some,
	       "ddp_cuda.so has no code for GPU 0 (Fake A), of compute "
	       "capability 12.1: build it with ./configure "
	       "--with-cuda-arch=121, " OR_CPU);
	refuse(MACHINE(.no_products = true), NULL, NULL, some, "no products");
}

/* --share-gpu: five ranks on two GPUs have each a second time, and so on. */
static void test_shared_gpu(void)
{
	static const char *const ranks[] = { "0", "1", "2", "3", "4" };

	for (int i = 0; i < 5; i++) {
		struct device device = { .table = table, .share_gpu = true };

		begin(MACHINE(.count = 2), ranks[i], NULL, NULL);
		ok(table->open(&device, DEVICE_BF16, some, 1, NULL) == 0 &&
		   current == i % 2, "rank %d of 5 that share 2 GPUs", i);
		table->close(&device);
	}
}

/* What the plugin would hand to a rank of this place: its GPU. */
static void place(uint32_t local_rank, uint32_t number)
{
	struct ddp_row row = {
		.node = "n1", .local_rank = local_rank, .device = number,
		.visible = "", .cpus = "", .numa = "", .interface = ""
	};
	char *record = ddp_row_format(&row);

	setenv("DDP_PLACEMENT", record, 1);
	free(record);
}

/* Where LOCAL_RANK and SLURM_LOCALID are those of a process before, or none's */
static void test_place(void)
{
	static const struct {
		const char *what, *each;
		int place, count, placed, number, gpu;
	} rows[] = {
		{ "mpirun in a job of Slurm's", NULL, 2, 2, -1, 0, 1 },
		{ "--gpu-bind=none", "1", 3, 4, -1, 0, 2 },
		{ "--gpus-per-task=2", "2", 3, 2, -1, 0, 0 },
		{ "--gpus-per-task=a100:2", "a100:2", 3, 2, -1, 0, 0 },
		{ "two models of GPU", "a100:1,h100:1", 3, 2, -1, 0, 0 },
		{ "--ddp-gpus=own, two each", NULL, 3, 2, 2, 0, 0 },
		{ "--ddp, the second GPU", NULL, 1, 2, 0, 1, 1 },
		{ "mpirun in a task", NULL, 2, 2, 0, 0, 1 }
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct device device = { .table = table,
					 .place = rows[i].place };

		begin(MACHINE(.count = rows[i].count), "0", "0", NULL);
		if (rows[i].each)
			setenv("SLURM_GPUS_PER_TASK", rows[i].each, 1);
		if (rows[i].placed >= 0)
			place((uint32_t)rows[i].placed,
			      (uint32_t)rows[i].number);
		ok(table->open(&device, DEVICE_FP32, some, 1, NULL) == 0 &&
		   current == rows[i].gpu, "%s: GPU %d", rows[i].what,
		   rows[i].gpu);
		table->close(&device);
		unsetenv("SLURM_GPUS_PER_TASK");
		unsetenv("DDP_PLACEMENT");
	}
}

static void test_choice(void)
{
	static const struct {
		const char *rank, *id;
		int count, gpu;
	} rows[] = {
		{ NULL, NULL, 2, 0 }, { "1", NULL, 2, 1 }, { NULL, "1", 2, 1 },
		{ "0", "1", 2, 0 }, { "3", NULL, 1, 0 }, { "3", "0", 4, 3 }
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct device device = { .table = table };
		char note[64];

		begin(MACHINE(.count = rows[i].count), rows[i].rank,
		      rows[i].id, NULL);
		snprintf(note, sizeof(note), "computing on Fake %c, 1000 MiB",
			 'A' + rows[i].gpu);
		ok(table->open(&device, DEVICE_FP32, some, 1, NULL) == 0 &&
		   current == rows[i].gpu && odd_streams == 0 &&
		   strcmp(table->note(&device), note) == 0,
		   "LOCAL_RANK %s, SLURM_LOCALID %s, %d GPUs: %d",
		   rows[i].rank ? rows[i].rank : "unset",
		   rows[i].id ? rows[i].id : "unset", rows[i].count,
		   rows[i].gpu);
		table->close(&device);
		ok(is_clean() && !device.state, "and all of it is freed");
	}
	test_shared_gpu();
	test_place();
	refuse(&good, "2", NULL, some, "LOCAL_RANK is 2, and this rank sees "
	       "only 2 GPUs, 0 to 1: ask for a GPU per task (--gpus-per-task "
	       "1), or start fewer tasks on a node");
	refuse(&good, "1x", NULL, some, "LOCAL_RANK is '1x', which is no "
	       "number from 0: it chooses this rank's GPU");
	refuse(&good, "-1", NULL, some, "LOCAL_RANK is '-1', which is no "
	       "number from 0: it chooses this rank's GPU");
}

/* Of 1000 MiB: the arena, 16 of partial sums, 32 for products. */
static void test_room(void)
{
	struct device device = { .table = table };
	size_t bytes[SPACES] = { (size_t)952 << 20, 64, 64 };
	struct ddp_error error;

	ok(table->own_bytes(DEVICE_BF16) == 48 << 20, "48 MiB of its own");
	begin(&good, NULL, NULL, NULL);
	ok(table->open(&device, DEVICE_BF16, bytes, 1, NULL) == 0,
	   "all of the GPU's memory may be taken");
	ok(!table->alloc(&device, 1, &error) &&
	   strcmp(error.text, "GPU 0 (Fake A) has 1000 MiB of memory free, and "
		  "this rank needs 1001 MiB: choose a smaller --batch, "
		  "--recompute on, or --zero 1 with several ranks") == 0,
	   "and no byte more: %s",
	   error.text);
	table->close(&device);
	bytes[SPACE_DEVICE] += 1 << 20;
	refuse(&good, NULL, NULL, bytes, "GPU 0 (Fake A) has 1000 MiB of "
	       "memory free, and this rank needs 1001 MiB: choose a smaller "
	       "--batch, --recompute on, or --zero 1 with several ranks");
	refuse(MACHINE(.pinned_room = 5), NULL, NULL,
	       (size_t[SPACES]){ 64, 64, 6 << 20 }, "6 MiB of pinned memory "
	       "for the model cannot be had: some reason; choose a smaller "
	       "--batch or model");
}

/* A failure stays, with the words of the first one. */
static void fail_later(cudaError_t failure, const char *cause)
{
	struct device device = { .table = table };
	struct ddp_error error = { 0 };
	char wanted[512], host[65] = "";

	gethostname(host, sizeof(host) - 1);
	begin(&good, NULL, NULL, NULL);
	table->open(&device, DEVICE_BF16, some, 1, &error);
	ok(table->query(&device, 3) == 1 && table->check(&device, NULL) == 0,
	   "a GPU that works");
	now.later = cudaErrorNotReady;
	ok(table->query(&device, 3) == 0, "an event that has not come");
	now.later = failure;
	snprintf(wanted, sizeof(wanted), "GPU 0 (Fake A) of %s failed in or "
		 "before the work of a step: %s (cudaErrorFake); look for Xid "
		 "in the node's kernel log, and resume from the last "
		 "checkpoint", host, cause);
	ok(table->query(&device, 3) == -1 &&
	   table->check(&device, &error) == -1 &&
	   strcmp(error.text, wanted) == 0 && error.native == (int)failure,
	   "%s", error.text);
	now.later = cudaSuccess;
	ok(table->query(&device, 3) == -1 && table->check(&device, NULL) == -1,
	   "and it stays one");
	table->close(&device);
}

static void test_failures(void)
{
	fail_later(cudaErrorECCUncorrectable, "its memory lost a value");
	fail_later(cudaErrorLaunchFailure, "a kernel was stopped, or the GPU "
		   "has fallen off the bus");
	fail_later(cudaErrorUnknown, "the GPU may have fallen off the bus");
	fail_later(cudaErrorAssert, "some reason");
}

static void *copy_elsewhere(void *device)
{
	char byte = 1;

	table->copy(device, QUEUE_COMPUTE,
		    ((struct device *)device)->arena[SPACE_DEVICE], &byte, 1);
	return current == 1 ? device : NULL;
}

/* A thread of its own begins with GPU 0. */
static void test_thread(void)
{
	struct device device = { .table = table };
	pthread_t thread;
	void *result = NULL;

	begin(&good, "1", NULL, NULL);
	table->open(&device, DEVICE_BF16, some, 1, NULL);
	pthread_create(&thread, NULL, copy_elsewhere, &device);
	pthread_join(thread, &result);
	ok(result != NULL, "another thread uses the rank's GPU");
	table->close(&device);
}

static void test_shapes(void)
{
	struct device_shape shape = { 10, 10, 1, 257, 7, DEVICE_BF16, 0 };
	struct ddp_error error;

	ok(table->check_shape(&shape, &error) < 0 &&
	   strcmp(error.text, "--heads 1 of --width 257 makes heads of 257, "
		  "and the GPU's attention has at most 256: choose more "
		  "heads") == 0, "%s", error.text);
	shape.width = 256;
	ok(table->check_shape(&shape, NULL) == 0, "heads of 256");
	shape.heads = shape.width = 1 << 20;
	ok(table->check_shape(&shape, NULL) == 0, "a width of 2^20");
	shape.width++;
	ok(table->check_shape(&shape, &error) < 0 &&
	   strcmp(error.text, "--width 1048577 is more than the GPU's kernels "
		  "compute: at most 1048576") == 0, "%s", error.text);
	/* Attention: 10 rows of each of 2^20 heads, 8 bytes each */
	ok(table->work_bytes(&shape) == 80 << 20, "work for the most of any");
}

/* This program is linked with no_dnn.c. */
static void test_cudnn(void)
{
	struct device device = {
		.table = table, .shape.attention = ATTENTION_CUDNN
	};
	struct ddp_error error = { 0 };

	begin(&good, NULL, NULL, NULL);
	ok(table->open(&device, DEVICE_BF16, some, 1, &error) < 0 &&
	   strcmp(error.text, "--attention cudnn: this ddp_cuda.so was built "
		  "without cuDNN's headers; build it with ./configure "
		  "--with-cudnn, or choose --attention own") == 0 &&
	   is_clean() && !device.state, "%s", error.text);
}

int main(void)
{
	ok(table->abi == DEVICE_ABI && strcmp(table->name, "cuda") == 0,
	   "the table");
	test_machines();
	test_choice();
	test_room();
	test_failures();
	test_thread();
	test_shapes();
	test_cudnn();
	ok(is_clean(), "nothing is left");
	printf("1..%d\n", tests);
	return failures > 0;
}
