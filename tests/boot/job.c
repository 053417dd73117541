/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank of a test. Its arguments are done in order, by all ranks; after
 * "@2,5:" by these alone, after "!2,5:" by all but these:
 *
 *   create[=MS] pmix[=MS] single[=MS]  a job, with that timeout
 *   destroy barrier
 *   show              where all ranks are, beside what Slurm says of this one
 *   gather[=SIZE]     and check all bytes
 *   many=N            that often, with sizes from 1 to 4000
 *   threads=N         4 threads with as many barriers each
 *   commit            publish the next record, but do not wait for others
 *   forge=WHAT        take part in the next exchange with a wrong record
 *   abort=CODE        the sentence names $JOB_WORLD [world]
 *   exit=CODE kill sleep=MS mpi_init mpi_finalize
 *   stop_launcher=MS  its process here, for that long
 *   pmix_init pmix_finalize     without libddp
 *
 * What fails says "RANK ARGUMENT: CODE after SECONDS: TEXT", and the next
 * argument follows.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef DDP_TEST_MPI
#include <mpi.h>
#include <pmix.h>
#endif

#include "argument.h"
#include "job/job_struct.h"

static struct ddp_job *job;
static uint32_t asked_rank;	/* before there is a job */
static unsigned int gathered;

static int job_make(enum ddp_launch launch, int timeout_ms,
		    struct ddp_error *error)
{
	struct ddp_job_options options = {
		.size = sizeof(options),
		.launch = launch,
		.timeout_ms = timeout_ms,
	};

	struct ddp_job *made;

	made = ddp_job_create(timeout_ms == 0 && launch == DDP_LAUNCH_AUTO ?
			      NULL : &options, error);
	job = made != NULL ? made : job;
	return made != NULL ? 0 : -1;
}

static const char *variable(const char *name)
{
	const char *value = getenv(name);

	return value != NULL ? value : "-";
}

static int job_show(void)
{
	char line[4096];
	int length;
	uint32_t i;

	length = snprintf(line, sizeof(line), "%u %u %u %u %u %u %s %s %s",
			  ddp_job_rank(job), ddp_job_size(job),
			  ddp_job_local_rank(job), ddp_job_local_size(job),
			  ddp_job_node_rank(job), ddp_job_node_count(job),
			  variable("SLURM_PROCID"), variable("SLURM_LOCALID"),
			  variable("SLURMD_NODENAME"));
	for (i = 0; i < ddp_job_size(job); i++)
		length += snprintf(line + length, sizeof(line) - length,
				   " %s/%u/%u", ddp_job_host(job, i),
				   ddp_job_node_of(job, i),
				   ddp_job_local_rank_of(job, i));
	puts(line);
	return ddp_job_host(job, i) != NULL ||
		ddp_job_node_of(job, i) != UINT32_MAX ||
		ddp_job_local_rank_of(job, i) != UINT32_MAX;
}

static unsigned char byte_of(uint32_t rank, size_t i)
{
	return (unsigned char)(rank * 131 + gathered * 17 + i * 7 + i / 256);
}

/* No two ranks give the same, nor one rank twice in a row. */
static int job_gather(size_t size, struct ddp_error *error)
{
	uint32_t ranks = ddp_job_size(job), rank;
	unsigned char *mine = malloc(size), *all = malloc(ranks * size + 1);
	size_t i;
	int rc;

	gathered++;
	for (i = 0; i < size; i++)
		mine[i] = byte_of(ddp_job_rank(job), i);
	all[ranks * size] = 99;
	rc = ddp_job_allgather(job, mine, size, all, error);
	for (rank = 0; rc == 0 && rank < ranks; rank++)
		for (i = 0; i < size; i++)
			if (all[rank * size + i] != byte_of(rank, i))
				rc = 1;
	if (rc > 0 || all[ranks * size] != 99)
		printf("%u gather %u: wrong bytes\n", asked_rank, gathered);
	free(mine);
	free(all);
	return rc;
}

static int job_many(unsigned int count, struct ddp_error *error)
{
	unsigned int i;
	int rc = 0;

	for (i = 0; i < count && rc == 0; i++)
		rc = job_gather(1 + (i * 1237 + i / 2 * 3511) % 4000, error);
	return rc;
}

static void *thread_run(void *data)
{
	int i, left = *(int *)data, rc = 0;

	for (i = 0; i < left && rc == 0; i++)
		rc = ddp_job_barrier(job, NULL);
	return rc == 0 ? NULL : data;
}

static int job_threads(int count)
{
	pthread_t threads[4];
	void *failed;
	int i, rc = 0;

	for (i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, thread_run, &count);
	for (i = 0; i < 4; i++) {
		pthread_join(threads[i], &failed);
		rc |= failed != NULL;
	}
	return rc;
}

/* What the library would do, up to the fence or with a wrong record. */
static int job_forge(const char *what, struct ddp_error *error)
{
	struct ddp_record_id id = { job->session, job->round + 1, asked_rank };
	unsigned char slot[DDP_RECORD_SLOT];
	size_t sizes[2] = { sizeof(slot), 0 };
	char keys[2][32] = { "", "" };

	gathered++;
	job->round++;
	ddp_record_key(&id, 0, keys[0]);
	if (strcmp(what, "rank") == 0)
		id.rank++;
	else if (strcmp(what, "round") == 0)
		id.round -= 2;
	else if (strcmp(what, "session") == 0)
		id.session++;
	ddp_record_write(slot, &id, "12345678", 8);
	if (strcmp(what, "version") == 0)
		slot[4]++;
	else if (strcmp(what, "damage") == 0)
		slot[DDP_RECORD_HEAD] ^= 1;
	if (ddp_client_publish(job->client, keys, slot, sizes,
			       ddp_job_deadline(job, 0), error))
		return -1;
	return strcmp(what, "commit") == 0 ? 0 :
		ddp_client_fence(job->client, ddp_job_deadline(job, 0), error);
}

static int mpi_do(const char *what)
{
#ifdef DDP_TEST_MPI
	int rank, size, sum;
	pmix_proc_t self;

	if (strcmp(what, "pmix_init") == 0)
		return PMIx_Init(&self, NULL, 0);
	if (strcmp(what, "pmix_finalize") == 0)
		return PMIx_Finalize(NULL, 0);
	if (strcmp(what, "mpi_finalize") == 0)
		return MPI_Finalize();
	MPI_Init(NULL, NULL);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if ((uint32_t)rank != asked_rank || sum != size * (size - 1) / 2)
		printf("%u %s: wrong sum\n", asked_rank, what);
	return 0;
#else
	printf("%u %s: not built with MPI\n", asked_rank, what);
	return 0;
#endif
}

/* A collective in a child of fork, as Python's multiprocessing has it. */
static int child_barrier(struct ddp_error *error)
{
	pid_t child = fork();
	int status = 1;

	if (child == 0)
		_exit(ddp_job_barrier(job, error) == -1 &&
		      strstr(error->text, "child of fork") ? 0 : 1);
	if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
		printf("%u child: it has a job\n", asked_rank);
	return 0;
}

/*
 * A launcher that does not come to its messages for a while. It holds that a
 * rank failed whose end it sees before the rank's last message, so to be gone
 * by then is a fault, even where it sees them the other way round.
 */
static void stop_launcher(int ms)
{
	pid_t launcher = getppid(), rank = getpid();

	kill(launcher, SIGSTOP);
	if (fork() != 0)
		return;
	usleep((useconds_t)ms * 1000);
	if (getppid() != rank)
		dprintf(STDERR_FILENO, "rank %u has left\n", asked_rank);
	kill(launcher, SIGCONT);
	_exit(0);
}

static int act(const char *what, const char *value, struct ddp_error *error)
{
	const char *world = getenv("JOB_WORLD");
	int number = atoi(value);

	if (strcmp(what, "create") == 0)
		return job_make(DDP_LAUNCH_AUTO, number, error);
	if (strcmp(what, "pmix") == 0)
		return job_make(DDP_LAUNCH_PMIX, number, error);
	if (strcmp(what, "single") == 0)
		return job_make(DDP_LAUNCH_SINGLE, number, error);
	if (strcmp(what, "destroy") == 0)
		job = (ddp_job_destroy(job), NULL);
	else if (strcmp(what, "show") == 0)
		return job_show();
	else if (strcmp(what, "gather") == 0)
		return job_gather(number > 0 ? (size_t)number : 8, error);
	else if (strcmp(what, "many") == 0)
		return job_many((unsigned int)number, error);
	else if (strcmp(what, "threads") == 0)
		return job_threads(number);
	else if (strcmp(what, "barrier") == 0)
		return ddp_job_barrier(job, error);
	else if (strcmp(what, "commit") == 0)
		return job_forge("commit", error);
	else if (strcmp(what, "forge") == 0)
		return job_forge(value, error);
	else if (strcmp(what, "child") == 0)
		return child_barrier(error);
	else if (strcmp(what, "sleep") == 0)
		usleep((useconds_t)number * 1000);
	else if (strcmp(what, "stop_launcher") == 0)
		stop_launcher(number);
	else if (strcmp(what, "kill") == 0)
		raise(SIGKILL);
	else if (strcmp(what, "exit") == 0)
		_exit(number);
	else if (strcmp(what, "abort") == 0)
		ddp_abort(job, number, "the %s has\nended\n",
			  world != NULL ? world : "world");
	else
		return mpi_do(what);
	return 0;
}

int main(int argc, char **argv)
{
	struct ddp_error error;
	const char *argument;
	char what[32];
	int64_t begin;
	int i, rc, failed = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	asked_rank = (uint32_t)atoi(getenv("PMIX_RANK") != NULL ?
				    getenv("PMIX_RANK") : "0");
	for (i = 1; i < argc; i++) {
		argument = skip_ranks(argv[i], asked_rank);
		if (argument == NULL)
			continue;
		error = (struct ddp_error){ 0 };
		snprintf(what, sizeof(what), "%.*s",
			 (int)strcspn(argument, "="), argument);
		begin = ddp_clock_ms();
		rc = act(what, argument + strcspn(argument, "=") +
			 (strchr(argument, '=') != NULL), &error);
		if (rc != 0)
			printf("%u %s: %s after %.1f: %s\n", asked_rank,
			       argument, error_codes[error.code],
			       (double)(ddp_clock_ms() - begin) / 1000,
			       error.text);
		failed |= rc;
	}
	return failed != 0;
}
