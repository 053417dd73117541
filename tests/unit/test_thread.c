/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls in threads that are waited for until a deadline only. */
#include <criterion/criterion.h>

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "job/thread.h"
#include "layout/clock.h"

/* A call that goes on once the test says so, and says that it did. */
struct call {
	int go, done;		/* ends of pipes */
	int blocked;		/* signals: 1 where all are */
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

	cr_expect_eq(ddp_thread_run(work, call, ddp_clock_ms() + 20), -1);
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
	cr_expect_eq(ddp_worker_run(worker, work, call, ddp_clock_ms() + 20),
		     -1);
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
