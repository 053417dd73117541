/* SPDX-License-Identifier: BSD-3-Clause */
/* Slurm's own lines, by how they begin. */
#define _GNU_SOURCE
#include "watch/sieve.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "srun: error: ...", "slurmstepd: ...", "slurmstepd-n1: ...". */
static const char *const beginnings[] = { "srun: ", "slurmstepd" };

enum { FAILED_MAX = 4096 };

enum word { NO, PERHAPS, YES };

/* Whether a line that begins so is Slurm's. */
static enum word is_slurms(const struct ddp_sieve *sieve)
{
	size_t i, length;

	for (i = 0; i < sizeof(beginnings) / sizeof(beginnings[0]); i++) {
		length = strlen(beginnings[i]);
		if (sieve->length < length)
			length = sieve->length;
		if (memcmp(sieve->line, beginnings[i], length) == 0)
			return beginnings[i][length] ? PERHAPS : YES;
	}
	return NO;
}

static bool has(const struct ddp_sieve *sieve, const char *words)
{
	return memmem(sieve->line, sieve->length, words, strlen(words));
}

/* Whether the line has these words, and behind them the step's own number. */
static bool names_step(const struct ddp_sieve *sieve, const char *words)
{
	char text[sizeof(sieve->line) + 1];
	unsigned int job_id, step_id;
	const char *at;

	memcpy(text, sieve->line, sieve->length);
	text[sieve->length] = '\0';
	at = strstr(text, words);
	return at && sscanf(at + strlen(words), "%u.%u", &job_id,
			    &step_id) == 2 &&
	       job_id == sieve->job_id && step_id == sieve->step_id;
}

/* "srun: error: Task launch for StepId=7.0 failed on node n1: Communi..." */
static void notice_launch(struct ddp_sieve *sieve, const char *line)
{
	static const char words[] = "Task launch for StepId=";
	char name[sizeof(sieve->line)];
	unsigned int job_id, step_id;
	const char *at = strstr(line, words);

	if (at && sscanf(at + strlen(words), "%u.%u failed on node %199[^: \n]:",
			 &job_id, &step_id, name) == 3)
		ddp_text_add(&sieve->unlaunched, "%u %u %s\n", job_id, step_id,
			     name);
}

/* "srun: error: n1: task 3: Killed", "... tasks 0-1: Exited with ..." */
static void notice_failure(struct ddp_sieve *sieve, const char *line)
{
	const char *at = strstr(line, ": task");
	size_t length;

	if (strncmp(line, "srun: error: ", strlen("srun: error: ")) != 0 || !at)
		return;
	at += strlen(": task");
	at += *at == 's';
	at += *at == ' ';
	length = strspn(at, "0123456789,-");
	if (length > 0 && at[length] == ':' &&
	    sieve->failed.length < FAILED_MAX)
		ddp_text_add(&sieve->failed, "%.*s,", (int)length, at);
}

static void notice(struct ddp_sieve *sieve)
{
	bool dated = sieve->line[0] == '[' && has(sieve, "] error: *** STEP ");
	char text[sizeof(sieve->line) + 1];

	if (!dated && is_slurms(sieve) != YES)
		return;
	/*
	 * "slurmstepd-n1: error: *** STEP 7.0 ON n1 CANCELLED AT 2026-11...";
	 * Slurm 26.05 begins with the time, and says where a task was the cause.
	 */
	sieve->cancelled |= has(sieve, " CANCELLED AT ") &&
			    !has(sieve, " DUE TO TASK FAILURE") &&
			    names_step(sieve, "*** STEP ");
	sieve->interrupted |= names_step(sieve, "sending Ctrl-C to StepId=");
	sieve->aborted |= has(sieve, "srun: Job step aborted");
	memcpy(text, sieve->line, sieve->length);
	text[sieve->length] = '\0';
	notice_launch(sieve, text);
	notice_failure(sieve, text);
}

/* Bytes of one line. before: those of it that have not been decided about. */
static void add_part(struct ddp_sieve *sieve, const char *bytes, size_t length,
		     size_t before, struct ddp_text *out)
{
	enum word word = is_slurms(sieve);
	bool decides = sieve->now == DDP_SIEVE_DECIDE;
	struct ddp_text *to;

	if (decides && word == PERHAPS)
		return;
	if (decides)
		sieve->now = word == YES ? DDP_SIEVE_KEEP : DDP_SIEVE_PASS;
	to = sieve->now == DDP_SIEVE_KEEP ? &sieve->kept : out;
	if (decides)
		ddp_text_add_bytes(to, sieve->line, before);
	ddp_text_add_bytes(to, bytes, length);
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
			sieve->now = sieve->holds ? DDP_SIEVE_DECIDE :
				     DDP_SIEVE_PASS;
		room = sizeof(sieve->line) - before;
		memcpy(sieve->line + before, bytes, part < room ? part : room);
		sieve->length += part < room ? part : room;
		add_part(sieve, bytes, part, before, out);
		if (end) {
			notice(sieve);
			sieve->length = 0;
		}
	}
}

bool ddp_sieve_keeps(const struct ddp_sieve *sieve)
{
	return sieve->kept.length > 0 ||
	       (sieve->now == DDP_SIEVE_DECIDE && sieve->length > 0);
}

void ddp_sieve_release(struct ddp_sieve *sieve, struct ddp_text *out)
{
	sieve->holds = false;
	if (!sieve->kept.failed)
		ddp_text_add_bytes(out, sieve->kept.data, sieve->kept.length);
	if (sieve->now == DDP_SIEVE_DECIDE)
		ddp_text_add_bytes(out, sieve->line, sieve->length);
	sieve->now = DDP_SIEVE_PASS;
	free(sieve->kept.data);
	sieve->kept = (struct ddp_text){ 0 };
}
