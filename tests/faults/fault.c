/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Breaks a rank of a C program that does not know it, as an LD_PRELOAD library.
 * FAULT is "WHEN HOW RANK FILE". WHEN, in ddp-train's order:
 *
 *   start       before anything else
 *   join        in ddp_job_create, where no rank waits for another
 *   meet        in libddp's first exchange, for which the others wait
 *   init        in MPI_Init, while ranks wait for each other
 *   after       MPI_Init has returned
 *   collective  the first of MPI's that carries data
 *   step        the file that FAULT_LOG names has three lines or more
 *
 * Without FAULT_LOG the program is libddp's test rank, which has no MPI: after
 * means that it has its job, and step is its 20th exchange. HOW: see act. FILE
 * gets the pid.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <mpi.h>
#include <pmix.h>

#define NEXT(name) ((__typeof__(&(name)))dlsym(RTLD_NEXT, #name))

enum { PIECE = 1 << 20, LITTLE = 64 << 20, STEP_FENCE = 20 };

static char when[16], how[16], file[512];
static char *log_file;
static bool mine, inside;	/* inside MPI_Init */
static atomic_bool joined;

/* Under a name that nobody reads before the line is complete. */
static void note(void)
{
	char part[600], line[16];
	int fd, length;

	snprintf(part, sizeof(part), "%s.part", file);
	fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	length = snprintf(line, sizeof(line), "%d\n", (int)getpid());
	if (write(fd, line, (size_t)length) == length)
		rename(part, file);
	close(fd);
}

/* Allocate and write until there is no more, or the kernel ends us. */
static void take_memory(void)
{
	char *piece;

	while ((piece = malloc(PIECE)) != NULL)
		memset(piece, 1, PIECE);
}

static void act(void)
{
	static const struct { const char *name; int number; } signals[] = {
		{ "KILL", SIGKILL }, { "SEGV", SIGSEGV }, { "TERM", SIGTERM },
		{ "STOP", SIGSTOP },
	};
	struct rlimit limit = { LITTLE, LITTLE };
	size_t i;

	note();
	for (i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		if (strcmp(how, signals[i].name) == 0)
			kill(getpid(), signals[i].number);
	if (strncmp(how, "exit", 4) == 0)
		_exit(atoi(how + 4));
	if (strcmp(how, "limit") == 0)
		setrlimit(RLIMIT_AS, &limit);
	if (strcmp(how, "limit") == 0 || strcmp(how, "oom") == 0) {
		take_memory();
		abort();
	}
}

static void reach(const char *point)
{
	if (mine && strcmp(when, point) == 0)
		act();
}

static bool has_steps(const char *log)
{
	char text[4096];
	ssize_t length, i;
	int lines = 0, fd = open(log, O_RDONLY | O_CLOEXEC);

	length = read(fd, text, sizeof(text));
	for (i = 0; i < length; i++)
		lines += text[i] == '\n';
	close(fd);
	return lines >= 3;
}

static void *await_steps(void *log)
{
	const struct timespec moment = { 0, 10000000 };

	while (!has_steps(log))
		nanosleep(&moment, NULL);
	act();
	return NULL;
}

__attribute__((constructor)) static void begin(void)
{
	const char *fault = getenv("FAULT"), *rank = getenv("SLURM_PROCID");
	pthread_t thread;
	int number;

	if (!fault || !rank || sscanf(fault, "%15s %15s %d %511s", when, how,
				      &number, file) != 4)
		return;
	mine = number == atoi(rank);
	log_file = getenv("FAULT_LOG");
	reach("start");
	if (mine && log_file && strcmp(when, "step") == 0)
		pthread_create(&thread, NULL, await_steps, log_file);
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
	int rc;

	inside = true;
	rc = NEXT(MPI_Init_thread)(argc, argv, required, provided);
	inside = false;
	reach("after");
	return rc;
}

pmix_status_t PMIx_Init(pmix_proc_t *proc, pmix_info_t info[], size_t ninfo)
{
	pmix_status_t rc = NEXT(PMIx_Init)(proc, info, ninfo);

	if (!inside) {
		reach("join");
		atomic_store(&joined, true);
	}
	return rc;
}

pmix_status_t PMIx_Fence_nb(const pmix_proc_t procs[], size_t nprocs,
			    const pmix_info_t info[], size_t ninfo,
			    pmix_op_cbfunc_t callback, void *data)
{
	static int fences;
	pmix_status_t rc;

	if (!inside)
		reach("meet");
	rc = NEXT(PMIx_Fence_nb)(procs, nprocs, info, ninfo, callback, data);
	if (inside)
		reach("init");
	if (++fences == STEP_FENCE && !log_file)
		reach("step");
	return rc;
}

/* The test's rank sleeps once it has its job. */
int usleep(useconds_t time_us)
{
	if (!log_file && atomic_load(&joined))
		reach("after");
	return NEXT(usleep)(time_us);
}

int MPI_Bcast(void *buffer, int count, MPI_Datatype type, int root,
	      MPI_Comm comm)
{
	reach("collective");
	return NEXT(MPI_Bcast)(buffer, count, type, root, comm);
}

int MPI_Allreduce(const void *from, void *to, int count, MPI_Datatype type,
		  MPI_Op op, MPI_Comm comm)
{
	reach("collective");
	return NEXT(MPI_Allreduce)(from, to, count, type, op, comm);
}

int MPI_Allgather(const void *from, int from_count, MPI_Datatype from_type,
		  void *to, int to_count, MPI_Datatype to_type, MPI_Comm comm)
{
	reach("collective");
	return NEXT(MPI_Allgather)(from, from_count, from_type, to, to_count,
				   to_type, comm);
}
