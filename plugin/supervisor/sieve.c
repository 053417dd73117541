/* SPDX-License-Identifier: BSD-3-Clause */
/* Slurm's own lines, by how they begin. */
#include "supervisor/sieve.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verdict/times.h"

/* Open MPI puts one before and one after what it says, 74 of them. */
#define RULER "-------------------------------------" \
	"-------------------------------------\n"

/*
 * "srun: error: ...", "slurmstepd: ...", "slurmstepd-n1: ...". And what Open
 * MPI's ranks say of a peer that is gone: they are sooner than the verdict, and
 * that "Open MPI failed to TCP connect" is no fault of the network then.
 */
static const char *const beginnings[] = {
	"srun: ", "slurmstepd",
	RULER "An MPI communication peer process has unexpectedly disconnected",
	RULER "WARNING: Open MPI failed to TCP connect to a peer MPI process",
};

enum { SLURMS = 2, FAILED_MAX = 4096 };

enum word { NO, PERHAPS, YES };

/* Whether what begins so has one of the first beginnings. */
static enum word has_beginning(const struct ddp_sieve *sieve, size_t count)
{
	size_t i, length;

	for (i = 0; i < count; i++) {
		length = strlen(beginnings[i]);
		if (sieve->length < length)
			length = sieve->length;
		if (memcmp(sieve->line, beginnings[i], length) == 0)
			return beginnings[i][length] ? PERHAPS : YES;
	}
	return NO;
}

/* Whether it is Slurm's, or is held like that. */
static enum word is_held(const struct ddp_sieve *sieve)
{
	return has_beginning(sieve, sizeof(beginnings) / sizeof(beginnings[0]));
}

/* Whether the line has these words, and behind them the step's own number. */
static bool names_step(const struct ddp_sieve *sieve, const char *words)
{
	const char *at = strstr(sieve->line, words);
	unsigned int job_id, step_id;

	return at && sscanf(at + strlen(words), "%u.%u", &job_id,
			    &step_id) == 2 &&
	       job_id == sieve->job_id && step_id == sieve->step_id;
}

/*
 * "srun: error: Task launch for StepId=7.0 failed on node n1: Communi..."; of a
 * heterogeneous step's second component "StepId=7.0+1".
 */
static void notice_launch(struct ddp_sieve *sieve, const char *line)
{
	static const char words[] = "Task launch for StepId=";
	char name[sizeof(sieve->line)];
	unsigned int job_id, step_id;
	const char *at = strstr(line, words);
	const char *node = at ? strstr(at, " failed on node ") : NULL;

	if (node &&
	    sscanf(at + strlen(words), "%u.%u", &job_id, &step_id) == 2 &&
	    sscanf(node, " failed on node %199[^: \n]:", name) == 1)
		ddp_text_add(&sieve->said->unlaunched, "%u %u %s\n", job_id, step_id,
			     name);
}

/*
 * "srun: error: n1: task 3: Killed", "... tasks 0-1: Exited with ..."; and,
 * where slurmstepd could not start it, "srun: error: task 3 launch failed: ...".
 */
static void notice_failure(struct ddp_sieve *sieve, const char *line)
{
	static const char begin[] = "srun: error: ";
	static const char launch[] = " launch failed: ";
	const char *at = strstr(line, ": task");
	struct ddp_said *said = sieve->said;
	size_t length;

	if (strncmp(line, begin, strlen(begin)) != 0 || !at)
		return;
	at += strlen(": task");
	at += *at == 's';
	at += *at == ' ';
	length = strspn(at, "0123456789,-");
	if (length == 0)
		return;
	if (said->failed.length < FAILED_MAX &&
	    (at[length] == ':' ||
	     strncmp(at + length, launch, strlen(launch)) == 0)) {
		ddp_text_add(&said->failed, "%.*s,", (int)length, at);
		if (at[length] != ':')
			said->launch_failed = true;
		said->last_ns = sieve->now_ns;
	}
	if (!said->failed_ns)
		said->failed_ns = sieve->now_ns;
}

/* "srun: error: timeout waiting for task launch, started 1 of 2 tasks" */
static void notice_timeout(struct ddp_sieve *sieve, const char *line)
{
	const char *at = strstr(line, "timeout waiting for task launch");
	unsigned int tasks;

	at = at ? strstr(at, " of ") : NULL;
	if (at && sscanf(at, " of %u tasks", &tasks) == 1)
		sieve->said->given_up = tasks;
}

/*
 * A label of srun's or of ours may stand before it. What a rank calls as it is
 * told to end, or as it misses one that was, comes after Slurm has said so.
 */
static void notice_abort(struct ddp_sieve *sieve, const char *line)
{
	static const char words[] = "MPI_ABORT was invoked on rank ";
	static const char world[] = " in communicator MPI_COMM_WORLD";
	const char *at = strstr(line, words);
	struct ddp_said *said = sieve->said;
	unsigned long rank;
	char *end;

	if (!at || said->ends != DDP_SAID_NOTHING)
		return;
	/* An earlier one did not end this step: a rank has started others. */
	if (said->aborter_ns &&
	    sieve->now_ns - said->aborter_ns <= ms(DDP_ABORT_MS))
		return;
	rank = strtoul(at + strlen(words), &end, 10);
	if (strncmp(end, world, strlen(world)) != 0 || rank >= UINT32_MAX)
		return;
	said->aborter = (uint32_t)rank;
	said->aborter_ns = sieve->now_ns;
}

/*
 * With --kill-on-bad-exit srun has the step killed when a rank has failed. For
 * that, too, slurmstepd says that it is cancelled, but srun says it before:
 * "srun: launch/slurm: _step_signal: Terminating StepId=7.0". Where others cancel
 * the step, its ranks end only then, and so srun says it later. That may be said
 * before an agent has told the step's number. srun -Q leaves it out, but not
 * that a rank has failed.
 */
static void notice_end(struct ddp_sieve *sieve, bool cancelled, bool aborted)
{
	static const char words[] = "Terminating StepId=";
	struct ddp_said *said = sieve->said;
	bool own = sieve->job_id == 0 ? strstr(sieve->line, words) != NULL :
		   names_step(sieve, words);
	bool failed = said->failed.length > 0;

	if (said->ends != DDP_SAID_NOTHING)
		return;
	if (sieve->quiet && cancelled && failed)
		own = true;
	else if (cancelled || aborted)
		said->ends = DDP_SAID_OTHERS;
	if (said->ends == DDP_SAID_NOTHING && own && failed) {
		said->ends = DDP_SAID_SRUN;
		said->reason = said->failed.length;
	}
	if (said->ends != DDP_SAID_NOTHING)
		said->ends_ns = sieve->now_ns;
}

/*
 * srun --label puts "0: " before what slurmstepd says, as before what a rank
 * does.
 */
static bool is_labelled(const char *line)
{
	static const char name[] = "slurmstepd";
	const char *at = line + strspn(line, " ");

	at += strspn(at, "0123456789");
	return strncmp(at, ": ", 2) == 0 &&
	       strncmp(at + 2, name, strlen(name)) == 0;
}

static void notice(struct ddp_sieve *sieve)
{
	const char *line = sieve->line;
	bool dated = line[0] == '[' && strstr(line, "] error: *** STEP ");
	struct ddp_said *said = sieve->said;
	bool cancelled, aborted;

	if (!dated && has_beginning(sieve, SLURMS) != YES &&
	    !is_labelled(line)) {
		notice_abort(sieve, line);
		return;
	}
	/*
	 * "slurmstepd-n1: error: *** STEP 7.0 ON n1 CANCELLED AT 2026-11...";
	 * Slurm 26.05 begins with the time, and says where a task was the cause.
	 */
	cancelled = strstr(line, " CANCELLED AT ") &&
		    !strstr(line, " DUE TO TASK FAILURE") &&
		    names_step(sieve, "*** STEP ");
	aborted = strstr(line, "srun: Job step aborted");
	if (cancelled)
		said->cancelled_ns = said->last_ns = sieve->now_ns;
	if (aborted)
		said->aborted_ns = said->last_ns = sieve->now_ns;
	if (names_step(sieve, "sending Ctrl-C to StepId="))
		said->interrupted_ns = sieve->now_ns;
	notice_timeout(sieve, line);
	notice_end(sieve, cancelled, aborted);
	notice_launch(sieve, line);
	notice_failure(sieve, line);
}

/* A ruler that begins nothing that is held has ended something else. */
static size_t pass_ruler(struct ddp_sieve *sieve, struct ddp_text *out)
{
	const size_t length = strlen(RULER);

	if (sieve->now != DDP_SIEVE_DECIDE || is_held(sieve) != NO ||
	    sieve->length < length || memcmp(sieve->line, RULER, length) != 0)
		return 0;
	ddp_text_add_bytes(out, RULER, length);
	sieve->length -= length;
	memmove(sieve->line, sieve->line + length, sieve->length + 1);
	return length;
}

/* Bytes of one line. before: those of it that have not been decided about. */
static void add_part(struct ddp_sieve *sieve, const char *bytes, size_t length,
		     size_t before, struct ddp_text *out)
{
	size_t passed = pass_ruler(sieve, out);
	enum word word = is_held(sieve);
	bool decides = sieve->now == DDP_SIEVE_DECIDE;
	struct ddp_text *to;

	if (decides && word == PERHAPS)
		return;
	if (decides)
		sieve->now = word == YES ? DDP_SIEVE_KEEP : DDP_SIEVE_PASS;
	to = sieve->now == DDP_SIEVE_KEEP ? &sieve->kept : out;
	if (decides)
		ddp_text_add_bytes(to, sieve->line, before - passed);
	ddp_text_add_bytes(to, bytes, length);
}

static bool is_ruler(const struct ddp_sieve *sieve)
{
	return sieve->length == strlen(RULER) &&
	       memcmp(sieve->line, RULER, sieve->length) == 0;
}

/*
 * A line is whole. A ruler that is not decided about is one with the next line;
 * what then is kept ends with another ruler, or when nothing is kept any more.
 */
static void end_line(struct ddp_sieve *sieve)
{
	bool begins = has_beginning(sieve, SLURMS) == NO &&
		      is_held(sieve) == YES;

	if (sieve->now == DDP_SIEVE_DECIDE && is_ruler(sieve))
		return;
	notice(sieve);
	if (sieve->now == DDP_SIEVE_KEEP)
		sieve->in_block = begins ||
				  (sieve->in_block && !is_ruler(sieve));
	sieve->length = 0;
}

void ddp_sieve_add(struct ddp_sieve *sieve, const char *bytes, size_t length,
		   struct ddp_text *out)
{
	const char *end;
	size_t part, before, room;

	for (; length > 0; bytes += part, length -= part) {
		end = memchr(bytes, '\n', length);
		part = end ? (size_t)(end - bytes) + 1 : length;
		before = sieve->length;
		if (before == 0)
			sieve->now = sieve->in_block ? DDP_SIEVE_KEEP :
				     sieve->holds ? DDP_SIEVE_DECIDE :
				     DDP_SIEVE_PASS;
		room = sizeof(sieve->line) - 1 - before;
		memcpy(sieve->line + before, bytes, part < room ? part : room);
		sieve->length += part < room ? part : room;
		sieve->line[sieve->length] = '\0';
		add_part(sieve, bytes, part, before, out);
		if (end)
			end_line(sieve);
	}
}

bool ddp_sieve_keeps(const struct ddp_sieve *sieve)
{
	return sieve->kept.length > 0 ||
	       (sieve->now == DDP_SIEVE_DECIDE && sieve->length > 0);
}

void ddp_sieve_release(struct ddp_sieve *sieve, struct ddp_text *out)
{
	sieve->holds = sieve->in_block = false;
	if (!sieve->kept.failed)
		ddp_text_add_bytes(out, sieve->kept.data, sieve->kept.length);
	if (sieve->now == DDP_SIEVE_DECIDE)
		ddp_text_add_bytes(out, sieve->line, sieve->length);
	if (sieve->now == DDP_SIEVE_DECIDE && is_ruler(sieve))
		sieve->length = 0;
	sieve->now = DDP_SIEVE_PASS;
	free(sieve->kept.data);
	sieve->kept = (struct ddp_text){ 0 };
}
