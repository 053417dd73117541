/* SPDX-License-Identifier: BSD-3-Clause */
/* The supervisor: what it needs, and its way from the fork to its exit. */
#define _GNU_SOURCE
#include "supervisor/supervisor.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "supervisor/attempt.h"
#include "supervisor/child.h"
#include "supervisor/report.h"
#include "util/file.h"
#include "util/net.h"

/* What goes from one attempt to the next. */
struct course {
	struct ddp_supervisor *wish;
	struct termios terminal;	/* as it was before */
	bool has_terminal;
	char *reports;			/* of all, commas between; NULL: none */
	int code;			/* of the last; -1: there was none */
};

/* ---- the port to which the agents connect */

static uint16_t get_port(int fd)
{
	struct sockaddr_in6 address;	/* IPv4's port is at the same place */
	socklen_t size = sizeof(address);

	if (getsockname(fd, (struct sockaddr *)&address, &size) < 0)
		return 0;
	return ntohs(address.sin6_port);
}

/* Many sruns share the range: each begins somewhere else in it. 0: any port. */
static int listen_in(uint16_t first, uint16_t last)
{
	uint32_t count = (uint32_t)last - first + 1, start = 0, i;
	int fd = -1;

	if (ddp_random_fill(&start, sizeof(start)) < 0)
		start = (uint32_t)getpid();
	for (i = 0; i < count && fd < 0; i++) {
		fd = ddp_listen_at((uint16_t)(first + (start % count + i) %
					      count), false);
		if (fd < 0 && errno != EADDRINUSE && errno != EACCES)
			break;
	}
	return fd;
}

/* Listens on all addresses, at a port from first to last; 0: any. */
static int open_port(struct ddp_supervisor *supervisor, struct ddp_error *error)
{
	uint16_t first = supervisor->port_first, last = supervisor->port_last;
	int fd = listen_in(first, last);

	if (fd < 0 && first)
		return ddp_error_set(error, DDP_ERROR_SYSTEM,
				     "no port from %u to %u (SrunPortRange) "
				     "for the nodes to connect to: %s; widen "
				     "the range, or use --ddp-supervise=off",
				     first, last, strerror(errno));
	if (fd < 0)
		return ddp_error_set(error, DDP_ERROR_SYSTEM,
				     "no port for the nodes to connect to: "
				     "%s; use --ddp-supervise=off",
				     strerror(errno));
	supervisor->port = get_port(fd);
	supervisor->listener = fd;
	return 0;
}

/* ---- attempts */

int ddp_supervisor_open(struct ddp_supervisor *supervisor,
			struct ddp_error *error)
{
	if (supervisor->report &&
	    ddp_report_check(supervisor->report, error) < 0)
		return -1;
	if (open_port(supervisor, error) < 0)
		return -1;
	if (ddp_child_block(error) == 0)
		return 0;
	close(supervisor->listener);
	return 1;
}

static void write_report(const char *path, const char *report,
			 struct ddp_relay *relay)
{
	struct ddp_text text = { 0 };
	struct ddp_error error;

	if (ddp_report_write(path, report, &error) == 0)
		return;
	ddp_text_add_quoted(&text, "slurm-ddp: %s", error.text);
	ddp_text_add(&text, "\n");
	ddp_relay_say(relay, &text);
	ddp_relay_finish(relay);
}

/* After each attempt, as nobody knows whether there will be a last one. */
static void report(struct course *course, struct ddp_attempt *attempt,
		   time_t start)
{
	char *text = ddp_report_format(&attempt->facts, start, NULL);
	char *all = NULL;

	if (course->wish->restart.max &&
	    asprintf(&all, "%s%s%s", course->reports ? course->reports : "",
		     course->reports ? ",\n" : "", text ? text : "null") >= 0) {
		free(course->reports);
		free(text);
		course->reports = all;
		text = ddp_report_format(&attempt->facts, start, all);
	}
	write_report(course->wish->report, text, &attempt->relay);
	free(text);
}

/*
 * Whether nobody expects another attempt. Slurm says of each failure that the
 * step is cancelled: that tells something where nobody is named.
 */
static bool is_over(struct ddp_attempt *attempt)
{
	const struct ddp_facts *facts = &attempt->facts;

	return ddp_facts_code(facts) == 0 || ddp_attempt_unwanted(attempt) ||
	       (!ddp_facts_named(facts) &&
		facts->verdict.kind != DDP_VERDICT_SAVED &&
		(facts->said.cancelled_ns || facts->said.aborted_ns));
}

/* Whether the step is to start again. */
static bool is_next(struct ddp_restart *restart, struct ddp_attempt *attempt)
{
	struct ddp_text text = { 0 };
	bool again;

	if (is_over(attempt))
		return false;
	again = ddp_restart_next(restart, &attempt->facts.verdict,
				 &attempt->facts.step,
				 ddp_facts_gone(&attempt->facts), &text);
	ddp_relay_say(&attempt->relay, &text);
	ddp_relay_finish(&attempt->relay);
	return again && !ddp_attempt_unwanted(attempt);
}

/*
 * One attempt. Returns 0 in its child, 1 if another one follows; the last does
 * not return. -1: there is no child.
 */
static int try(struct course *course, struct ddp_secret *secret)
{
	static struct ddp_attempt attempt;
	time_t start = time(NULL);
	int rc;

	/* What an earlier attempt has left cannot join this one. */
	if (ddp_proof_random(secret->bytes) < 0)
		return -1;
	rc = ddp_attempt_run(&attempt, course->wish, secret);
	if (rc <= 0)
		return rc;
	/* An srun --pty that is killed leaves the terminal raw. */
	if (course->has_terminal && attempt.facts.struck)
		tcsetattr(STDIN_FILENO, TCSANOW, &course->terminal);
	course->code = ddp_facts_code(&attempt.facts);
	if (course->wish->report)
		report(course, &attempt, start);
	if (!is_next(&course->wish->restart, &attempt))
		_exit(course->code);
	ddp_attempt_clear(&attempt);
	return 1;
}

int ddp_supervisor_run(struct ddp_supervisor *supervisor,
		       struct ddp_secret *secret)
{
	struct course course = { .wish = supervisor, .code = -1 };
	int rc;

	course.has_terminal = tcgetattr(STDIN_FILENO, &course.terminal) == 0;
	do
		rc = try(&course, secret);
	while (rc > 0);
	if (rc < 0 && course.code >= 0) {
		dprintf(STDERR_FILENO, "slurm-ddp: cannot start srun again: "
			"%s\n", strerror(errno));
		_exit(course.code);
	}
	return rc;
}
