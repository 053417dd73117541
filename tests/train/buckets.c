/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The buckets, with a FAKE collective and a FAKE device. The collective is
 * slow: a poll moves a set number of floats, one ticket after the other, as a
 * link would; the device only notes its calls. The calls to both are noted in
 * order, one line of history each, and compared with what bucket.h and
 * collective.h promise. Prints TAP.
 */
#define _GNU_SOURCE
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bucket.h"
#include "collective.h"
#include "device.h"
#include "layout/error.h"
#include "model.h"
#include "train_options.h"
#include "trainer.h"

enum { MIB = 262144 };			/* floats */
enum { HISTORY = 4096 };

enum kind { RECORD, START, POLL, WAIT, OTHER };

struct call {
	enum kind kind;
	size_t begin, end;		/* START: of the gradient */
	int event;			/* RECORD, START */
	uint64_t ticket;		/* START, WAIT */
	size_t ready;			/* floats that were final */
};

struct play {
	struct buckets buckets;
	struct collective collective;
	struct device device;
	struct call history[HISTORY];
	int calls;
	size_t speed;			/* floats a poll */
	size_t sent, done;		/* floats of all started tickets, and
					   moved */
	uint64_t tickets;		/* started */
	size_t last[HISTORY];		/* sent, when a ticket was started */
	size_t ready;
	bool wrong;			/* an argument that may not be */
};

static struct play *play;
static int tests, failures;

static void ok(bool passed, const char *name)
{
	tests++;
	failures += !passed;
	printf("%sok %d - %s\n", passed ? "" : "not ", tests, name);
}

static struct call *note(enum kind kind)
{
	struct call *call = &play->history[play->calls++];

	if (play->calls == HISTORY)
		abort();
	call->kind = kind;
	call->ready = play->ready;
	return call;
}

static void fake_record(struct device *device, int event,
			enum device_queue queue)
{
	play->wrong |= device != &play->device || queue != QUEUE_COMPUTE ||
		       event < 0 || event >= DEVICE_EVENTS;
	note(RECORD)->event = event;
}

static void fake_wait_event(struct device *device, int event,
			    enum device_queue queue)
{
	(void)device, (void)event, (void)queue;
	note(OTHER);
}

static void fake_copy(struct device *device, enum device_queue queue,
		      void *to, const void *from, size_t bytes)
{
	(void)device, (void)queue, (void)to, (void)from, (void)bytes;
	note(OTHER);
}

static uint64_t fake_start(struct collective *collective,
			   enum collective_op op, size_t offset, size_t count,
			   enum collective_type type, int event)
{
	struct call *call = note(START);

	play->wrong |= collective != &play->collective || op != ALL_REDUCE ||
		       type != FLOAT32 || count == 0;
	call->begin = offset;
	call->end = offset + count;
	call->event = event;
	call->ticket = ++play->tickets;
	play->sent += count;
	play->last[play->tickets] = play->sent;
	return play->tickets;
}

static void move(void)
{
	size_t left = play->sent - play->done;

	play->done += left < play->speed ? left : play->speed;
}

static void fake_poll(struct collective *collective)
{
	(void)collective;
	note(POLL);
	move();
}

static void fake_wait(struct collective *collective, uint64_t ticket,
		      enum device_queue queue)
{
	play->wrong |= collective != &play->collective ||
		       queue != QUEUE_COMPUTE || ticket > play->tickets;
	note(WAIT)->ticket = ticket;
	while (play->done < play->last[ticket])
		move();
}

static const struct device_table slow_device = {
	.abi = DEVICE_ABI, .name = "fake", .record = fake_record,
	.wait = fake_wait_event, .copy = fake_copy
};

static const struct collective_table slow_collective = {
	.abi = COLLECTIVE_ABI, .name = "fake", .start = fake_start,
	.poll = fake_poll, .wait = fake_wait
};

static void begin(size_t count, size_t bytes, bool overlap, size_t speed)
{
	play = calloc(1, sizeof(*play));
	if (!play || buckets_create(&play->buckets, count, bytes) < 0)
		abort();
	play->speed = speed;
	play->device.table = &slow_device;
	play->collective.table = &slow_collective;
	play->buckets.device = &play->device;
	play->buckets.collective = &play->collective;
	play->buckets.overlap = overlap;
}

static void end(void)
{
	buckets_destroy(&play->buckets);
	free(play);
	play = NULL;
}

/* A backward pass of so many operators, each with an equal part. */
static void backward(size_t count, size_t operators)
{
	for (size_t i = 1; i <= operators; i++) {
		play->ready = i * count / operators;
		buckets_start_ready(&play->buckets, play->ready);
	}
}

static int count_calls(enum kind kind)
{
	int count = 0;

	for (int i = 0; i < play->calls; i++)
		count += play->history[i].kind == kind;
	return count;
}

/* The tickets whose floats had all been moved. */
static int completed(void)
{
	int count = 0;

	for (uint64_t i = 1; i <= play->tickets; i++)
		count += play->last[i] <= play->done;
	return count;
}

/*
 * Each bucket: its event, its start, in this order, once, after its
 * last float; the ranges follow each other without a gap from 0 to count, the
 * first of `first` floats and the others of `length`.
 */
static bool starts_are_right(size_t count, size_t first, size_t length)
{
	size_t at = 0, want = first;

	for (int i = 0; i < play->calls; i++) {
		const struct call *call = &play->history[i];

		if (call->kind != START)
			continue;
		if (i < 1 || call[-1].kind != RECORD ||
		    call[-1].event != call->event || call->begin != at ||
		    call->end > call->ready)
			return false;
		want = want < count - at ? want : count - at;
		if (call->end != at + want)
			return false;
		at = call->end;
		want = length;
	}
	return at == count && !play->wrong && count_calls(OTHER) == 0;
}

/* Every ticket is waited for, once, in order, after the last start. */
static bool waits_are_right(void)
{
	uint64_t ticket = 0;
	bool waiting = false;

	for (int i = 0; i < play->calls; i++) {
		if (play->history[i].kind == START) {
			if (waiting)
				return false;
		} else if (play->history[i].kind == WAIT) {
			waiting = true;
			if (play->history[i].ticket != ++ticket)
				return false;
		}
	}
	return ticket == play->tickets && play->done == play->sent;
}

static void test_sizes(void)
{
	static const struct {
		const char *name;
		size_t count, bytes, first, length;
		int buckets;
		size_t largest;
	} rows[] = {
		{ "one float", 1, 25 << 20, 1, 0, 1, 1 },
		{ "exactly 1 MiB", MIB, 25 << 20, MIB, 0, 1, MIB },
		{ "1 MiB and a float", MIB + 1, 25 << 20, MIB, 1, 2, MIB },
		{ "1, 25 and 25 MiB", 51 * MIB, 25 << 20, MIB, 25 * MIB, 3,
		  25 * MIB },
		{ "1, 25 MiB and a rest", 30 * MIB + 7, 25 << 20, MIB,
		  25 * MIB, 3, 25 * MIB },
		{ "buckets of 4 KiB", 5000, 4096, 1024, 1024, 5, 1024 },
		{ "buckets of 1 MiB", 3 * MIB, 1 << 20, MIB, MIB, 3, MIB },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		begin(rows[i].count, rows[i].bytes, true, MIB);
		backward(rows[i].count, 100);
		buckets_finish(&play->buckets);
		ok(starts_are_right(rows[i].count, rows[i].first,
				    rows[i].length) && waits_are_right() &&
		   play->tickets == (uint64_t)rows[i].buckets &&
		   play->buckets.count == rows[i].buckets &&
		   buckets_find_largest(&play->buckets) == rows[i].largest,
		   rows[i].name);
		end();
	}
}

/* 64 MiB in 64 operators; a poll moves what one of them adds, and 1/8 more. */
static void test_overlap(void)
{
	begin(64 * MIB, 4 << 20, true, MIB * 9 / 8);
	backward(64 * MIB, 64);
	ok(count_calls(POLL) == 64, "an operator, a poll");
	ok(count_calls(WAIT) == 0, "nobody waits before the last operator");
	ok(play->tickets == 17, "by then every bucket is started");
	/* The last bucket became ready only now; the one before it had four
	 * operators' time. */
	ok(completed() >= 15, "and all but the last two are reduced");
	buckets_finish(&play->buckets);
	ok(starts_are_right(64 * MIB, MIB, 4 * MIB) && waits_are_right(),
	   "and then the last ones");
	end();
}

static void test_without_overlap(void)
{
	begin(64 * MIB, 4 << 20, false, MIB);
	backward(64 * MIB, 64);
	ok(play->tickets == 0,
	   "without overlap nothing begins before finish()");
	buckets_finish(&play->buckets);
	ok(starts_are_right(64 * MIB, MIB, 4 * MIB) && waits_are_right(),
	   "which does it all");
	end();
}

/* Operators with gradients of very different sizes, or none. */
static void test_leaps(void)
{
	static const size_t ready[] = { 0, MIB - 1, MIB, 5 * MIB - 1,
					9 * MIB, 9 * MIB, 13 * MIB };
	static const uint64_t started[] = { 0, 0, 1, 1, 3, 3, 4 };
	bool right = true;

	begin(13 * MIB, 4 << 20, true, 1);
	for (size_t i = 0; i < sizeof(ready) / sizeof(ready[0]); i++) {
		play->ready = ready[i];
		buckets_start_ready(&play->buckets, ready[i]);
		right &= play->tickets == started[i];
	}
	ok(right, "a bucket begins with its last float");
	buckets_finish(&play->buckets);
	ok(starts_are_right(13 * MIB, MIB, 4 * MIB) && waits_are_right(),
	   "several at once begin in order");
	end();
}

/* More buckets in flight than a device has events, then a second step. */
static void test_steps(void)
{
	begin(100 * MIB, 1 << 20, true, 1);
	backward(100 * MIB, 7);
	buckets_finish(&play->buckets);
	ok(play->tickets == 100 && starts_are_right(100 * MIB, MIB, MIB) &&
	   waits_are_right(), "more buckets than events");
	play->calls = 0;
	play->ready = 0;
	buckets_start_ready(&play->buckets, 0);
	ok(count_calls(START) == 0, "a second step begins with none");
	backward(100 * MIB, 13);
	buckets_finish(&play->buckets);
	ok(count_calls(START) == 100 && starts_are_right(100 * MIB, MIB, MIB) &&
	   count_calls(WAIT) == 100 && play->tickets == 200 &&
	   play->history[play->calls - 1].ticket == 200,
	   "and reduces each again");
	end();
}

/* A link that takes 30 ms to start a transfer. */
static uint64_t late_start(struct collective *collective,
			   enum collective_op op, size_t offset, size_t count,
			   enum collective_type type, int event)
{
	usleep(30000);
	return fake_start(collective, op, offset, count, type, event);
}

/* Time for communication does not count as time to compute. */
static void test_exposed(bool overlap)
{
	static const struct collective_table late = {
		.abi = COLLECTIVE_ABI, .name = "fake", .start = late_start,
		.poll = fake_poll, .wait = fake_wait
	};
	static const struct data no_data;
	static float memory[2][1024];
	char *argv[] = { "buckets", "--overlap", overlap ? "on" : "off", NULL };
	struct options options;
	struct ddp_error error;
	struct share share;
	struct trainer *trainer;

	begin(1, 1 << 20, overlap, MIB);
	play->collective.table = &late;
	play->collective.size = 1;
	optind = 1;
	if (options_parse(&options, 3, argv, &error) < 0 ||
	    options_complete(&options, 1, &error) < 0)
		abort();
	trainer = trainer_create(&options, &play->collective, &no_data,
				 &error);
	if (!trainer || trainer->model->param_count > 1024)
		abort();
	trainer->levels[0] = memory[0];
	trainer->param = memory[1];
	trainer_compute_gradient(trainer, 1, &share);
	ok(play->tickets == 1 && share.exposed >= 0.03,
	   overlap ? "what the last bucket takes is exposed" :
		     "and without overlap");
	trainer_destroy(trainer);
	end();
}

int main(void)
{
	test_sizes();
	test_overlap();
	test_without_overlap();
	test_leaps();
	test_steps();
	test_exposed(true);
	test_exposed(false);
	printf("1..%d\n", tests);
	return failures != 0;
}
