/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting until what was printed has been read. */
#define _GNU_SOURCE
#include <criterion/criterion.h>

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/drain.h"

static void *read_later(void *state)
{
	char bytes[8];

	usleep(100000);
	if (read(*(const int *)state, bytes, 3) != 3)
		return NULL;
	usleep(100000);
	return read(*(const int *)state, bytes, 2) == 2 ? state : NULL;
}

Test(drain, waits_until_all_is_read)
{
	int64_t begun_ms;
	pthread_t thread;
	void *done;
	int ends[2];

	cr_assert_eq(pipe(ends), 0);
	cr_assert_eq(write(ends[1], "words", 5), 5);
	begun_ms = ddp_clock_ms();
	cr_assert_eq(pthread_create(&thread, NULL, read_later, &ends[0]), 0);
	ddp_drain_wait(ends[1], 60000);
	cr_expect_geq(ddp_clock_ms() - begun_ms, 200);
	cr_expect_lt(ddp_clock_ms() - begun_ms, 60000);
	pthread_join(thread, &done);
	cr_expect_not_null(done);
}

Test(drain, gives_up_in_time, .timeout = 30)
{
	int64_t begun_ms = ddp_clock_ms();
	int ends[2];

	cr_assert_eq(pipe(ends), 0);
	cr_assert_eq(write(ends[1], "words", 5), 5);
	ddp_drain_wait(ends[1], 50);
	cr_expect_geq(ddp_clock_ms() - begun_ms, 50);
}

/* Bytes that nobody will read, and those of a file, of which FIONREAD tells. */
Test(drain, does_not_wait_in_vain, .timeout = 30)
{
	char path[] = "/tmp/ddp-drain.XXXXXX";
	int ends[2], file = mkstemp(path);

	cr_assert_eq(pipe(ends), 0);
	cr_assert_eq(write(ends[1], "words", 5), 5);
	close(ends[0]);
	ddp_drain_wait(ends[1], 60000);
	cr_assert_eq(pwrite(file, "words", 5, 0), 5);
	ddp_drain_wait(file, 60000);
	ddp_drain_wait(-1, 60000);
	close(file);
	unlink(path);
}
