/* SPDX-License-Identifier: BSD-3-Clause */
/* Asks when the job ends, and tells when its ranks get --ddp-signal. */
#define _GNU_SOURCE
#include "supervisor/timer.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/program.h"

enum { WAIT_S = 3600 };		/* at most: poll takes 24 days in ms */

void ddp_timer_begin(struct ddp_timer *timer, const struct ddp_notice *notice,
		     uint32_t job_id)
{
	const char *array = getenv("SLURM_ARRAY_JOB_ID");
	const char *task = getenv("SLURM_ARRAY_TASK_ID");
	const char *around = getenv("SLURM_JOB_ID");

	memset(timer, 0, sizeof(*timer));
	timer->out = -1;
	timer->notice = *notice;
	timer->runs = notice->number != 0;
	/*
	 * The number of one task of an array can stand for all of them. The step
	 * may be another job's, by --jobid.
	 */
	if (array && task && around && strtoul(around, NULL, 10) == job_id)
		snprintf(timer->job, sizeof(timer->job), "%.14s_%.14s", array,
			 task);
	else
		snprintf(timer->job, sizeof(timer->job), "%u", job_id);
	ddp_notice_begin(&timer->plan, notice->before_s, time(NULL));
}

/* A squeue that still runs ends by itself; it is waited for elsewhere. */
void ddp_timer_end(struct ddp_timer *timer)
{
	if (ddp_timer_fd(timer) >= 0)
		close(timer->out);
	timer->runs = false;
}

/* Asks slurmctld for the job, with its times as seconds. */
static void ask(struct ddp_timer *timer)
{
	const char *argv[] = { "squeue", "-ah", "-tall", "-j", timer->job,
			       "-o", "%T %e", NULL };
	char path[PATH_MAX];

	timer->length = 0;
	timer->plan.ask = time(NULL) + DDP_NOTICE_AGAIN_S;
	if (ddp_program_start(ddp_program_find(argv[0], path), argv,
			      "SLURM_TIME_FORMAT=%s", -1, &timer->out) < 0)
		timer->out = -1;
	else
		fcntl(timer->out, F_SETFL, O_NONBLOCK);
}

static void complain(struct ddp_timer *timer, struct ddp_text *said,
		     const char *what)
{
	if (!timer->complained)
		ddp_text_add(said, "slurm-ddp: --ddp-signal: %s\n", what);
	timer->complained = true;
}

static void take(struct ddp_timer *timer, struct ddp_text *said)
{
	time_t end = 0;
	enum ddp_notice_answer answer;

	timer->answer[timer->length] = '\0';
	answer = ddp_notice_read(timer->answer, &end);
	ddp_notice_answer(&timer->plan, time(NULL), answer, end);
	if (answer == DDP_NOTICE_NONE)
		complain(timer, said, "slurmctld does not say when the job "
			 "ends; it is asked again");
	if (answer != DDP_NOTICE_UNLIMITED)
		return;
	complain(timer, said, "no signal is sent, as the job has no time "
		 "limit; give it one with --time");
	ddp_timer_end(timer);
}

/* Returns whether all of the answer is there, or as much as has room. */
static bool read_answer(struct ddp_timer *timer)
{
	ssize_t got;

	do {
		got = read(timer->out, timer->answer + timer->length,
			   sizeof(timer->answer) - 1 - timer->length);
		if (got > 0)
			timer->length += (size_t)got;
	} while (got > 0 || (got < 0 && errno == EINTR));
	if (got < 0 && errno == EAGAIN)
		return false;
	close(timer->out);
	timer->out = -1;
	return true;
}

int ddp_timer_fd(const struct ddp_timer *timer)
{
	return timer->runs ? timer->out : -1;
}

/* The next question, if none is asked already, or the signal. */
int ddp_timer_timeout_ms(const struct ddp_timer *timer)
{
	time_t next = ddp_notice_due(&timer->plan), now = time(NULL);
	time_t ask_at = timer->out < 0 ? timer->plan.ask : 0;

	if (ask_at && (!next || ask_at < next))
		next = ask_at;
	if (!timer->runs || !next)
		return -1;
	if (next > now + WAIT_S)
		next = now + WAIT_S;
	return next <= now ? 0 : (int)(next - now) * 1000;
}

static bool is_due(time_t at)
{
	return at && time(NULL) >= at;
}

int ddp_timer_run(struct ddp_timer *timer, struct ddp_text *said)
{
	if (!timer->runs)
		return 0;
	if (timer->out >= 0 && read_answer(timer))
		take(timer, said);
	else if (timer->out < 0 && is_due(timer->plan.ask))
		ask(timer);
	if (!timer->runs || !is_due(ddp_notice_due(&timer->plan)))
		return 0;
	ddp_text_add(said, "slurm-ddp: the ranks get SIG%s, as their job ends "
		     "in %" PRIdMAX " s\n",
		     ddp_notice_name(timer->notice.number),
		     (intmax_t)(timer->plan.end - time(NULL)));
	ddp_timer_end(timer);
	return timer->notice.number;
}
