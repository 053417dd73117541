/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls in threads that are waited for until a deadline only. */
#define _GNU_SOURCE
#include <criterion/criterion.h>

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hooks.h"
#include "job/wait.h"
#include "util/clock.h"

enum { A_MINUTE_MS = 60000 };

TestSuite(thread, .timeout = 120);

/* A call that goes on once the test says so, and says that it did. */
struct call {
	int go, done;		/* ends of pipes */
	int blocked;		/* signals: 1 where all are */
	atomic_bool begun;
	pthread_t thread;
};

static void work(void *state)
{
	struct call *call = state;
	sigset_t mask;
	char byte = 0;

	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	call->blocked = sigismember(&mask, SIGPIPE) &&
		sigismember(&mask, SIGTERM);
	call->thread = pthread_self();
	call->begun = true;
	if (read(call->go, &byte, 1) != 1 || write(call->done, &byte, 1) != 1)
		abort();
}

/* Returns the end that lets the call go on; *done gets the other one. */
static int make_call(struct call **call, int *done)
{
	int go[2], ended[2];

	cr_assert(pipe(go) == 0 && pipe(ended) == 0);
	*call = calloc(1, sizeof(**call));
	(*call)->go = go[0];
	(*call)->done = ended[1];
	*done = ended[0];
	return go[1];
}

/*
 * Returns a deadline that passes when the call has begun. A thread that begins
 * only after its deadline calls nothing.
 */
static int64_t until_begun(struct call *call)
{
	hook_expire_after(&call->begun);
	return ddp_clock_ms() + A_MINUTE_MS;
}

static void expect_byte(int file)
{
	char byte;

	cr_expect_eq(read(file, &byte, 1), 1);
}

Test(thread, runs_elsewhere_without_signals)
{
	struct call *call;
	int done, go = make_call(&call, &done);

	cr_assert_eq(write(go, "", 1), 1);
	cr_expect_eq(ddp_thread_run(work, call, DDP_CLOCK_NEVER), 0);
	cr_expect(call->blocked);
	cr_expect_not(pthread_equal(call->thread, pthread_self()));
	expect_byte(done);
	free(call);
}

Test(thread, a_call_that_is_late_ends_on_its_own)
{
	struct call *call;
	int done, go = make_call(&call, &done);

	cr_assert_eq(ddp_thread_run(work, call, until_begun(call)), -1);
	cr_assert_eq(write(go, "", 1), 1);
	expect_byte(done);	/* it frees the call */
}

Test(thread, a_worker_does_one_call_after_the_other)
{
	struct ddp_worker *worker = ddp_worker_create();
	struct call *call;
	pthread_t first;
	int done, go = make_call(&call, &done);

	cr_assert_eq(write(go, "12", 2), 2);
	cr_expect_eq(ddp_worker_run(worker, work, call, DDP_CLOCK_NEVER), 0);
	first = call->thread;
	cr_expect_eq(ddp_worker_run(worker, work, call, DDP_CLOCK_NEVER), 0);
	cr_expect(pthread_equal(first, call->thread));
	call->begun = false;
	cr_assert_eq(ddp_worker_run(worker, work, call, until_begun(call)), -1);
	cr_assert_eq(write(go, "", 1), 1);
	expect_byte(done);
	expect_byte(done);
	expect_byte(done);
}

Test(thread, a_worker_that_did_nothing_ends)
{
	ddp_worker_destroy(ddp_worker_create());
	ddp_worker_destroy(NULL);
}

static int count_threads(void)
{
	DIR *tasks = opendir("/proc/self/task");
	int count = -2;		/* "." and ".." */

	cr_assert_not_null(tasks);
	while (readdir(tasks))
		count++;
	closedir(tasks);
	return count;
}

/* It must not find the lock held by the caller that left it. */
Test(thread, a_thread_that_was_left_frees_its_state_and_ends)
{
	int64_t limit = ddp_clock_ms() + A_MINUTE_MS;
	int before = count_threads(), done;
	struct call *call;
	int go = make_call(&call, &done);

	hook_watch_block(call);
	cr_assert_eq(ddp_thread_run(work, call, until_begun(call)), -1);
	cr_expect_not(hook_block_is_free(), "the call still uses it");
	cr_assert_eq(write(go, "", 1), 1);
	expect_byte(done);
	while (count_threads() > before && ddp_clock_ms() < limit)
		usleep(1000);
	cr_expect_eq(count_threads(), before);
	cr_expect(hook_block_is_free());
}

Test(thread, a_call_goes_on_when_its_caller_wakes_up_too_early)
{
	struct ddp_worker *worker = ddp_worker_create();
	struct call *call;
	int done, go = make_call(&call, &done);

	cr_assert_eq(write(go, "", 1), 1);
	hook_wake(0, 3);
	cr_assert_eq(ddp_worker_run(worker, work, call,
				    ddp_clock_ms() + A_MINUTE_MS), 0);
	cr_expect_eq(hook_count_wakes(), 0);
	expect_byte(done);
	ddp_worker_destroy(worker);
	free(call);
}

/* There is nothing to call yet. */
Test(thread, a_worker_that_wakes_up_too_early_calls_nothing)
{
	int64_t limit = ddp_clock_ms() + A_MINUTE_MS;
	struct ddp_worker *worker;

	hook_wake(3, 0);
	worker = ddp_worker_create();
	while (hook_count_wakes() > 0 && ddp_clock_ms() < limit)
		usleep(1000);
	cr_expect_eq(hook_count_wakes(), 0);
	ddp_worker_destroy(worker);
}

Test(thread, a_wait_that_wakes_up_too_early_lasts_until_its_deadline)
{
	struct ddp_wait *wait = ddp_wait_create();
	int64_t deadline = ddp_clock_ms() + 50;

	hook_wake(0, 3);
	cr_expect_not(ddp_wait_until(wait, deadline));
	cr_expect_geq(ddp_clock_ms(), deadline);
	ddp_wait_drop(wait);
	ddp_wait_drop(wait);
}

/* The bytes are the ender's, who may free them at once; an empty value is one. */
Test(thread, a_wait_gets_a_copy_of_what_ended_it)
{
	struct ddp_wait *wait = ddp_wait_create();
	char bytes[] = "abc";

	ddp_wait_end(wait, 7, 5, bytes, 3);
	memset(bytes, 0, sizeof(bytes));
	cr_assert(ddp_wait_until(wait, 0), "it has ended before the deadline");
	cr_expect_eq(wait->status, 7);
	cr_expect_eq(wait->type, 5);
	cr_assert_eq(wait->size, 3);
	cr_expect_arr_eq(wait->bytes, "abc", 3);
	hook_watch_block(wait->bytes);
	ddp_wait_drop(wait);
	cr_expect(hook_block_is_free(), "the last share frees all");
	wait = ddp_wait_create();
	ddp_wait_end(wait, 0, 5, bytes, 0);
	cr_expect_not_null(wait->bytes);
	ddp_wait_drop(wait);
}
