/* SPDX-License-Identifier: BSD-3-Clause */
/* Asks slurmctld when the job ends, and tells when its ranks get the signal. */
#define _GNU_SOURCE
#include "supervisor/timer.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "plugin.h"
#include "srun/program.h"

#define FORMAT "SLURM_TIME_FORMAT"

static struct {
	struct ddp_notice_plan plan;
	char job[32];		/* as scontrol knows it; "": not begun */
	char answer[4096];	/* its end comes early in a line */
	size_t length;
	pid_t pid;		/* scontrol; 0: it is not running */
	int out;
	bool complained, over;
} timer;

void ddp_timer_begin(uint32_t job_id)
{
	const char *array = getenv("SLURM_ARRAY_JOB_ID");
	const char *task = getenv("SLURM_ARRAY_TASK_ID");

	if (!ddp_plugin.notice.number || timer.job[0])
		return;
	/* By its number, one task of an array can stand for the whole array. */
	if (array && task)
		snprintf(timer.job, sizeof(timer.job), "%.14s_%.14s", array,
			 task);
	else
		snprintf(timer.job, sizeof(timer.job), "%u", job_id);
	ddp_notice_begin(&timer.plan, ddp_plugin.notice.before_s, time(NULL));
}

/* With times as seconds; what srun is started with is not changed. */
static void ask(void)
{
	const char *argv[] = { "scontrol", "-o", "show", "job", timer.job,
			       NULL };
	const char *set = getenv(FORMAT);
	char *before = set ? strdup(set) : NULL;

	setenv(FORMAT, "%s", 1);
	timer.length = 0;
	timer.pid = ddp_program_start(argv, &timer.out);
	if (timer.pid > 0)
		fcntl(timer.out, F_SETFL, O_NONBLOCK);
	else
		timer.pid = 0;
	if (before)
		setenv(FORMAT, before, 1);
	else
		unsetenv(FORMAT);
	free(before);
	timer.plan.ask = time(NULL) + DDP_NOTICE_AGAIN_S;
}

static void complain(const char *what)
{
	if (!timer.complained)
		dprintf(STDERR_FILENO, "slurm-ddp: --ddp-signal: %s\n", what);
	timer.complained = true;
}

static void take(enum ddp_notice_answer answer, time_t end)
{
	if (answer == DDP_NOTICE_NONE)
		complain("slurmctld does not say when the job ends; it is "
			 "asked again");
	if (answer == DDP_NOTICE_UNLIMITED) {
		timer.over = true;
		complain("the job has no time limit, so no signal is sent; "
			 "give it one with --time");
	}
	ddp_notice_answer(&timer.plan, time(NULL), answer, end);
}

/* scontrol has ended, or has had its time. */
static void close_answer(void)
{
	kill(timer.pid, SIGKILL);
	close(timer.out);
	waitpid(timer.pid, NULL, 0);
	timer.pid = 0;
}

/* What is longer than the room is read and dropped. */
static void read_answer(void)
{
	size_t room = sizeof(timer.answer) - 1 - timer.length;
	char rest[512];
	time_t end = 0;
	ssize_t got;

	do {
		got = room ? read(timer.out, timer.answer + timer.length, room)
			   : read(timer.out, rest, sizeof(rest));
		if (got > 0 && room) {
			timer.length += (size_t)got;
			room -= (size_t)got;
		}
	} while (got > 0 || (got < 0 && errno == EINTR));
	if (got < 0 && errno == EAGAIN)
		return;
	timer.answer[timer.length] = '\0';
	close_answer();
	take(ddp_notice_read(timer.answer, &end), end);
}

int ddp_timer_fd(void)
{
	return timer.pid ? timer.out : -1;
}

int ddp_timer_timeout_ms(void)
{
	time_t due = ddp_notice_due(&timer.plan), ask = timer.plan.ask;
	time_t next = ask && (!due || ask < due) ? ask : due;
	time_t now = time(NULL);

	if (!timer.job[0] || timer.over || !next)
		return -1;
	return next <= now ? 0 : (int)(next - now) * 1000;
}

static void send_now(void)
{
	dprintf(STDERR_FILENO, "slurm-ddp: the ranks get SIG%s, %jd s before "
		"the job's end\n", ddp_notice_name(ddp_plugin.notice.number),
		(intmax_t)(timer.plan.end - time(NULL)));
	timer.over = true;
	if (timer.pid)
		close_answer();
}

int ddp_timer_run(void)
{
	time_t due;

	if (!timer.job[0] || timer.over)
		return 0;
	if (timer.pid)
		read_answer();
	if (timer.plan.ask && time(NULL) >= timer.plan.ask) {
		if (timer.pid) {	/* it has had its time */
			close_answer();
			take(DDP_NOTICE_NONE, 0);
		} else {
			ask();
		}
	}
	due = ddp_notice_due(&timer.plan);
	if (timer.over || !due || time(NULL) < due)
		return 0;
	send_now();
	return ddp_plugin.notice.number;
}
