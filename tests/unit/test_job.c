/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How structs of options of another version are read; one collective at a time;
 * and the words for ranks that do not come.
 */
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <criterion/parameterized.h>

#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "config.h"
#include "hooks.h"
#include "job/job.h"
#include "job/job_struct.h"
#include "job/launch.h"
#include "nccl/nccl.h"
#include "util/text.h"

TestSuite(job, .timeout = 120);

#define RESERVED offsetof(struct ddp_nccl_options, reserved)

enum answer { READ, NO_SIZE, UNKNOWN };

/* Options of this size, with the byte at "at" set. */
struct options_row {
	size_t size, at;
	enum answer answer;
};

static int read_options(const void *given, struct ddp_nccl_options *options,
			struct ddp_error *error)
{
	return ddp_job_read_options(given, "ddp_nccl_options", options,
				    sizeof(*options), RESERVED, error);
}

ParameterizedTestParameters(job, options)
{
	static struct options_row table[] = {
		{ 0, 200, NO_SIZE }, { sizeof(size_t) - 1, 200, NO_SIZE },
		{ sizeof(size_t), 200, READ }, { RESERVED, RESERVED, READ },
		{ sizeof(struct ddp_nccl_options), 200, READ },
		{ sizeof(struct ddp_nccl_options), RESERVED, UNKNOWN },
		{ sizeof(struct ddp_nccl_options), RESERVED + 3, UNKNOWN },
		{ 100, 99, UNKNOWN }, { 100, 100, READ },
		{ 4096, 4095, UNKNOWN }, { 4096, 8000, READ },
		{ 4097, 200, NO_SIZE }, { (size_t)1 << 40, 200, NO_SIZE },
		{ SIZE_MAX, 200, NO_SIZE },
	};

	return cr_make_param_array(struct options_row, table,
				   sizeof(table) / sizeof(table[0]));
}

ParameterizedTest(struct options_row *row, job, options)
{
	static union {
		struct ddp_nccl_options options;
		char bytes[8192];
	} given;
	struct ddp_nccl_options options;
	struct ddp_error error = { 0 };
	char text[200] = "";
	int result;

	given.options = (struct ddp_nccl_options){ .size = row->size,
		.ranks_per_root = 7, .timeout_ms = 9 };
	given.bytes[row->at] = 1;
	result = read_options(&given.options, &options, &error);
	given.bytes[row->at] = 0;
	if (row->answer == NO_SIZE)
		snprintf(text, sizeof(text), "the size in struct "
			 "ddp_nccl_options is %zu: set it to sizeof(struct "
			 "ddp_nccl_options)", row->size);
	else if (row->answer == UNKNOWN)
		snprintf(text, sizeof(text), "byte %zu of struct "
			 "ddp_nccl_options is set, which libddp " DDP_VERSION
			 " does not know: zero the struct first, or use a "
			 "newer libddp", row->at);
	cr_expect_eq(result, row->answer == READ ? 0 : -1);
	cr_expect_str_eq(error.text, text);
	cr_expect_eq(options.ranks_per_root,
		     result == 0 && row->size > sizeof(size_t) ? 7 : 0);
}

/* With padding, nobody could tell reserved from what comes after it. */
Test(job, options_have_no_padding)
{
	cr_expect_eq(sizeof(struct ddp_nccl_options),
		     RESERVED + sizeof(uint32_t));
	cr_expect_eq(sizeof(struct ddp_job_options),
		     offsetof(struct ddp_job_options, timeout_ms) +
		     sizeof(int32_t));
}

Test(job, no_options_are_the_defaults)
{
	struct ddp_nccl_options options;

	cr_expect_eq(read_options(NULL, &options, NULL), 0);
	cr_expect_eq(options.timeout_ms, 0);
	cr_expect_null(options.config);
}

/* ---- one collective at a time */

static struct ddp_job *make_job(void)
{
	struct ddp_job_options options = {
		.size = sizeof(options), .launch = DDP_LAUNCH_SINGLE,
	};
	struct ddp_job *job = ddp_job_create(&options, NULL);

	cr_assert_not_null(job);
	return job;
}

Test(job, waits_for_another_collective_until_the_deadline)
{
	struct ddp_job *job = make_job();
	int64_t deadline = ddp_clock_ms() + 50;
	struct ddp_error error = { 0 };

	cr_assert_eq(ddp_job_begin(job, DDP_CLOCK_NEVER, NULL), 0);
	hook_wake(0, 3);
	cr_expect_eq(ddp_job_begin(job, deadline, &error), -1);
	cr_expect_geq(ddp_clock_ms(), deadline, "no wake-up ends the wait");
	cr_expect_eq(error.code, DDP_ERROR_TIMEOUT);
	ddp_job_end(job);
	cr_expect_eq(ddp_job_begin(job, 0, NULL), 0, "nobody is in it now");
	ddp_job_end(job);
	ddp_job_destroy(job);
}

/* A thread that wants a collective of the job, and what it got. */
struct waiter {
	pthread_t thread;
	struct ddp_job *job;
	int result;
	struct ddp_error error;
};

static void *begin_collective(void *data)
{
	struct waiter *waiter = data;

	waiter->result = ddp_job_begin(waiter->job, DDP_CLOCK_NEVER,
				       &waiter->error);
	if (waiter->result == 0)
		ddp_job_end(waiter->job);
	return NULL;
}

enum { WAITERS = 3 };

/* Start threads, and return when all of them wait for the job. */
static void start_waiters(struct waiter *waiters, struct ddp_job *job)
{
	int64_t limit = ddp_clock_ms() + 60000;
	int begun = hook_count_waits(), i;

	for (i = 0; i < WAITERS; i++) {
		waiters[i] = (struct waiter){ .job = job, .result = -2 };
		pthread_create(&waiters[i].thread, NULL, begin_collective,
			       &waiters[i]);
	}
	while (hook_count_waits() < begun + WAITERS && ddp_clock_ms() < limit)
		usleep(1000);
}

/* Returns whether all threads have ended within a minute. */
static bool join_waiters(const struct waiter *waiters)
{
	struct timespec until;
	int i, failed = 0;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 60;
	for (i = 0; i < WAITERS; i++)
		failed |= pthread_timedjoin_np(waiters[i].thread, NULL,
					       &until);
	return failed == 0;
}

Test(job, lets_threads_in_one_after_the_other)
{
	struct waiter waiters[WAITERS];
	struct ddp_job *job = make_job();
	int i;

	cr_assert_eq(ddp_job_begin(job, DDP_CLOCK_NEVER, NULL), 0);
	start_waiters(waiters, job);
	ddp_job_end(job);
	cr_assert(join_waiters(waiters), "each thread gets its turn");
	for (i = 0; i < WAITERS; i++)
		cr_expect_eq(waiters[i].result, 0);
	ddp_job_destroy(job);
}

/* Their collective could not work, and whoever comes later is told the same. */
Test(job, that_has_ended_tells_all_threads_why)
{
	struct waiter waiters[WAITERS];
	struct ddp_job *job = make_job();
	struct ddp_error why = { 0 }, error = { 0 };
	int i;

	ddp_error_set(&why, DDP_ERROR_PMIX, "the fence failed");
	cr_assert_eq(ddp_job_begin(job, DDP_CLOCK_NEVER, NULL), 0);
	start_waiters(waiters, job);
	cr_expect_eq(ddp_job_fail(job, &why, &error), -1);
	cr_expect_str_eq(error.text, "the fence failed");
	cr_assert(join_waiters(waiters), "no thread waits any more");
	for (i = 0; i < WAITERS; i++) {
		cr_expect_eq(waiters[i].result, -1);
		cr_expect_str_eq(waiters[i].error.text, "the fence failed");
	}
	ddp_job_end(job);
	for (i = 0; i < 2; i++) {
		error = (struct ddp_error){ 0 };
		cr_expect_eq(ddp_job_begin(job, 0, &error), -1);
		cr_expect_eq(error.code, DDP_ERROR_PMIX);
		cr_expect_str_eq(error.text, "the fence failed");
	}
	ddp_job_destroy(job);
}

Test(job, timeouts_become_deadlines)
{
	struct ddp_job *job = make_job();
	int64_t now = ddp_clock_ms();

	cr_expect_eq(ddp_job_deadline(job, -1), DDP_CLOCK_NEVER);
	cr_expect_geq(ddp_job_deadline(job, 7000), now + 7000);
	cr_expect_leq(ddp_job_deadline(job, 7000), ddp_clock_ms() + 7000);
	job->timeout_ms = 5000;
	cr_expect_geq(ddp_job_deadline(job, 0), now + 5000);
	cr_expect_leq(ddp_job_deadline(job, 0), ddp_clock_ms() + 5000);
	job->timeout_ms = -3;
	cr_expect_eq(ddp_job_deadline(job, 0), DDP_CLOCK_NEVER);
	cr_expect_geq(ddp_job_deadline(NULL, 0), now + 300000);
	ddp_job_destroy(job);
}

Test(job, is_one_at_a_time)
{
	struct ddp_job *job = make_job();
	struct ddp_error error = { 0 };

	cr_expect_null(ddp_job_create(NULL, &error));
	cr_expect(strstr(error.text, "has a job already"), "%s", error.text);
	ddp_job_destroy(job);
	ddp_job_destroy(make_job());
}

/* ---- the exchange, with oneself */

Test(job, gets_its_own_record)
{
	static char bytes[DDP_RECORD_MAX], got[DDP_RECORD_MAX + 1];
	static const size_t sizes[] = { 0, 1, 100, 101, 300, DDP_RECORD_MAX };
	struct ddp_job *job = make_job();
	struct ddp_error error = { 0 };
	size_t i, size;

	memset(bytes, 'b', sizeof(bytes));
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		memset(got, 'x', sizeof(got));
		cr_assert_eq(ddp_exchange_put(job, bytes, sizes[i], 0, &error),
			     0, "%s", error.text);
		cr_assert_eq(ddp_exchange_get(job, 0, got, sizes[i], &size, 0,
					      &error), 0, "%s", error.text);
		cr_expect_eq(size, sizes[i]);
		cr_expect_eq(memcmp(got, bytes, size), 0);
		cr_expect_eq(got[size], 'x');
	}
	ddp_job_destroy(job);
}

Test(job, refuses_records_that_do_not_fit_and_ranks_that_are_not_there)
{
	static char bytes[DDP_RECORD_MAX + 1], got[8];
	struct ddp_job *job = make_job();
	struct ddp_error error = { 0 };
	size_t size;

	cr_assert_eq(ddp_exchange_put(job, "12345", 5, 0, NULL), 0);
	memset(got, 'x', sizeof(got));
	cr_expect_eq(ddp_exchange_get(job, 0, got, 4, &size, 0, &error), -1);
	cr_expect_eq(error.code, DDP_ERROR_PEER);
	cr_expect_str_eq(error.text, "rank 0 has given 5 bytes where at most 4 "
			 "are expected");
	cr_expect_eq(got[0], 'x');
	cr_expect_eq(ddp_exchange_get(job, 1, got, 8, &size, 0, &error), -1);
	cr_expect_str_eq(error.text, "there is no rank 1 in a job of 1");
	cr_expect_eq(ddp_exchange_put(job, bytes, sizeof(bytes), 0, &error),
		     -1);
	cr_expect_eq(error.code, DDP_ERROR_ARGUMENT);
	cr_expect_eq(ddp_exchange_get(job, 0, got, 8, &size, 0, &error), 0);
	cr_expect_eq(size, 5, "the last one is still there");
	ddp_job_destroy(job);
}

/* ---- the first exchange */

/* How long a rank that a launcher starts waits before its first exchange. */
static int64_t time_first_exchange(const char *name_space)
{
	int64_t begin = ddp_clock_ms();
	int status = -1;
	pid_t rank;

	setenv("PMIX_NAMESPACE", name_space, 1);
	rank = fork();
	if (rank == 0) {
		ddp_early_wait(begin + 20000);
		_exit(0);
	}
	cr_assert_eq(waitpid(rank, &status, 0), rank);
	cr_assert_eq(status, 0);
	return ddp_clock_ms() - begin;
}

/*
 * The kernel counts a process's age in hundredths of a second. How long the
 * others take depends on the machine; 20 s would be the deadline's.
 */
Test(job, of_slurm_lets_its_ranks_grow_old_enough)
{
	int64_t took = time_first_exchange("slurm.pmix.7.0");

	cr_expect_geq(took, DDP_EARLY_MS - 20);
	cr_expect_lt(took, 20000);
	cr_expect_lt(time_first_exchange("prterun-n1-7@1"), 20000);
}

/* ---- ranks that do not come */

/* Eight ranks are on a, a, a, b, b, a, c, c. A '-' does not come. */
struct absent_row {
	char here[9];
	uint32_t most;
	char text[80];
};

ParameterizedTestParameters(job, absent)
{
	static struct absent_row table[] = {
		{ "xxxxxxxx", 8, "" },
		{ "-xxxxxxx", 8, "rank 0 on a" },
		{ "xxxxxxx-", 8, "rank 7 on c" },
		{ "x--xxxxx", 8, "ranks 1-2 on a" },
		/* Neighbours on two nodes are two runs. */
		{ "xx--xxxx", 8, "rank 2 on a, rank 3 on b" },
		{ "--------", 8,
		  "ranks 0-2 on a, ranks 3-4 on b, rank 5 on a, ranks 6-7 on "
		  "c" },
		{ "--------", 2, "ranks 0-2 on a, ranks 3-4 on b and 3 more" },
		{ "-x-x-x-x", 3,
		  "rank 0 on a, rank 2 on a, rank 4 on b and 1 more" },
		{ "-x-x-x-x", 4,
		  "rank 0 on a, rank 2 on a, rank 4 on b, rank 6 on c" },
	};

	return cr_make_param_array(struct absent_row, table,
				   sizeof(table) / sizeof(table[0]));
}

ParameterizedTest(struct absent_row *row, job, absent)
{
	char *names[] = { "a", "a", "a", "b", "b", "a", "c", "c" };
	struct ddp_job job = {
		.layout = ddp_launch_place_named(names, 8, NULL), .size = 8,
	};
	struct ddp_text text = { 0 };
	bool here[8];
	char *had;
	int i;

	for (i = 0; i < 8; i++)
		here[i] = row->here[i] == 'x';
	ddp_absent_format(&job, here, row->most, &text);
	had = ddp_text_finish(&text);
	cr_expect_str_eq(had, row->text);
	free(had);
	ddp_layout_destroy(job.layout);
}
