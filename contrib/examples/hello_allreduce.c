/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every rank gives 1, every rank gets the number of ranks.
 *   nvcc -o hello hello_allreduce.c $(pkg-config --cflags --libs libddp) -lnccl
 *   srun --mpi=pmix -N2 --ntasks-per-node=8 --gres=gpu:8 ./hello
 */
#include <stdio.h>

#include <ddp_nccl.h>

static struct ddp_job *job;

static void check(int failed, const char *text)
{
	if (failed)
		ddp_abort(job, 1, "%s", text);
}

static void cuda(cudaError_t result)
{
	check(result != cudaSuccess, cudaGetErrorString(result));
}

int main(void)
{
	struct ddp_nccl_comms comms = { NULL, NULL, NULL };
	struct ddp_error error = { DDP_ERROR_NONE, 0, "" };
	ncclResult_t result;
	cudaStream_t stream;
	float *value, one = 1, sum = 0;
	int gpus;

	job = ddp_job_create(NULL, &error);
	check(job == NULL, error.text);
	cuda(cudaGetDeviceCount(&gpus));
	cuda(cudaSetDevice((int)ddp_job_local_rank(job) % gpus));
	cuda(cudaMalloc((void **)&value, sizeof(one)));
	cuda(cudaStreamCreate(&stream));
	check(ddp_nccl_create(job, DDP_GROUP_WORLD, NULL, &comms, &error),
	      error.text);

	cuda(cudaMemcpy(value, &one, sizeof(one), cudaMemcpyHostToDevice));
	result = ncclAllReduce(value, value, 1, ncclFloat, ncclSum,
			       comms.world, stream);
	check(result != ncclSuccess && result != ncclInProgress,
	      ncclGetErrorString(result));
	check(ddp_nccl_wait(comms.world, stream, 0, &error), error.text);
	cuda(cudaMemcpy(&sum, value, sizeof(sum), cudaMemcpyDeviceToHost));
	check(sum != (float)ddp_job_size(job), "the sum is wrong");
	printf("rank %u of %u on %s: the sum is %g\n", ddp_job_rank(job),
	       ddp_job_size(job), ddp_job_host(job, ddp_job_rank(job)), sum);

	check(ddp_nccl_destroy(comms.world, 0, &error), error.text);
	ddp_job_destroy(job);
	return 0;
}
