/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints the progress of a run, and writes its log. */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log/progress.h"
#include "tool/tool.h"
#include "util/clock.h"
#include "util/error.h"

/* ROWS: of the table, before the names of its columns come again */
enum { LINE_MAX_BYTES = 320, ROWS = 20 };

/* Sums over steps, in seconds. */
struct sums {
	uint64_t steps;
	double seconds, exposed, waited, busy;
};

/* The time that the others lost to a rank when it was the slowest. */
struct straggler {
	double lost;			/* since the line before, seconds */
	char host[64];
};

/* The log: a JSON object a line. */
struct json_log {
	FILE *file;			/* NULL: none */
	const char *path;
	bool begun;			/* it has a line of this run */
	off_t kept;			/* bytes of the steps before this run */
};

struct progress {
	struct progress_plan plan;
	struct json_log log;
	bool terminal;
	int shown;			/* columns of the line that is to be
					   rewritten; 0: none is */
	unsigned rows;			/* that have begun */
	double drawn;			/* when the last line was */
	uint64_t done;			/* the last step, 0: none yet */
	double seconds;			/* of all steps */
	struct sums recent;		/* since the line before */
	struct sums steady;		/* of this run, without the first of
					   several */
	struct straggler *stragglers;	/* [ranks] */
	double peak, predicted;		/* see progress_set_rates() */
};

/* ---- the log */

/*
 * The bytes of the lines up to step `done`: a last line that was not finished
 * does not count, and a later step ends them.
 */
static int measure_lines(FILE *file, const char *path, uint64_t done,
			 off_t *kept, struct ddp_error *error)
{
	char *line = NULL;
	size_t size = 0;
	ssize_t length;
	uint64_t step;
	int result = 0;

	while ((length = getline(&line, &size, file)) > 0 &&
	       line[length - 1] == '\n') {
		if (sscanf(line, "{\"step\":%" SCNu64 ",", &step) != 1) {
			result = ddp_error_set(error, DDP_ERROR_ARGUMENT,
					       "--log %s has a line that is "
					       "not of a log, at byte %jd; "
					       "name the log that --resume "
					       "is to go on with, or a new "
					       "file", path, (intmax_t)*kept);
			break;
		}
		if (step > done)
			break;
		*kept += length;
	}
	free(line);
	return result;
}

/* Finds how much of a regular file stays; a pipe keeps nothing. */
static int find_kept(struct json_log *log, uint64_t done,
		     struct ddp_error *error)
{
	struct stat status;
	FILE *file;
	int result;

	if (done == 0 || fstat(fileno(log->file), &status) < 0 ||
	    !S_ISREG(status.st_mode))
		return 0;
	file = fopen(log->path, "re");
	if (!file)
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "cannot read "
				     "--log %s, which --resume is to go on "
				     "with: %s; name a new file", log->path,
				     strerror(errno));
	result = measure_lines(file, log->path, done, &log->kept, error);
	fclose(file);
	return result;
}

/*
 * Creates or opens the file, to go on after the lines of the first `done`
 * steps. A file that is not such a log is an error where done is above 0.
 */
static int open_log(struct json_log *log, const char *path, uint64_t done,
		    struct ddp_error *error)
{
	log->path = path;
	log->file = tool_open_log("--log", path, error);
	if (!log->file)
		return -1;
	if (find_kept(log, done, error) == 0)
		return 0;
	fclose(log->file);
	return -1;
}

static void begin_line(struct json_log *log, uint64_t step)
{
	/* This fails for a pipe, as only a regular file can be cut. */
	if (!log->begun && ftruncate(fileno(log->file), log->kept) < 0)
		errno = 0;
	log->begun = true;
	fprintf(log->file, "{\"step\":%" PRIu64, step);
}

/* Any double reads back exactly from 17 digits. */
static void write_number(struct json_log *log, const char *name, double value,
			 int digits)
{
	if (isfinite(value))
		fprintf(log->file, ",\"%s\":%.*g", name, digits, value);
	else
		fprintf(log->file, ",\"%s\":null", name);
}

static int end_line(struct json_log *log, struct ddp_error *error)
{
	fputs("}\n", log->file);
	if (fflush(log->file) == 0 && !ferror(log->file))
		return 0;
	return ddp_error_set(error, DDP_ERROR_SYSTEM, "cannot write --log %s: "
			     "%s; make room there or name another file",
			     log->path, strerror(errno));
}

static double divide(double part, double whole)
{
	return whole > 0 ? part / whole : 0;
}

static double find_mfu(const struct progress *progress, double seconds)
{
	return divide(progress->plan.flops, progress->peak * seconds);
}

static int log_step(struct progress *progress,
		    const struct progress_step *step, struct ddp_error *error)
{
	const struct progress_plan *plan = &progress->plan;
	struct json_log *log = &progress->log;
	double mfu = find_mfu(progress, step->seconds);
	double over = divide(step->seconds, progress->predicted);

	begin_line(log, step->step);
	write_number(log, "loss", step->loss, 17);
	write_number(log, "lr", step->lr, 17);
	write_number(log, "norm", step->norm, 17);
	if (step->loss_scale > 0)
		write_number(log, "loss_scale", step->loss_scale, 17);
	fprintf(log->file, ",\"skipped\":%s,\"samples\":%" PRIu64
		",\"tokens\":%" PRIu64, step->skipped ? "true" : "false",
		step->step * plan->samples, step->step * plan->tokens);
	write_number(log, "seconds", progress->seconds, 9);
	write_number(log, "exposed", step->exposed, 9);
	write_number(log, "waited", step->waited, 9);
	write_number(log, "busy", step->busy, 9);
	write_number(log, "slowest_busy", step->slowest_busy, 9);
	fprintf(log->file, ",\"slowest\":%d,\"host\":", step->slowest);
	tool_print_json(log->file, step->host);
	if (mfu > 0)
		write_number(log, "mfu", mfu, 9);
	if (over > 0)
		write_number(log, "over_predicted", over, 9);
	return end_line(log, error);
}

/* ---- the table */

/*
 * Returns 0 if there is no terminal. The one that mpirun puts before its own
 * output has no width either, and does not count.
 */
static int find_width(void)
{
	struct winsize size;

	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

int progress_open(struct progress **progress, const struct progress_plan *plan,
		  struct ddp_error *error)
{
	struct progress *new = calloc(1, sizeof(*new));
	struct straggler *stragglers = calloc((size_t)plan->ranks,
					      sizeof(*stragglers));

	if (!new || !stragglers) {
		ddp_error_set(error, DDP_ERROR_SYSTEM, "no memory for the "
			      "report on %d ranks", plan->ranks);
		goto fail;
	}
	new->plan = *plan;
	new->done = plan->done;
	new->seconds = plan->seconds;
	if (plan->log &&
	    open_log(&new->log, plan->log, plan->done, error) < 0)
		goto fail;
	new->terminal = find_width() > 0;
	new->stragglers = stragglers;
	*progress = new;
	return 0;
fail:
	free(stragglers);
	free(new);
	return -1;
}

void progress_set_rates(struct progress *progress, double peak,
			double predicted)
{
	progress->peak = peak;
	progress->predicted = predicted;
}

void progress_close(struct progress *progress)
{
	if (!progress)
		return;
	if (progress->shown) {
		putchar('\n');
		fflush(stdout);
	}
	if (progress->log.file)
		fclose(progress->log.file);
	free(progress->stragglers);
	free(progress);
}

/* Append to a line; what does not fit is left out. */
__attribute__((format(printf, 2, 3)))
static void append(char *line, const char *format, ...)
{
	size_t length = strlen(line);
	va_list list;

	va_start(list, format);
	vsnprintf(line + length, LINE_MAX_BYTES - length, format, list);
	va_end(list);
}

static void append_duration(char *line, double seconds)
{
	/* Bounded, so that it is a whole number of 64 bits. */
	uint64_t s = (uint64_t)(fmin(seconds, 1e12) + 0.5);

	if (s < 60)
		append(line, " %5" PRIu64 "s", s);
	else if (s < 3600)
		append(line, " %2" PRIu64 "m%02" PRIu64 "s", s / 60, s % 60);
	else if (s < 86400)
		append(line, " %2" PRIu64 "h%02" PRIu64 "m", s / 3600,
		       s % 3600 / 60);
	else
		append(line, " %2" PRIu64 "d%02" PRIu64 "h", s / 86400,
		       s % 86400 / 3600);
}

/* printf() would print the sign of a NaN. */
static double drop_nan_sign(double number)
{
	return isnan(number) ? (double)NAN : number;
}

/* Tokens a second, or samples for a model without tokens. */
static const char *name_speed(const struct progress *progress)
{
	return progress->plan.tokens ? "tokens/s" : "samples/s";
}

static double find_speed(const struct progress *progress,
			 const struct sums *sums)
{
	const struct progress_plan *plan = &progress->plan;
	uint64_t each = plan->tokens ? plan->tokens : plan->samples;

	return divide((double)(each * sums->steps), sums->seconds);
}

/* Appends the rank that the others waited for most, and how much longer. */
static void append_slowest(const struct progress *progress, char *line)
{
	const struct straggler *most = progress->stragglers;

	if (progress->plan.ranks == 1)
		return;
	for (int rank = 1; rank < progress->plan.ranks; rank++)
		if (progress->stragglers[rank].lost > most->lost)
			most = &progress->stragglers[rank];
	if (most->lost > 0)
		append(line, " %d %s +%.0f%%",
		       (int)(most - progress->stragglers), most->host,
		       100 * divide(most->lost, progress->recent.busy));
}

/* Columns of "STEP/STEPS", or of its name where that is longer. */
static int find_step_width(const struct progress *progress)
{
	int digits = snprintf(NULL, 0, "%" PRIu64, progress->plan.steps);

	return digits > 1 ? 2 * digits + 1 : 4;
}

/*
 * A row of the table. With 6 digits of steps, 16 ranks and a node's name of 15
 * bytes it has 78 columns. The least important comes last: a narrow terminal
 * cuts it off.
 */
static void compose(const struct progress *progress, char *line,
		    const struct progress_step *step)
{
	const struct progress_plan *plan = &progress->plan;
	const struct sums *recent = &progress->recent;

	append(line, "%*" PRIu64 "/%" PRIu64 " %7.4f %8.2e %*.0f %6.1f%%",
	       find_step_width(progress) / 2, step->step, plan->steps,
	       drop_nan_sign(step->loss), step->lr,
	       (int)strlen(name_speed(progress)), find_speed(progress, recent),
	       100 * divide(recent->exposed, recent->seconds));
	append_duration(line, divide(progress->steady.seconds,
				     (double)progress->steady.steps) *
			(double)(plan->steps - step->step));
	append_slowest(progress, line);
}

/*
 * A terminal's row is written over the one before, and blanks over the rest of
 * that. A row that wraps could not be overwritten, so print only what fits.
 */
static void print_row(struct progress *progress, const char *line)
{
	int width = find_width(), length = (int)strlen(line), blanks;

	if (!progress->terminal) {
		puts(line);
		return;
	}
	width = width > 0 ? width : 80;
	length = length < width - 1 ? length : width - 1;
	blanks = progress->shown < width - 1 ? progress->shown : width - 1;
	blanks = blanks > length ? blanks - length : 0;
	printf("\r%.*s%*s", length, line, blanks, "");
	progress->shown = length;
}

static bool is_due(const struct progress *progress,
		   const struct progress_step *step)
{
	uint64_t steps = progress->plan.steps, done = progress->plan.done;
	double since = ddp_clock_seconds() - progress->drawn;

	if (step->step == done + 1 || step->step >= steps)
		return true;
	if (progress->terminal)
		return since >= 0.1;
	return since >= 60 ||
		step->step % (steps / 10 + (steps % 10 > 0)) == 0;
}

static void add_step(struct sums *sums, const struct progress_step *step)
{
	sums->steps++;
	sums->seconds += step->seconds;
	sums->exposed += step->exposed;
	sums->waited += step->waited;
	sums->busy += step->busy;
}

static void count_step(struct progress *progress,
		       const struct progress_step *step)
{
	struct straggler *slowest = &progress->stragglers[step->slowest];
	const struct progress_plan *plan = &progress->plan;

	if (progress->done == plan->done + 1 && plan->steps > plan->done + 2)
		progress->steady = (struct sums){ 0 };
	progress->done = step->step;
	progress->seconds += step->seconds;
	add_step(&progress->recent, step);
	add_step(&progress->steady, step);
	slowest->lost += step->slowest_busy - step->busy;
	snprintf(slowest->host, sizeof(slowest->host), "%s", step->host);
}

/* Ends the row that is rewritten, which stays as it is. */
static void end_row(struct progress *progress)
{
	if (progress->shown)
		putchar('\n');
	progress->shown = 0;
}

static void print_names(struct progress *progress)
{
	char line[LINE_MAX_BYTES] = "";

	append(line, "%-*s %7s %8s %s exposed   left%s",
	       find_step_width(progress), "step", "loss", "lr",
	       name_speed(progress),
	       progress->plan.ranks > 1 ? " slowest rank, node" : "");
	print_row(progress, line);
	end_row(progress);
}

int progress_print_line(struct progress *progress, const char *line,
			struct ddp_error *error)
{
	end_row(progress);
	puts(line);
	return tool_flush(error);
}

static int print_skip(struct progress *progress,
		      const struct progress_step *step,
		      struct ddp_error *error)
{
	char line[LINE_MAX_BYTES] = "";

	append(line, "step %" PRIu64 "  skipped, loss %.4f", step->step,
	       drop_nan_sign(step->loss));
	if (step->loss_scale > 0)
		append(line, ", loss scale %g", step->loss_scale);
	return progress_print_line(progress, line, error);
}

int progress_print_step(struct progress *progress,
			const struct progress_step *step,
			struct ddp_error *error)
{
	char line[LINE_MAX_BYTES] = "";

	count_step(progress, step);
	if (progress->log.file && log_step(progress, step, error) < 0)
		return -1;
	if (step->skipped && print_skip(progress, step, error) < 0)
		return -1;
	if (!is_due(progress, step))
		return 0;
	if (!progress->shown && progress->rows++ % ROWS == 0)
		print_names(progress);
	compose(progress, line, step);
	print_row(progress, line);
	progress->drawn = ddp_clock_seconds();
	progress->recent = (struct sums){ 0 };
	for (int rank = 0; rank < progress->plan.ranks; rank++)
		progress->stragglers[rank].lost = 0;
	return tool_flush(error);
}

int progress_print_eval(struct progress *progress, uint64_t step, double loss,
			struct ddp_error *error)
{
	char line[LINE_MAX_BYTES] = "";

	append(line, "step %" PRIu64 "  eval loss %.4f", step,
	       drop_nan_sign(loss));
	if (progress->log.file) {
		begin_line(&progress->log, step);
		write_number(&progress->log, "eval_loss", loss, 17);
		if (end_line(&progress->log, error) < 0)
			return -1;
	}
	return progress_print_line(progress, line, error);
}

double progress_count_seconds(const struct progress *progress)
{
	return progress ? progress->seconds : 0;
}

int progress_print_end(struct progress *progress, struct ddp_error *error)
{
	const struct progress_plan *plan = &progress->plan;
	const struct sums *steady = &progress->steady;
	uint64_t each = plan->tokens ? plan->tokens : plan->samples;
	uint64_t done = progress->done - plan->done;
	char line[LINE_MAX_BYTES] = "";

	append(line, "%" PRIu64 " %s in %.2f s%s %.0f %s, exposed %.1f%%, "
	       "parallel efficiency %.1f%%", done * each,
	       plan->tokens ? "tokens" : "samples",
	       progress->seconds - plan->seconds,
	       steady->steps < done ? "; after the first step" : ":",
	       find_speed(progress, steady), name_speed(progress),
	       100 * divide(steady->exposed, steady->seconds),
	       100 - 100 * divide(steady->waited, steady->seconds));
	if (progress->peak > 0)
		append(line, ", MFU %.1f%%", 100 *
		       find_mfu(progress, divide(steady->seconds,
						 (double)steady->steps)));
	if (progress->predicted > 0)
		append(line, ", %.2f of the predicted time",
		       divide(steady->seconds, (double)steady->steps *
					       progress->predicted));
	return progress_print_line(progress, line, error);
}
