/* SPDX-License-Identifier: BSD-3-Clause */
/* A rank of a preflight: its start, and the way to rank 0's judge. */
#define _GNU_SOURCE
#include "preflight.h"

#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "layout/hostlist.h"
#include "tool/promise.h"
#include "tool/tool.h"
#include "util/clock.h"
#include "util/scan.h"
#include "util/text.h"

enum {
	EARLY_MS = 1000,	/* before the judge's own limit */
	LOST_MS = 1000		/* in which the judge can tell why */
};

static void say(const struct preflight *preflight, const char *why)
{
	struct ddp_error error;

	ddp_error_set(&error, DDP_ERROR_SYSTEM, "%s: %s", preflight->host,
		      why);
	tool_print_error("ddp-bench", &error);
}

/* The number in the first of two variables that is set; -1: there is none. */
static int read_either(const char *name, const char *other)
{
	uint64_t number;
	int rc = ddp_scan_variable(name, 0, INT_MAX, &number);

	if (rc > 0)
		rc = ddp_scan_variable(other, 0, INT_MAX, &number);
	return rc == 0 ? (int)number : -1;
}

/* Slurm says who the ranks are, if RANK and WORLD_SIZE do not. */
static int begin(struct preflight *preflight, const struct options *options,
		 struct ddp_error *error)
{
	const char *job = getenv("SLURM_JOB_ID");
	const char *step = getenv("SLURM_STEP_ID");
	const char *host = getenv("SLURMD_NODENAME");
	struct tool_promise promise;

	if (tool_promise_read(&promise, error) < 0)
		return -1;
	*preflight = (struct preflight){
		.options = options, .rank = promise.rank,
		.size = promise.size, .master = getenv("MASTER_ADDR"),
		.port = getenv("MASTER_PORT"),
		.local_rank = read_either("LOCAL_RANK", "SLURM_LOCALID")
	};
	if (preflight->rank < 0 || preflight->size < 0) {
		preflight->rank = read_either("SLURM_PROCID", "RANK");
		preflight->size = promise.tasks;
	}
	if (preflight->rank < 0 || preflight->size <= preflight->rank ||
	    !preflight->master || !preflight->port)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--preflight "
				     "needs RANK, WORLD_SIZE, MASTER_ADDR and "
				     "MASTER_PORT; start it by srun --ddp");
	if (preflight->local_rank < 0)
		preflight->local_rank = 0;
	snprintf(preflight->tag, sizeof(preflight->tag), "%s.%s",
		 job ? job : "", step ? step : "");
	if (host)
		snprintf(preflight->host, FACT_HOST, "%s", host);
	else
		gethostname(preflight->host, FACT_HOST - 1);
	ddp_text_quote(preflight->host);
	return 0;
}

/* The text of on_alarm, which may print by write(2) only. */
static char late_text[2 * FACT_TEXT + DDP_HOSTNAME_MAX];

static void on_alarm(int number)
{
	(void)number;
	if (write(STDERR_FILENO, late_text, strlen(late_text)) > 0)
		sleep(2);
	_exit(1);
}

/*
 * A resolver has no limit of its own that could be set. end_ms is of
 * ddp_clock_ms.
 */
static void set_alarm(const struct preflight *preflight, int64_t end_ms)
{
	int64_t left_ms = end_ms - ddp_clock_ms();

	snprintf(late_text, sizeof(late_text), "ddp-bench: %s: cannot resolve "
		 "the master's address %.*s in time; look at the node's DNS "
		 "servers\n", preflight->host, DDP_HOSTNAME_MAX,
		 preflight->master);
	signal(SIGALRM, on_alarm);
	alarm(left_ms > 1000 ? (unsigned int)((left_ms + 999) / 1000) : 1);
}

/*
 * The judge can only tell that this rank did not come: so tell the cause before
 * it does. But rank 0 may just be slow: try on as long as it has patience, and
 * then leave it time to speak. Returns the connection, or -1.
 */
static int meet(const struct preflight *preflight, struct facts *clock)
{
	const struct options *options = preflight->options;
	int64_t limit = preflight_limit_ms(options, false);
	int64_t patience = limit + preflight_patience_ms(options, false);
	int64_t begin_ms = ddp_clock_ms();
	char why[WHY_TEXT] = "";
	int fd;

	set_alarm(preflight, begin_ms + limit);
	fd = preflight_meet(preflight, begin_ms + limit - EARLY_MS, clock, why);
	if (fd < 0) {
		char more[WHY_TEXT + 64];

		snprintf(more, sizeof(more), "%s; trying on for %d s", why,
			 (int)(patience - limit) / 1000);
		say(preflight, more);
		set_alarm(preflight, begin_ms + patience);
		fd = preflight_meet(preflight, begin_ms + patience - EARLY_MS,
				    clock, why);
	}
	alarm(0);
	return fd;
}

static int start_judge(const struct preflight *preflight)
{
	char why[WHY_TEXT];
	int fd = preflight_listen(preflight, why);

	if (fd < 0) {
		say(preflight, why);
		return -1;
	}
	if (preflight_fork() == 0)
		_exit(preflight_serve(preflight, fd));
	close(fd);
	return 0;
}

int preflight_run(const struct options *options)
{
	struct preflight preflight;
	struct facts clock = { .clock_error_s = -1 };
	struct ddp_error error = { 0 };
	struct worker worker;
	int server, status;

	if (begin(&preflight, options, &error) < 0) {
		if (tool_promise_is_first())
			tool_print_error("ddp-bench", &error);
		return 2;
	}
	if (preflight.rank == 0 && start_judge(&preflight) < 0)
		return 1;
	if (worker_start(&preflight, &worker) < 0)
		return 1;
	server = meet(&preflight, &clock);
	if (server < 0)
		return 1;
	status = worker_mediate(&preflight, &worker, server, &clock);
	if (status >= 0)
		return status;
	/* Whoever ends the step has told why; leave time for that. */
	if (preflight.rank == 0)
		say(&preflight, "the process that judges has ended by itself");
	else
		poll(NULL, 0, LOST_MS);
	return 1;
}
