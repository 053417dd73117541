/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "clock.h"
#include "layout/error.h"
#include "report.h"
#include "tool/tool.h"

enum { LINE_MAX_BYTES = 320 };

/* Sums over steps, in seconds. */
struct sums {
	uint64_t steps;
	double seconds, exposed, waited, busy;
};

/* What the others lost to a rank when it was the slowest. */
struct straggler {
	double lost;			/* since the line before, seconds */
	char host[64];
};

struct report {
	struct report_plan plan;
	FILE *log;			/* NULL: none */
	bool begun;			/* the log has a line of this run */
	bool terminal;
	int shown;			/* columns of the line that is to be
					   rewritten; 0: none is */
	double drawn;			/* when the last line was */
	uint64_t done;			/* the last step, 0: none yet */
	double seconds;			/* of all steps */
	struct sums recent;		/* since the line before */
	struct sums steady;		/* without the first of several */
	struct straggler *stragglers;	/* [ranks] */
};

/*
 * 0: not a terminal.  Nor is the one that mpirun puts before its own output,
 * which has no width.
 */
static int terminal_width(void)
{
	struct winsize size;

	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

int report_open(struct report **report, const struct report_plan *plan,
		struct ddp_error *error)
{
	struct report *new = calloc(1, sizeof(*new));
	struct straggler *stragglers = calloc((size_t)plan->ranks,
					      sizeof(*stragglers));

	if (!new || !stragglers) {
		ddp_error_set(error, DDP_ERROR_SYSTEM, "no memory for the "
			      "report on %d ranks", plan->ranks);
		goto fail;
	}
	new->plan = *plan;
	/* Emptied by the first line: a start that is refused loses none. */
	new->log = plan->log ? tool_open_log("--log", plan->log, error) : NULL;
	if (plan->log && !new->log)
		goto fail;
	new->terminal = terminal_width() > 0;
	new->stragglers = stragglers;
	*report = new;
	return 0;
fail:
	free(stragglers);
	free(new);
	return -1;
}

void report_close(struct report *report)
{
	if (!report)
		return;
	if (report->shown) {
		putchar('\n');
		fflush(stdout);
	}
	if (report->log)
		fclose(report->log);
	free(report->stragglers);
	free(report);
}

/* Add to a line; what does not fit is left out. */
__attribute__((format(printf, 2, 3)))
static void add(char *line, const char *format, ...)
{
	size_t length = strlen(line);
	va_list list;

	va_start(list, format);
	vsnprintf(line + length, LINE_MAX_BYTES - length, format, list);
	va_end(list);
}

static void add_duration(char *line, double seconds)
{
	/* Bounded, so that it is a whole number of 64 bits. */
	uint64_t s = (uint64_t)(fmin(seconds, 1e12) + 0.5);

	if (s < 60)
		add(line, "%" PRIu64 "s", s);
	else if (s < 3600)
		add(line, "%" PRIu64 "m%02" PRIu64 "s", s / 60, s % 60);
	else if (s < 86400)
		add(line, "%" PRIu64 "h%02" PRIu64 "m", s / 3600,
		    s % 3600 / 60);
	else
		add(line, "%" PRIu64 "d%02" PRIu64 "h", s / 86400,
		    s % 86400 / 3600);
}

/* printf() writes the sign of one that has it. */
static double unsigned_nan(double number)
{
	return isnan(number) ? (double)NAN : number;
}

static double share(double part, double whole)
{
	return whole > 0 ? part / whole : 0;
}

/* So many tokens a second, or samples where there are none. */
static void add_speed(const struct report *report, char *line,
		      const struct sums *sums)
{
	const struct report_plan *plan = &report->plan;
	uint64_t each = plan->tokens ? plan->tokens : plan->samples;
	const char *unit = report->terminal ? "tok" : "tokens";

	add(line, "%.0f %s/s", share((double)(each * sums->steps),
				     sums->seconds),
	    plan->tokens ? unit : "samples");
}

/* Which rank the others waited for most, and how much longer it computed. */
static void add_slowest(const struct report *report, char *line)
{
	const struct straggler *most = report->stragglers;

	if (report->plan.ranks == 1)
		return;
	for (int rank = 1; rank < report->plan.ranks; rank++)
		if (report->stragglers[rank].lost > most->lost)
			most = &report->stragglers[rank];
	if (most->lost > 0)
		add(line, "  slowest %d on %s +%.0f%%",
		    (int)(most - report->stragglers), most->host,
		    100 * share(most->lost, report->recent.busy));
}

/* What matters least comes last, for a narrow terminal cuts it off. */
static void compose(const struct report *report, char *line,
		    const struct report_step *step)
{
	const struct report_plan *plan = &report->plan;
	const struct sums *recent = &report->recent;
	int digits = snprintf(NULL, 0, "%" PRIu64, plan->steps);

	add(line, "step %*" PRIu64 "/%" PRIu64 "  loss %.4f%s  ", digits,
	    step->step, plan->steps, unsigned_nan(step->loss),
	    step->skipped ? " skipped" : "");
	if (!report->terminal)
		add(line, "lr %.2e  ", step->lr);
	add_speed(report, line, recent);
	add(line, "  exposed %.*f%%", !report->terminal,
	    100 * share(recent->exposed, recent->seconds));
	add_slowest(report, line);
	if (step->step < plan->steps) {
		add(line, "  left ");
		add_duration(line, share(report->steady.seconds,
					 (double)report->steady.steps) *
			     (double)(plan->steps - step->step));
	}
}

/*
 * Blanks go over what is left of the line before.  No more than fits: a line
 * that wraps could not be rewritten.
 */
static void rewrite(struct report *report, const char *line)
{
	int width = terminal_width(), length = (int)strlen(line), blanks;

	width = width > 0 ? width : 80;
	length = length < width - 1 ? length : width - 1;
	blanks = report->shown < width - 1 ? report->shown : width - 1;
	blanks = blanks > length ? blanks - length : 0;
	printf("\r%.*s%*s", length, line, blanks, "");
	report->shown = length;
}

static bool is_due(const struct report *report, const struct report_step *step)
{
	uint64_t steps = report->plan.steps;
	double since = clock_seconds() - report->drawn;

	if (step->step == 1 || step->step >= steps)
		return true;
	if (report->terminal)
		return since >= 0.1;
	return step->skipped || since >= 60 ||
		step->step % (steps / 10 + (steps % 10 > 0)) == 0;
}

static void sums_add(struct sums *sums, const struct report_step *step)
{
	sums->steps++;
	sums->seconds += step->seconds;
	sums->exposed += step->exposed;
	sums->waited += step->waited;
	sums->busy += step->busy;
}

static void count(struct report *report, const struct report_step *step)
{
	struct straggler *slowest = &report->stragglers[step->slowest];

	if (report->done == 1 && report->plan.steps > 2)
		report->steady = (struct sums){ 0 };
	report->done = step->step;
	report->seconds += step->seconds;
	sums_add(&report->recent, step);
	sums_add(&report->steady, step);
	slowest->lost += step->slowest_busy - step->busy;
	snprintf(slowest->host, sizeof(slowest->host), "%s", step->host);
}

static void log_begin(struct report *report, uint64_t step)
{
	/* What is no regular file has nothing to be emptied of. */
	if (!report->begun && ftruncate(fileno(report->log), 0) < 0)
		errno = 0;
	report->begun = true;
	fprintf(report->log, "{\"step\":%" PRIu64, step);
}

/* With 17 digits any double reads back exactly. */
static void log_number(FILE *log, const char *name, double value, int digits)
{
	if (isfinite(value))
		fprintf(log, ",\"%s\":%.*g", name, digits, value);
	else
		fprintf(log, ",\"%s\":null", name);
}

static int log_end(struct report *report, struct ddp_error *error)
{
	fputs("}\n", report->log);
	if (fflush(report->log) == 0 && !ferror(report->log))
		return 0;
	return ddp_error_set(error, DDP_ERROR_SYSTEM, "cannot write --log %s: "
			     "%s; make room there or name another file",
			     report->plan.log, strerror(errno));
}

static int log_step(struct report *report, const struct report_step *step,
		    struct ddp_error *error)
{
	FILE *log = report->log;

	if (!log)
		return 0;
	log_begin(report, step->step);
	log_number(log, "loss", step->loss, 17);
	log_number(log, "lr", step->lr, 17);
	log_number(log, "norm", step->norm, 17);
	fprintf(log, ",\"skipped\":%s,\"samples\":%" PRIu64,
		step->skipped ? "true" : "false",
		step->step * report->plan.samples);
	log_number(log, "seconds", report->seconds, 9);
	log_number(log, "exposed", step->exposed, 9);
	log_number(log, "waited", step->waited, 9);
	log_number(log, "busy", step->busy, 9);
	log_number(log, "slowest_busy", step->slowest_busy, 9);
	fprintf(log, ",\"slowest\":%d", step->slowest);
	fputs(",\"host\":", log);
	tool_print_json(log, step->host);
	return log_end(report, error);
}

static int log_eval(struct report *report, uint64_t step, double loss,
		    struct ddp_error *error)
{
	if (!report->log)
		return 0;
	log_begin(report, step);
	log_number(report->log, "eval_loss", loss, 17);
	return log_end(report, error);
}

int report_step(struct report *report, const struct report_step *step,
		struct ddp_error *error)
{
	char line[LINE_MAX_BYTES] = "";

	count(report, step);
	if (log_step(report, step, error) < 0)
		return -1;
	if (!is_due(report, step))
		return 0;
	compose(report, line, step);
	if (report->terminal)
		rewrite(report, line);
	else
		puts(line);
	report->drawn = clock_seconds();
	report->recent = (struct sums){ 0 };
	for (int rank = 0; rank < report->plan.ranks; rank++)
		report->stragglers[rank].lost = 0;
	return tool_flush(error);
}

/* A line that stays, after or in place of the one that is rewritten. */
static int say(struct report *report, const char *line,
	       struct ddp_error *error)
{
	if (report->shown)
		putchar('\n');
	report->shown = 0;
	puts(line);
	return tool_flush(error);
}

int report_eval(struct report *report, uint64_t step, double loss,
		struct ddp_error *error)
{
	char line[LINE_MAX_BYTES] = "";

	add(line, "step %" PRIu64 "  eval loss %.4f", step,
	    unsigned_nan(loss));
	if (log_eval(report, step, loss, error) < 0)
		return -1;
	return say(report, line, error);
}

int report_end(struct report *report, struct ddp_error *error)
{
	const struct report_plan *plan = &report->plan;
	const struct sums *steady = &report->steady;
	uint64_t each = plan->tokens ? plan->tokens : plan->samples;
	char line[LINE_MAX_BYTES] = "";

	add(line, "%" PRIu64 " %s in %.2f s%s ", report->done * each,
	    plan->tokens ? "tokens" : "samples", report->seconds,
	    steady->steps < report->done ? "; after the first step" : ":");
	add_speed(report, line, steady);
	add(line, ", exposed %.1f%%, parallel efficiency %.1f%%",
	    100 * share(steady->exposed, steady->seconds),
	    100 - 100 * share(steady->waited, steady->seconds));
	return say(report, line, error);
}
