/* SPDX-License-Identifier: BSD-3-Clause */
/* When a job's ranks get their signal, and which. */
#include "options/notice.h"

#include <signal.h>
#include <string.h>
#include <strings.h>

#include "util/scan.h"

/* The signals of Slurm's --signal that a program can handle. */
static const struct {
	const char *name;
	int number;
} signals[] = {
	{ "HUP", SIGHUP }, { "INT", SIGINT }, { "QUIT", SIGQUIT },
	{ "ABRT", SIGABRT }, { "ALRM", SIGALRM }, { "TERM", SIGTERM },
	{ "USR1", SIGUSR1 }, { "USR2", SIGUSR2 }, { "URG", SIGURG },
	{ "CONT", SIGCONT }, { "TSTP", SIGTSTP }, { "TTIN", SIGTTIN },
	{ "TTOU", SIGTTOU }, { "XCPU", SIGXCPU },
};

enum { COUNT = sizeof(signals) / sizeof(signals[0]) };

const char *ddp_notice_name(int number)
{
	int i;

	for (i = 0; i < COUNT; i++)
		if (signals[i].number == number)
			return signals[i].name;
	return NULL;
}

/* Read a signal up to '@' and move *at there. Returns 0 where it is none. */
static int scan_signal(const char **at)
{
	size_t length = strcspn(*at, "@");
	const char *name = *at;
	uint64_t number;
	int i;

	if (ddp_scan_number(at, 1, 64, &number) == 0)
		return ddp_notice_name((int)number) ? (int)number : 0;
	*at += length;
	if (length > 3 && strncasecmp(name, "SIG", 3) == 0) {
		name += 3;
		length -= 3;
	}
	for (i = 0; i < COUNT; i++)
		if (strlen(signals[i].name) == length &&
		    strncasecmp(signals[i].name, name, length) == 0)
			return signals[i].number;
	return 0;
}

int ddp_notice_parse(const char *text, struct ddp_notice *notice,
		     struct ddp_error *error)
{
	const char *at = text;
	int number = scan_signal(&at);
	uint64_t seconds;

	if (!number || *at++ != '@' ||
	    ddp_scan_number(&at, 1, DDP_NOTICE_SECONDS_MAX, &seconds) < 0 ||
	    *at)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				     "--ddp-signal=%.64s: not SIGNAL@SECONDS; "
				     "give a signal that a program can handle "
				     "and a time from 1 to %d, such as USR1@90",
				     text, DDP_NOTICE_SECONDS_MAX);
	notice->number = number;
	notice->before_s = (uint32_t)seconds;
	return 0;
}

enum ddp_notice_answer ddp_notice_read(const char *text, time_t *end)
{
	static const char runs[] = "RUNNING ";
	const char *at = text + strlen(runs);
	uint64_t seconds;

	if (strncmp(text, "SUSPENDED ", 10) == 0)
		return DDP_NOTICE_SUSPENDED;
	if (strncmp(text, runs, strlen(runs)) != 0)
		return DDP_NOTICE_NONE;
	if (strncmp(at, "NONE", 4) == 0)
		return DDP_NOTICE_UNLIMITED;
	if (ddp_scan_number(&at, 1, UINT32_MAX, &seconds) < 0 || *at != '\n')
		return DDP_NOTICE_NONE;
	*end = (time_t)seconds;
	return DDP_NOTICE_END;
}

void ddp_notice_begin(struct ddp_notice_plan *plan, uint32_t before_s,
		      time_t now)
{
	*plan = (struct ddp_notice_plan){
		.before_s = before_s, .start = now, .ask = now,
	};
}

time_t ddp_notice_due(const struct ddp_notice_plan *plan)
{
	time_t due = plan->end - plan->before_s;

	if (!plan->end)
		return 0;
	return due > plan->start ? due :
	       plan->start + (plan->end - plan->start) / 2;
}

void ddp_notice_answer(struct ddp_notice_plan *plan, time_t now,
		       enum ddp_notice_answer answer, time_t end)
{
	time_t last;

	plan->ask = now + DDP_NOTICE_AGAIN_S;
	if (answer == DDP_NOTICE_NONE)
		return;
	plan->end = answer == DDP_NOTICE_END ? end : 0;
	if (answer == DDP_NOTICE_UNLIMITED)
		plan->ask = 0;
	if (answer != DDP_NOTICE_END)
		return;
	last = ddp_notice_due(plan) - DDP_NOTICE_LAST_S;
	plan->ask = now >= last ? 0 : last;
	if (plan->ask > now + DDP_NOTICE_ASK_S)
		plan->ask = now + DDP_NOTICE_ASK_S;
}
