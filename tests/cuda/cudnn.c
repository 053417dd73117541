/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the real cuDNN says of attention's graphs, without a GPU: it is asked
 * for plans for the properties of some GPUs. Prints TAP. The library is found
 * as ddp-train finds it.
 */
#include <stdio.h>
#include <stdlib.h>

#include "cuda/dnn.h"
#include "util/error.h"

static const struct gpu {
	const char *name;
	int capability, multiprocessors, shared;	/* bytes of a block */
} gpus[] = {
	{ "A100", 800, 108, 166912 }, { "L40S", 890, 142, 101376 },
	{ "H100", 900, 132, 232448 }, { "B200", 1000, 148, 232448 }
};

/* 124M, and what has no whole tile. */
static const struct {
	int sequences, context, heads, width;
} shapes[] = { { 32, 1024, 12, 768 }, { 3, 65, 3, 72 } };

/* As cuDNN 9.8 and later write and read them. */
static cudnnBackendDescriptor_t describe(const struct dnn_library *library,
					 const struct gpu *gpu)
{
	cudnnBackendDescriptor_t part = NULL;
	char text[1024];
	int length = snprintf(text, sizeof(text), "{\"maxGridSize\":["
		"2147483647,65535,65535],\"maxBlockSize\":[1024,1024,64],"
		"\"regsPerBlock\":65536,\"multiProcessorCount\":%d,"
		"\"warpSize\":32,\"maxSharedMemoryPerBlock\":49152,"
		"\"maxSharedMemoryPerBlockOptin\":%d,"
		"\"reservedSharedMemoryPerBlock\":1024,"
		"\"maxRegistersPerSM\":65536,\"maxCtasPerSM\":24,"
		"\"maxThreadsPerBlock\":1024,\"maxThreadsPerSM\":1536,"
		"\"pciDeviceId\":0,\"isTccDriver\":0,"
		"\"supportCoopLaunch\":1,\"totalGlobalMem\":40000000000,"
		"\"smClockRateKHz\":1400000,\"memClockRateKHz\":1600000,"
		"\"l2CacheSize\":50000000,\"cudaDeviceId\":0,"
		"\"deviceVer\":%d,\"driverVer\":13000,\"deviceName\":\"%s\"}",
		gpu->multiprocessors, gpu->shared, gpu->capability, gpu->name);

	if (library->cudnnBackendCreateDescriptor(
		CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, &part) ||
	    library->cudnnBackendSetAttribute(
		part, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION,
		CUDNN_TYPE_CHAR, length, text) ||
	    library->cudnnBackendFinalize(part)) {
		printf("Bail out! a GPU's properties are not understood\n");
		exit(1);
	}
	return part;
}

/* Returns whether there is a plan that does with the memory that we plan. */
static bool ask(const struct dnn_target *target, const struct dnn_key *key,
		const char *gpu, int number)
{
	cudnnStatus_t status;
	struct dnn_plan *plan = dnn_create_plan(target, key, &status);
	size_t room = sizes_count_dnn_workspace(key->sequences, key->context,
					  key->heads);
	bool good = plan && plan->workspace <= room;

	if (!plan)
		printf("# %s\n", target->library->cudnnGetErrorString(status));
	else if (!good)
		printf("# %zu bytes, and %zu are planned\n", plan->workspace,
		       room);
	printf("%sok %d - %s: %d sequences of %d, %d heads of %d, in %s%s\n",
	       good ? "" : "not ", number, gpu, key->sequences, key->context,
	       key->heads, key->width / key->heads,
	       key->type == DEVICE_BF16 ? "bf16" : "fp16",
	       key->backward ? ", backward" : "");
	if (plan)
		dnn_destroy_plan(target, plan);
	return good;
}

int main(void)
{
	enum { SHAPES = sizeof(shapes) / sizeof(*shapes) };
	struct dnn_library library;
	struct ddp_error error;
	int number = 0, bad = 0;

	if (dnn_load(&library, &error) < 0) {
		printf("Bail out! %s\n", error.text);
		return 1;
	}
	printf("# %s\n", library.name);
	for (size_t i = 0; i < sizeof(gpus) / sizeof(*gpus); i++) {
		struct dnn_target target = {
			&library, NULL, describe(&library, &gpus[i])
		};

		for (int j = 0; j < 4 * SHAPES; j++) {
			const struct dnn_key key = {
				shapes[j / 4].sequences, shapes[j / 4].context,
				shapes[j / 4].heads, shapes[j / 4].width,
				j % 2 ? DEVICE_FP16 : DEVICE_BF16, j / 2 % 2
			};

			bad += !ask(&target, &key, gpus[i].name, ++number);
		}
		library.cudnnBackendDestroyDescriptor(target.gpu);
	}
	printf("1..%d\n", number);
	return bad > 0;
}
