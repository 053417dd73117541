/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs the tables of tests/unit, each test in a process that is only forked, and
 * prints TAP. Criterion's own runner executes the program anew for each test, which
 * qemu-user does not do. Of Criterion remain the macros and the texts of failures.
 */
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <criterion/parameterized.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LIMIT_S = 300, SKIPPED = 77 };

/* Test() and TestSuite() put these into sections of their own. */
extern struct criterion_test *__start_cr_tst[], *__stop_cr_tst[];
extern struct criterion_suite *__start_cr_sts[], *__stop_cr_sts[];

static const struct criterion_test *test;
static const struct criterion_test_extra_data *suite;	/* NULL: it has none */
static void *row;		/* of the test's parameters; NULL: it has none */
static int failures;		/* of the test, in its process */

/* ---- what the macros call */

void criterion_send_assert(struct criterion_assert_stats *stats)
{
	printf("# %s:%u: %s\n", stats->file, stats->line, stats->message);
	failures++;
}

void criterion_abort_test(void)
{
	fflush(stdout);
	_exit(1);
}

void criterion_continue_test(void)
{
}

void cri_asserts_passed_incr(void)
{
}

void criterion_skip_test(const char *format, ...)
{
	va_list args;

	printf("ok - %s/%s # SKIP ", test->category, test->name);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
	fflush(stdout);
	_exit(SKIPPED);
}

void criterion_internal_test_setup(void)
{
	if (suite && suite->init)
		suite->init();
	if (test->data->init)
		test->data->init();
}

void criterion_internal_test_main(void (*function)(void))
{
	if (row)
		((void (*)(void *))function)(row);
	else
		function();
}

void criterion_internal_test_teardown(void)
{
	if (test->data->fini)
		test->data->fini();
	if (suite && suite->fini)
		suite->fini();
}

/* ---- the runner */

/*
 * Returns the wait status of a process that runs the test. It is no child of fork()
 * to what has asked for that with pthread_atfork().
 */
static int run(void)
{
	int status;
	pid_t child;

	fflush(stdout);
	child = _Fork();
	if (child == 0) {
		alarm(test->data->timeout > 0 ? (unsigned)test->data->timeout :
		      LIMIT_S);
		test->test();
		fflush(stdout);
		_exit(failures > 0);
	}
	if (child < 0 || waitpid(child, &status, 0) != child) {
		perror("direct: cannot run a test");
		exit(2);
	}
	return status;
}

/* Runs each row of the test's table; returns the first status that is not 0. */
static int run_rows(void)
{
	struct criterion_test_params params = test->data->param_();
	int status = 0;
	size_t i;

	for (i = 0; i < params.length && status == 0; i++) {
		row = (char *)params.params + i * params.size;
		status = run();
		if (status != 0)
			printf("# in row %zu, from 0\n", i);
	}
	row = NULL;
	return status;
}

int main(void)
{
	struct criterion_test **at;
	struct criterion_suite **of;
	int count = 0, failed = 0, status;

	for (at = __start_cr_tst; at < __stop_cr_tst; at++) {
		test = *at;
		suite = NULL;
		for (of = __start_cr_sts; of < __stop_cr_sts; of++)
			if (strcmp((*of)->name, test->category) == 0)
				suite = (*of)->data;
		status = test->data->param_ ? run_rows() : run();
		count++;
		if (WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED)
			continue;
		failed += status != 0;
		printf("%sok - %s/%s\n", status ? "not " : "", test->category,
		       test->name);
		if (WIFSIGNALED(status))
			printf("# ended by signal %d\n", WTERMSIG(status));
	}
	printf("1..%d\n", count);
	return failed > 0;
}
