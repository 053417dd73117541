/* SPDX-License-Identifier: BSD-3-Clause */
/* The supervisor: what it needs, and its way from the fork to its exit. */
#define _GNU_SOURCE
#include "supervisor/supervisor.h"

#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "supervisor/attempt.h"
#include "supervisor/listen.h"
#include "supervisor/report.h"

int ddp_supervisor_open(struct ddp_supervisor *supervisor,
			struct ddp_error *error)
{
	if (supervisor->report &&
	    ddp_report_check(supervisor->report, error) < 0)
		return -1;
	supervisor->listener = ddp_listen(supervisor->port_first,
					  supervisor->port_last,
					  &supervisor->port, error);
	return supervisor->listener < 0 ? -1 : 0;
}

static void write_report(const struct ddp_supervisor *supervisor,
			 struct ddp_attempt *attempt, time_t start)
{
	struct ddp_text text = { 0 };
	struct ddp_error error;

	if (!supervisor->report ||
	    ddp_report_write(supervisor->report, attempt, start,
			     ddp_attempt_code(attempt), &error) == 0)
		return;
	ddp_text_add_quoted(&text, "slurm-ddp: %s", error.text);
	ddp_text_add(&text, "\n");
	ddp_relay_say(&attempt->relay, &text);
	ddp_relay_finish(&attempt->relay);
}

int ddp_supervisor_run(const struct ddp_supervisor *supervisor,
		       const struct ddp_secret *secret)
{
	static struct ddp_attempt attempt;
	time_t start = time(NULL);
	struct termios before;
	bool terminal = tcgetattr(STDIN_FILENO, &before) == 0;
	int rc = ddp_attempt_run(&attempt, supervisor, secret);

	if (rc <= 0)
		return rc;
	write_report(supervisor, &attempt, start);
	/* An srun --pty that is killed leaves the terminal raw. */
	if (terminal && attempt.struck)
		tcsetattr(STDIN_FILENO, TCSANOW, &before);
	_exit(ddp_attempt_code(&attempt));
}
