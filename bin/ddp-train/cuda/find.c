/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the GPU that a rank computes on, or says in plain words why none. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cuda/state.h"
#include "place/report.h"
#include "util/error.h"

#define OR_CPU "or choose --device cpu"

enum { OLDEST_MAJOR = 8 };	/* mma.sync of bf16, cp.async */

/* The runtime cannot start: for want of a driver, or of a newer one. */
static int refuse_driver(struct ddp_error *error)
{
	int driver = 0, runtime = 0;

	cudaDriverGetVersion(&driver);
	cudaRuntimeGetVersion(&runtime);
	if (driver == 0)
		return ddp_error_set(error, DDP_ERROR_CUDA, "this node has no "
				     "NVIDIA driver (libcuda.so.1), which "
				     "--device cuda needs: install one, "
				     OR_CPU);
	return ddp_error_set(error, DDP_ERROR_CUDA, "the NVIDIA driver of this "
			     "node is too old: it knows CUDA %d.%d, and "
			     "ddp_cuda.so was built with CUDA %d.%d; update "
			     "the driver, " OR_CPU, driver / 1000,
			     driver % 1000 / 10, runtime / 1000,
			     runtime % 1000 / 10);
}

static int refuse_no_gpu(struct ddp_error *error)
{
	const char *visible = getenv("CUDA_VISIBLE_DEVICES");

	return ddp_error_set(error, DDP_ERROR_CUDA, "no GPU is visible to this "
			     "rank%s%s%s: ask Slurm for one (--gpus-per-task "
			     "1), " OR_CPU,
			     visible ? ", whose CUDA_VISIBLE_DEVICES is '" : "",
			     visible ? visible : "", visible ? "'" : "");
}

static int count_gpus(int *count, struct ddp_error *error)
{
	cudaError_t failure = cudaGetDeviceCount(count);

	if (failure == cudaSuccess && *count > 0)
		return 0;
	if (failure == cudaErrorInsufficientDriver)
		refuse_driver(error);
	else if (failure == cudaErrorNoDevice || failure == cudaSuccess)
		refuse_no_gpu(error);
	else
		ddp_error_set(error, DDP_ERROR_CUDA, "CUDA does not start on "
			      "this node: %s (%s); see nvidia-smi and the "
			      "node's kernel log, " OR_CPU,
			      cudaGetErrorString(failure),
			      cudaGetErrorName(failure));
	return ddp_error_set_native(error, (int)failure);
}

static int refuse_number(const char *what, long number, int count,
			 struct ddp_error *error)
{
	if (!what)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "srun --ddp "
				     "chose GPU %ld for this rank, which sees "
				     "only %d: leave CUDA_VISIBLE_DEVICES as "
				     "it has set it", number, count);
	return ddp_error_set(error, DDP_ERROR_ARGUMENT, "%s is %ld, and this "
			     "rank sees only %d GPUs, 0 to %d: ask for a GPU "
			     "per task (--gpus-per-task 1), or start fewer "
			     "tasks on a node", what, number, count, count - 1);
}

/*
 * Returns the GPU that the plugin chose for this rank. Returns -1 if it chose
 * none, or if the record is for a process that has started this one.
 */
static long read_placement(int place)
{
	const char *record = getenv(DDP_PLACEMENT);
	struct ddp_row row;
	long number = -1;

	if (!record || ddp_row_parse(record, &row, NULL) < 0)
		return -1;
	if (row.device != DDP_GPU_NONE &&
	    (place == 0 || (uint32_t)place == row.local_rank + 1))
		number = row.device;
	ddp_row_clear(&row);
	return number;
}

/*
 * Returns true if Slurm shows this rank its own GPUs alone: no more than each
 * rank has, by a list such as "2" or "a100:1,h100:1".
 */
static bool sees_own_alone(int count)
{
	const char *each = getenv("SLURM_GPUS_PER_TASK");
	int own = 0;

	while (each && *each) {
		const char *number = each + strcspn(each, ":,");

		own += atoi(*number == ':' ? number + 1 : each);
		each += strcspn(each, ",");
		each += *each == ',';
	}
	return count <= own;
}

/* Reads this rank's place on the node from the variable *what; 0 if unset. */
static int read_place(const char **what, long *number, struct ddp_error *error)
{
	const char *value;
	char *end;

	*what = getenv("LOCAL_RANK") ? "LOCAL_RANK" : "SLURM_LOCALID";
	value = getenv(*what);
	*number = 0;
	if (!value)
		return 0;
	errno = 0;
	*number = strtol(value, &end, 10);
	if (end == value || *end || errno || *number < 0)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "%s is '%s', "
				     "which is no number from 0: it chooses "
				     "this rank's GPU", *what, value);
	return 0;
}

/*
 * Chooses one of several GPUs: the one that the plugin chose, else the first if
 * the rank sees its own alone, else that of its place on the node. If ranks may
 * share, those beyond the last GPU begin again with the first.
 */
static int choose_gpu(const struct device *device, int count, int *gpu,
		      struct ddp_error *error)
{
	const char *what = NULL;	/* the plugin */
	long number;

	*gpu = 0;
	if (count == 1)
		return 0;
	number = read_placement(device->place);
	if (number < 0 && sees_own_alone(count))
		return 0;
	if (number < 0 && device->place > 0) {
		what = "this rank's place on its node";
		number = device->place - 1;
	}
	if (number < 0 && read_place(&what, &number, error) < 0)
		return -1;
	if (number >= count && !device->share_gpu)
		return refuse_number(what, number, count, error);
	*gpu = (int)(number % count);
	return 0;
}

static int refuse_gpu(const struct cuda *cuda, cudaError_t failure,
		      struct ddp_error *error)
{
	if (failure == cudaErrorDevicesUnavailable)
		ddp_error_set(error, DDP_ERROR_CUDA, "%s is taken: another "
			      "process has it for itself alone, or it was "
			      "lost; see nvidia-smi, or choose another GPU",
			      cuda->name);
	else if (failure == cudaErrorMemoryAllocation)
		ddp_error_set(error, DDP_ERROR_CUDA, "%s has no memory left "
			      "even to begin: another process fills it; see "
			      "nvidia-smi", cuda->name);
	else
		ddp_error_set(error, DDP_ERROR_CUDA, "%s does not start: %s "
			      "(%s); see nvidia-smi and the node's kernel log",
			      cuda->name, cudaGetErrorString(failure),
			      cudaGetErrorName(failure));
	return ddp_error_set_native(error, (int)failure);
}

int cuda_find_gpu(struct device *device, struct ddp_error *error)
{
	struct cuda *cuda = cuda_state(device);
	struct cudaDeviceProp properties;
	cudaError_t failure;
	int count;

	if (count_gpus(&count, error) < 0 ||
	    choose_gpu(device, count, &cuda->gpu, error) < 0)
		return -1;
	snprintf(cuda->name, sizeof(cuda->name), "GPU %d", cuda->gpu);
	failure = cudaGetDeviceProperties(&properties, cuda->gpu);
	if (failure != cudaSuccess)
		return refuse_gpu(cuda, failure, error);
	snprintf(cuda->name, sizeof(cuda->name), "GPU %d (%s)", cuda->gpu,
		 properties.name);
	snprintf(cuda->note, sizeof(cuda->note), "computing on %s, %zu MiB",
		 properties.name, properties.totalGlobalMem >> 20);
	if (properties.major < OLDEST_MAJOR)
		return ddp_error_set(error, DDP_ERROR_CUDA, "%s has compute "
				     "capability %d.%d, and ddp-train needs "
				     "%d.0 (A100) or later: choose another "
				     "GPU, " OR_CPU, cuda->name,
				     properties.major, properties.minor,
				     OLDEST_MAJOR);
	failure = cudaSetDevice(cuda->gpu);
	return failure == cudaSuccess ? 0 : refuse_gpu(cuda, failure, error);
}

int cuda_miss_code(const struct cuda *cuda, struct ddp_error *error)
{
	int major = 0, minor = 0;

	cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor,
			       cuda->gpu);
	cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor,
			       cuda->gpu);
	ddp_error_set(error, DDP_ERROR_CUDA, "ddp_cuda.so has no code for %s, "
		      "of compute capability %d.%d: build it with "
		      "./configure --with-cuda-arch=%d%d, " OR_CPU,
		      cuda->name, major, minor, major, minor);
	return ddp_error_set_native(error, (int)cuda->error);
}

/* Returns the cause of an error for a user, or else CUDA's own words. */
static const char *find_cause(cudaError_t failure)
{
	static const struct {
		cudaError_t failure;
		const char *cause;
	} causes[] = {
		{ cudaErrorECCUncorrectable, "its memory lost a value" },
		{ cudaErrorNvlinkUncorrectable, "a link to another GPU lost "
						"data" },
		{ cudaErrorHardwareStackError, "its hardware failed" },
		{ cudaErrorLaunchFailure, "a kernel was stopped, or the GPU "
					  "has fallen off the bus" },
		{ cudaErrorDevicesUnavailable, "the GPU is no longer there" },
		{ cudaErrorNoDevice, "the GPU is no longer there" },
		{ cudaErrorUnknown, "the GPU may have fallen off the bus" },
		{ cudaErrorIllegalAddress, "a kernel used memory that is not "
					   "its own" }
	};

	for (size_t i = 0; i < sizeof(causes) / sizeof(*causes); i++)
		if (causes[i].failure == failure)
			return causes[i].cause;
	return cudaGetErrorString(failure);
}

int cuda_explain(const struct cuda *cuda, struct ddp_error *error)
{
	char host[65] = "this node";

	gethostname(host, sizeof(host) - 1);
	/* A library's refusal: the GPU is well. */
	if (cuda->error == cudaErrorNotSupported)
		return ddp_error_set(error, DDP_ERROR_CUDA, "%s of %s does not "
				     "compute %s of this shape: choose another "
				     "--batch, --width or --dtype, or "
				     "--attention own", cuda->name, host,
				     cuda->what);
	ddp_error_set(error, DDP_ERROR_CUDA, "%s of %s failed in or before %s: "
		      "%s (%s); look for Xid in the node's kernel log, and "
		      "resume from the last checkpoint", cuda->name, host,
		      cuda->what, find_cause(cuda->error),
		      cudaGetErrorName(cuda->error));
	return ddp_error_set_native(error, (int)cuda->error);
}
