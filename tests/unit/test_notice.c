/* SPDX-License-Identifier: BSD-3-Clause */
/* The signal before a job's end: which, and when. */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>

#include <signal.h>
#include <string.h>

#include "options/notice.h"

struct notice_row {
	char text[24];
	int number;		/* 0: refused */
	uint32_t before_s;
};

ParameterizedTestParameters(notice, parse)
{
	static struct notice_row table[] = {
		{ "USR1@90", SIGUSR1, 90 },
		{ "SIGUSR1@90", SIGUSR1, 90 },
		{ "sigusr2@1", SIGUSR2, 1 },
		{ "Term@65535", SIGTERM, 65535 },
		{ "10@90", 10, 90 },
		{ "HUP@007", SIGHUP, 7 },
		{ "USR1", 0, 0 },
		{ "USR1@", 0, 0 },
		{ "USR1@0", 0, 0 },
		{ "USR1@65536", 0, 0 },
		{ "USR1@90s", 0, 0 },
		{ "USR1@-90", 0, 0 },
		{ "@90", 0, 0 },
		{ "SIG@90", 0, 0 },
		{ "", 0, 0 },
		{ "USR@90", 0, 0 },
		{ "USR11@90", 0, 0 },
		{ "B:USR1@90", 0, 0 },
		{ "KILL@90", 0, 0 },
		{ "9@90", 0, 0 },
		{ "STOP@90", 0, 0 },
		{ "SEGV@90", 0, 0 },
		{ "0@90", 0, 0 },
		{ "65@90", 0, 0 },
		{ "10x@90", 0, 0 },
	};

	return cr_make_param_array(struct notice_row, table,
				   sizeof(table) / sizeof(table[0]));
}

ParameterizedTest(struct notice_row *row, notice, parse)
{
	struct ddp_notice notice = { 0, 0 };
	struct ddp_error error = { 0 };
	int rc = ddp_notice_parse(row->text, &notice, &error);

	cr_expect_eq(rc, row->number ? 0 : -1, "%s", row->text);
	cr_expect_eq(notice.number, row->number, "%s", row->text);
	cr_expect_eq(notice.before_s, row->before_s, "%s", row->text);
	cr_expect(row->number || (strstr(error.text, row->text) &&
				  strstr(error.text, "such as USR1@90")));
}

Test(notice, name)
{
	cr_expect_str_eq(ddp_notice_name(SIGUSR1), "USR1");
	cr_expect_null(ddp_notice_name(SIGKILL));
	cr_expect_null(ddp_notice_name(0));
}

struct read_row {
	char text[32];
	enum ddp_notice_answer answer;
	time_t end;
};

ParameterizedTestParameters(notice, read)
{
	static struct read_row table[] = {
		{ "RUNNING 1795422047\n", DDP_NOTICE_END, 1795422047 },
		{ "RUNNING NONE\n", DDP_NOTICE_UNLIMITED, 0 },
		{ "SUSPENDED 1795422047\n", DDP_NOTICE_SUSPENDED, 0 },
		{ "PENDING NONE\n", DDP_NOTICE_NONE, 0 },
		{ "COMPLETING 1795422047\n", DDP_NOTICE_NONE, 0 },
		{ "RUNNING 2026-11-23T08:00:00\n", DDP_NOTICE_NONE, 0 },
		{ "RUNNING \n", DDP_NOTICE_NONE, 0 },
		{ "RUNNING 17954220", DDP_NOTICE_NONE, 0 },
		{ "", DDP_NOTICE_NONE, 0 },
	};

	return cr_make_param_array(struct read_row, table,
				   sizeof(table) / sizeof(table[0]));
}

ParameterizedTest(struct read_row *row, notice, read)
{
	time_t end = 0;

	cr_expect_eq(ddp_notice_read(row->text, &end), row->answer, "%s",
		     row->text);
	cr_expect_eq(end, row->end, "%s", row->text);
}

/* A step that starts at 1000, in a job that ends at 2000; 90 s before that. */
static struct ddp_notice_plan begun(void)
{
	struct ddp_notice_plan plan;

	ddp_notice_begin(&plan, 90, 1000);
	cr_assert_eq(plan.ask, 1000);
	cr_assert_eq(ddp_notice_due(&plan), 0);
	ddp_notice_answer(&plan, 1001, DDP_NOTICE_END, 2000);
	cr_assert_eq(ddp_notice_due(&plan), 1910);
	return plan;
}

Test(notice, asks_every_five_minutes_and_shortly_before)
{
	struct ddp_notice_plan plan = begun();

	cr_expect_eq(plan.ask, 1301);
	ddp_notice_answer(&plan, 1301, DDP_NOTICE_END, 2000);
	cr_expect_eq(plan.ask, 1601);
	ddp_notice_answer(&plan, 1601, DDP_NOTICE_END, 2000);
	cr_expect_eq(plan.ask, 1901);
	ddp_notice_answer(&plan, 1901, DDP_NOTICE_END, 2000);
	cr_expect_eq(plan.ask, 1905);
	ddp_notice_answer(&plan, 1905, DDP_NOTICE_END, 2000);
	cr_expect_eq(plan.ask, 0);
	cr_expect_eq(ddp_notice_due(&plan), 1910);
}

Test(notice, the_end_can_change)
{
	struct ddp_notice_plan plan = begun();

	ddp_notice_answer(&plan, 1905, DDP_NOTICE_END, 5600);
	cr_expect_eq(ddp_notice_due(&plan), 5510);
	cr_expect_eq(plan.ask, 2205);
	ddp_notice_answer(&plan, 2205, DDP_NOTICE_END, 2290);
	cr_expect_eq(ddp_notice_due(&plan), 2200, "at once");
}

Test(notice, without_an_answer_the_last_one_counts)
{
	struct ddp_notice_plan plan = begun();

	ddp_notice_answer(&plan, 1905, DDP_NOTICE_NONE, 0);
	cr_expect_eq(plan.ask, 1915);
	cr_expect_eq(ddp_notice_due(&plan), 1910);
}

Test(notice, a_suspended_job_does_not_come_nearer_to_its_end)
{
	struct ddp_notice_plan plan = begun();

	ddp_notice_answer(&plan, 1905, DDP_NOTICE_SUSPENDED, 0);
	cr_expect_eq(ddp_notice_due(&plan), 0);
	cr_expect_eq(plan.ask, 1915);
	ddp_notice_answer(&plan, 1915, DDP_NOTICE_END, 2400);
	cr_expect_eq(ddp_notice_due(&plan), 2310);
}

Test(notice, without_a_limit_there_is_no_signal)
{
	struct ddp_notice_plan plan;

	ddp_notice_begin(&plan, 90, 1000);
	ddp_notice_answer(&plan, 1001, DDP_NOTICE_UNLIMITED, 0);
	cr_expect_eq(ddp_notice_due(&plan), 0);
	cr_expect_eq(plan.ask, 0);
}

Test(notice, comes_halfway_where_the_step_starts_too_late)
{
	struct ddp_notice_plan plan;

	ddp_notice_begin(&plan, 90, 1000);
	ddp_notice_answer(&plan, 1001, DDP_NOTICE_END, 1080);
	cr_expect_eq(ddp_notice_due(&plan), 1040);
	ddp_notice_answer(&plan, 1001, DDP_NOTICE_END, 1091);
	cr_expect_eq(ddp_notice_due(&plan), 1001);
}
