/* SPDX-License-Identifier: BSD-3-Clause */
/* A job: joining it, leaving it, one collective at a time, and its end. */
#define _GNU_SOURCE
#include "job/job.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config.h"
#include "job/job_struct.h"
#include "job/launch.h"
#include "job/wait.h"
#include "util/file.h"
#include "util/text.h"

enum {
	TIMEOUT_MS = 300000,
	OPTIONS_MAX = 4096,	/* bytes; what says more has no size set */
	WRITE_MS = 1000,	/* for a line to stderr */
	READ_MS = 1000		/* for whoever reads it */
};

/* A process has one PMIx, and so one job at a time. */
static atomic_flag taken = ATOMIC_FLAG_INIT;

/* A fence failed. Some ranks may still be in it, so a later one cannot work. */
static bool spent;

int64_t ddp_job_deadline(const struct ddp_job *job, int32_t timeout_ms)
{
	if (timeout_ms == 0)
		timeout_ms = job ? job->timeout_ms : TIMEOUT_MS;
	return timeout_ms < 0 ? DDP_CLOCK_NEVER : ddp_clock_ms() + timeout_ms;
}

int ddp_job_read_options(const void *given, const char *name, void *options,
			 size_t size, size_t known, struct ddp_error *error)
{
	const char *bytes = given;
	size_t i, given_size = size;

	memset(options, 0, size);
	memcpy(options, &size, sizeof(size));
	if (!given)
		return 0;
	memcpy(&given_size, given, sizeof(given_size));
	if (given_size < sizeof(given_size) || given_size > OPTIONS_MAX)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "the size in "
				     "struct %s is %zu: set it to "
				     "sizeof(struct %s)", name, given_size,
				     name);
	for (i = known; i < given_size; i++)
		if (bytes[i] != 0)
			return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				"byte %zu of struct %s is set, which libddp "
				DDP_VERSION " does not know: zero the struct "
				"first, or use a newer libddp", i, name);
	memcpy(options, given, given_size < size ? given_size : size);
	return 0;
}

static int read_options(const struct ddp_job_options *given,
			struct ddp_job_options *options,
			struct ddp_error *error)
{
	if (ddp_job_read_options(given, "ddp_job_options", options,
				 sizeof(*options), sizeof(*options), error))
		return -1;
	if (options->launch != DDP_LAUNCH_AUTO &&
	    options->launch != DDP_LAUNCH_PMIX &&
	    options->launch != DDP_LAUNCH_SINGLE)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "launch is %d "
				     "in struct ddp_job_options: set it to a "
				     "value of enum ddp_launch",
				     (int)options->launch);
	if (options->timeout_ms == 0)
		options->timeout_ms = TIMEOUT_MS;
	return 0;
}

/*
 * Returns 1 to use PMIx, 0 not to; -1 if the options and the launch disagree.
 */
static int choose_launch(enum ddp_launch launch, struct ddp_error *error)
{
	if (launch == DDP_LAUNCH_SINGLE)
		return 0;
	if (ddp_client_is_offered())
		return 1;
	if (launch == DDP_LAUNCH_PMIX)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "no launcher "
				     "offers PMIx to this process: start it "
				     "with srun --mpi=pmix or srun --ddp");
	return ddp_launch_is_alone(error);
}

/* Ask PMIx for the host of every rank. */
static struct ddp_layout *ask_layout(struct ddp_job *job, uint32_t size,
				     int64_t deadline, struct ddp_error *error)
{
	char **names = calloc(size, sizeof(*names));
	struct ddp_layout *layout = NULL;
	uint32_t rank;

	if (!names) {
		ddp_error_set(error, DDP_ERROR_SYSTEM,
			      "out of memory for a job of %u ranks", size);
		return NULL;
	}
	for (rank = 0; rank < size; rank++) {
		names[rank] = ddp_client_get_host(job->client, rank, deadline,
						  error);
		if (!names[rank])
			break;
	}
	if (rank == size)
		layout = ddp_launch_place_named(names, size, error);
	while (rank > 0)
		free(names[--rank]);
	free(names);
	return layout;
}

/* Find where all ranks are, and check it with what PMIx says of this one. */
static int find_layout(struct ddp_job *job,
		       const struct ddp_client_facts *facts, int64_t deadline,
		       struct ddp_error *error)
{
	if (facts->size == UINT32_MAX || facts->size == 0)
		return ddp_error_set(error, DDP_ERROR_PMIX, "the launcher's "
				     "PMIx does not say how many ranks the job "
				     "has");
	if (facts->node_list && facts->mapping)
		job->layout = ddp_launch_place_mapped(
			facts->node_list, facts->mapping, facts->size, error);
	else
		job->layout = ask_layout(job, facts->size, deadline, error);
	if (!job->layout ||
	    ddp_layout_get(job->layout, facts->rank, &job->self, error))
		return -1;
	if ((facts->local_rank != UINT32_MAX &&
	     facts->local_rank != job->self.local_rank) ||
	    (facts->local_size != UINT32_MAX &&
	     facts->local_size != job->self.local_world_size))
		return ddp_error_set(error, DDP_ERROR_PMIX, "PMIx "
				     "contradicts itself: rank %u is local "
				     "rank %u of %u on %s, but by its map of "
				     "the job %u of %u", facts->rank,
				     facts->local_rank, facts->local_size,
				     job->self.host, job->self.local_rank,
				     job->self.local_world_size);
	return 0;
}

static int join_pmix(struct ddp_job *job, struct ddp_error *error)
{
	int64_t deadline = ddp_job_deadline(job, 0);
	struct ddp_client_facts facts;
	int rc;

	if (spent)
		return ddp_error_set(error, DDP_ERROR_PMIX, "an earlier job of "
				     "this process failed, and its ranks are "
				     "out of step: start the program again");
	job->client = ddp_client_open(deadline, error);
	if (!job->client ||
	    ddp_client_get_facts(job->client, deadline, &facts, error))
		return -1;
	rc = find_layout(job, &facts, deadline, error);
	free(facts.node_list);
	free(facts.mapping);
	return rc;
}

static int join_single(struct ddp_job *job, struct ddp_error *error)
{
	char host[DDP_HOSTNAME_MAX + 1] = "";

	gethostname(host, sizeof(host) - 1);
	job->layout = ddp_launch_place_single(*host ? host : "localhost",
					      error);
	return !job->layout ? -1 :
		ddp_layout_get(job->layout, 0, &job->self, error);
}

struct ddp_job *ddp_job_create(const struct ddp_job_options *given,
			       struct ddp_error *error)
{
	struct ddp_job_options options;
	struct ddp_job *job;
	int pmix;

	if (read_options(given, &options, error))
		return NULL;
	pmix = choose_launch(options.launch, error);
	if (pmix < 0)
		return NULL;
	if (atomic_flag_test_and_set(&taken)) {
		ddp_error_set(error, DDP_ERROR_ARGUMENT, "this process has a "
			      "job already: destroy that one first");
		return NULL;
	}
	job = calloc(1, sizeof(*job));
	if (!job) {
		ddp_error_set(error, DDP_ERROR_SYSTEM,
			      "out of memory for a job");
		atomic_flag_clear(&taken);
		return NULL;
	}
	job->process = getpid();
	pthread_mutex_init(&job->lock, NULL);
	ddp_wait_create_cond(&job->idle);
	job->timeout_ms = options.timeout_ms;
	if (pmix ? join_pmix(job, error) : join_single(job, error)) {
		ddp_job_destroy(job);
		return NULL;
	}
	job->size = ddp_layout_world_size(job->layout);
	return job;
}

void ddp_job_destroy(struct ddp_job *job)
{
	if (!job)
		return;
	ddp_layout_destroy(job->layout);
	pthread_cond_destroy(&job->idle);
	pthread_mutex_destroy(&job->lock);
	free(job->own);
	free(job);
	atomic_flag_clear(&taken);
}

uint32_t ddp_job_rank(const struct ddp_job *job)
{
	return job->self.rank;
}

uint32_t ddp_job_size(const struct ddp_job *job)
{
	return job->size;
}

uint32_t ddp_job_local_rank(const struct ddp_job *job)
{
	return job->self.local_rank;
}

uint32_t ddp_job_local_size(const struct ddp_job *job)
{
	return job->self.local_world_size;
}

uint32_t ddp_job_node_rank(const struct ddp_job *job)
{
	return job->self.node_rank;
}

uint32_t ddp_job_node_count(const struct ddp_job *job)
{
	return ddp_layout_node_count(job->layout);
}

const char *ddp_job_host(const struct ddp_job *job, uint32_t rank)
{
	struct ddp_rank place;

	return ddp_layout_get(job->layout, rank, &place, NULL) ? NULL :
		place.host;
}

uint32_t ddp_job_node_of(const struct ddp_job *job, uint32_t rank)
{
	struct ddp_rank place;

	return ddp_layout_get(job->layout, rank, &place, NULL) ? UINT32_MAX :
		place.node_rank;
}

uint32_t ddp_job_local_rank_of(const struct ddp_job *job, uint32_t rank)
{
	struct ddp_rank place;

	return ddp_layout_get(job->layout, rank, &place, NULL) ? UINT32_MAX :
		place.local_rank;
}

/* ---- one collective at a time */

int ddp_job_begin(struct ddp_job *job, int64_t deadline,
		  struct ddp_error *error)
{
	bool in_time = true;
	int rc = -1;

	if (job->process != getpid())
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "this process "
				     "is a child of a rank: a child of fork "
				     "has no job");
	pthread_mutex_lock(&job->lock);
	while (job->busy && !job->ended && in_time)
		in_time = ddp_wait_cond(&job->idle, &job->lock, deadline);
	if (job->ended) {
		if (error)
			*error = job->why;
	} else if (job->busy) {
		ddp_error_set(error, DDP_ERROR_TIMEOUT, "another thread's "
			      "collective of this job has not ended in time");
	} else {
		job->busy = true;
		rc = 0;
	}
	pthread_mutex_unlock(&job->lock);
	return rc;
}

void ddp_job_end(struct ddp_job *job)
{
	pthread_mutex_lock(&job->lock);
	job->busy = false;
	pthread_cond_signal(&job->idle);
	pthread_mutex_unlock(&job->lock);
}

int ddp_job_fail(struct ddp_job *job, const struct ddp_error *why,
		 struct ddp_error *error)
{
	pthread_mutex_lock(&job->lock);
	job->ended = true;
	job->why = *why;
	spent = true;
	pthread_cond_broadcast(&job->idle);
	pthread_mutex_unlock(&job->lock);
	if (error)
		*error = *why;
	return -1;
}

/* ---- ddp_abort: end all ranks, with one line that says why */

/*
 * Write as much as fits of "PROGRAM: rank 3 on n2: sentence", one printable
 * line. Line ends of the caller's become spaces.
 */
__attribute__((format(printf, 4, 0))) static void
format_line(char *line, size_t room, const struct ddp_job *job,
	    const char *format, va_list args)
{
	size_t length;
	char *at;

	if (job)
		snprintf(line, room, "%.64s: rank %u on %s: ",
			 program_invocation_short_name, job->self.rank,
			 job->self.host);
	else
		snprintf(line, room, "%.64s: ",
			 program_invocation_short_name);
	length = strlen(line);
	vsnprintf(line + length, room - 1 - length, format, args);
	for (at = line; *at != '\0'; at++)
		if (*at == '\n' || *at == '\r')
			*at = ' ';
	while (at > line && at[-1] == ' ')
		at--;
	*at = '\0';
	ddp_text_quote(line);
	strcpy(at, "\n");
}

/* Runs in a thread that blocks all signals, SIGPIPE as well. */
static void write_line(void *state)
{
	const char *line = state;
	size_t length = strlen(line), done = 0;
	ssize_t wrote;

	while (done < length) {
		wrote = write(STDERR_FILENO, line + done, length - done);
		if (wrote > 0)
			done += (size_t)wrote;
		else if (wrote == 0 || errno != EINTR)
			break;
	}
}

void ddp_abort(struct ddp_job *job, int code, const char *format, ...)
{
	char line[1024], *copy;
	va_list args;

	if (code < 1 || code > 255)
		code = 1;
	va_start(args, format);
	format_line(line, sizeof(line), job, format, args);
	va_end(args);
	copy = strdup(line);	/* for the thread, whose write may hang */
	if (!copy)
		write_line(line);
	else if (!ddp_thread_run(write_line, copy, ddp_clock_ms() + WRITE_MS))
		free(copy);
	if (job && job->client && job->process == getpid()) {
		ddp_drain_wait(STDERR_FILENO, READ_MS);
		ddp_client_abort(code, line);
	}
	_exit(code);
}

const char *ddp_version(void)
{
	return DDP_VERSION;
}
