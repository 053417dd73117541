/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every rank tells its host to all, and rank 0 prints who is where. Needs no
 * GPU.
 *   cc -o hello_hosts hello_hosts.c $(pkg-config --cflags --libs libddp)
 *   srun --mpi=pmix -N2 --ntasks-per-node=2 ./hello_hosts
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <ddp.h>

struct greeting {
	char host[64];
	int pid;
};

int main(void)
{
	struct ddp_error error;
	struct ddp_job *job = ddp_job_create(NULL, &error);
	struct greeting mine = { "", (int)getpid() }, *all;
	unsigned int rank, size;

	if (job == NULL)
		ddp_abort(NULL, 1, "%s", error.text);
	size = ddp_job_size(job);
	all = calloc(size, sizeof(*all));
	gethostname(mine.host, sizeof(mine.host) - 1);
	if (all == NULL)
		ddp_abort(job, 1, "no memory");
	if (ddp_job_allgather(job, &mine, sizeof(mine), all, &error) != 0)
		ddp_abort(job, 1, "%s", error.text);
	for (rank = 0; rank < size && ddp_job_rank(job) == 0; rank++)
		printf("rank %u of %u: node %u of %u, local rank %u, process "
		       "%d on %s\n", rank, size, ddp_job_node_of(job, rank),
		       ddp_job_node_count(job),
		       ddp_job_local_rank_of(job, rank), all[rank].pid,
		       all[rank].host);
	free(all);
	ddp_job_destroy(job);
	return 0;
}
