/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzzes --ddp-signal, and what scontrol says of a job's end. The input is a line
 * with the option, then that text.
 */
#include "fuzz.h"
#include "options/notice.h"

static void check_option(const char *text)
{
	struct ddp_notice notice = { 0 }, again;
	struct ddp_error error;
	char written[64];

	if (ddp_notice_parse(text, &notice, &error) < 0) {
		fuzz_check_error(&error, DDP_ERROR_ARGUMENT);
		return;
	}
	CHECK(notice.number > 0 && notice.before_s <= DDP_NOTICE_SECONDS_MAX);
	CHECK(ddp_notice_name(notice.number) ||
	      strspn(text, "0123456789") > 0);
	snprintf(written, sizeof(written), "%d@%u", notice.number,
		 notice.before_s);
	CHECK(ddp_notice_parse(written, &again, NULL) == 0);
	CHECK(again.number == notice.number &&
	      again.before_s == notice.before_s);
}

/* The signal comes before the end, and no question is asked when it was due. */
static void check_plan(enum ddp_notice_answer answer, time_t end)
{
	const time_t now = 1000;
	struct ddp_notice_plan plan;

	ddp_notice_begin(&plan, 60, now);
	CHECK(ddp_notice_due(&plan) == 0);
	ddp_notice_answer(&plan, now, answer, end);
	if (answer == DDP_NOTICE_UNLIMITED)
		CHECK(plan.ask == 0 && ddp_notice_due(&plan) == 0);
	else
		CHECK(plan.ask == 0 || plan.ask >= now);
	if (answer == DDP_NOTICE_END && end > now)
		CHECK(ddp_notice_due(&plan) <= end);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	char *text = fuzz_text(data, size), *rest = text;
	time_t end = 0;

	check_option(fuzz_next_line(&rest));
	check_plan(ddp_notice_read(rest, &end), end);
	free(text);
	return 0;
}
