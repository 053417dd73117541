/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * exchange ROUNDS BYTES: what an all-gather of libddp costs, compared with PMIx
 * itself. One job does in turn: ddp_job_allgather; and what that needs in any
 * case, a put of a value of the same size, a commit, a fence that collects, and
 * a get of each other rank's value. Rank 0 prints both times of each pair, in
 * microseconds.
 */
#define _GNU_SOURCE
#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ddp.h"

static struct ddp_job *job;
static pmix_proc_t self;
static int bytes;
static char *mine, *all;

static double now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static void must(int ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "exchange: %s has failed\n", what);
	exit(1);
}

/* Two keys in turn, because PMIx keeps and carries every key that was put; and
 * a scope, because PMIx 5 would return an old value without it. */
static double bare(int round)
{
	pmix_value_t value = { .type = PMIX_BYTE_OBJECT }, *got;
	pmix_proc_t proc = self;
	pmix_info_t collect, where;
	pmix_scope_t scope;
	double begin = now_us();
	bool yes = true;
	char key[32];

	snprintf(key, sizeof(key), "bare.%d", round % 2);
	value.data.bo.bytes = mine;
	value.data.bo.size = (size_t)bytes;
	must(PMIx_Put(PMIX_GLOBAL, key, &value) == 0, "PMIx_Put");
	must(PMIx_Commit() == 0, "PMIx_Commit");
	proc.rank = PMIX_RANK_WILDCARD;
	PMIX_INFO_LOAD(&collect, PMIX_COLLECT_DATA, &yes, PMIX_BOOL);
	must(PMIx_Fence(&proc, 1, &collect, 1) == 0, "PMIx_Fence");
	for (proc.rank = 0; proc.rank < ddp_job_size(job); proc.rank++) {
		if (proc.rank == self.rank)
			continue;
		scope = ddp_job_node_of(job, proc.rank) ==
			ddp_job_node_rank(job) ? PMIX_LOCAL : PMIX_REMOTE;
		PMIX_INFO_LOAD(&where, PMIX_DATA_SCOPE, &scope, PMIX_SCOPE);
		must(PMIx_Get(&proc, key, &where, 1, &got) == 0, "PMIx_Get");
		must(got->data.bo.bytes[0] == (char)round, "an old value:");
		memcpy(all + proc.rank * (size_t)bytes, got->data.bo.bytes,
		       got->data.bo.size);
		PMIX_VALUE_RELEASE(got);
	}
	return now_us() - begin;
}

static double ours(void)
{
	double begin = now_us();
	struct ddp_error error;

	if (ddp_job_allgather(job, mine, (size_t)bytes, all, &error)) {
		fprintf(stderr, "exchange: %s\n", error.text);
		exit(1);
	}
	return now_us() - begin;
}

int main(int argc, char **argv)
{
	int round, rounds = argc > 1 ? atoi(argv[1]) : 200;
	double us[2];

	bytes = argc > 2 ? atoi(argv[2]) : 64;
	job = ddp_job_create(NULL, NULL);
	must(job != NULL && PMIx_Init(&self, NULL, 0) == 0, "to begin");
	mine = calloc(1, (size_t)bytes);
	all = calloc(ddp_job_size(job), (size_t)bytes);
	for (round = 0; round < rounds; round++) {
		mine[0] = (char)round;
		if (round % 2 == 0)
			us[0] = ours();
		us[1] = bare(round);
		if (round % 2 == 1)
			us[0] = ours();
		if (self.rank == 0 && round >= rounds / 10)
			printf("%.1f %.1f\n", us[0], us[1]);
	}
	PMIx_Finalize(NULL, 0);
	ddp_job_destroy(job);
	return 0;
}
