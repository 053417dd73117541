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

#include "collective.h"
#include "device.h"
#include "model.h"
#include "run/train_options.h"
#include "step/bucket.h"
#include "step/trainer.h"
#include "util/error.h"

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
	enum collective_op op;		/* that is to come */
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
			   enum device_type type, int event)
{
	struct call *call = note(START);

	play->wrong |= collective != &play->collective || op != play->op ||
		       type != play->buckets.type || count == 0;
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

static enum device_type gradient_type;	/* of what begins */

static void begin(size_t count, size_t bytes, bool overlap, size_t speed)
{
	play = calloc(1, sizeof(*play));
	if (!play)
		abort();
	play->buckets.type = gradient_type;
	play->collective.size = 1;
	play->buckets.collective = &play->collective;
	if (buckets_create(&play->buckets, count, bytes) < 0)
		abort();
	play->speed = speed;
	play->device.table = &slow_device;
	play->collective.table = &slow_collective;
	play->buckets.device = &play->device;
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
		enum device_type type;
	} rows[] = {
		{ "one float", 1, 25 << 20, 1, 0, 1, 1, DEVICE_FP32 },
		{ "exactly 1 MiB", MIB, 25 << 20, MIB, 0, 1, MIB, DEVICE_FP32 },
		{ "1 MiB and a float", MIB + 1, 25 << 20, MIB, 1, 2, MIB,
		  DEVICE_FP32 },
		{ "1, 25 and 25 MiB", 51 * MIB, 25 << 20, MIB, 25 * MIB, 3,
		  25 * MIB, DEVICE_FP32 },
		{ "1, 25 MiB and a rest", 30 * MIB + 7, 25 << 20, MIB,
		  25 * MIB, 3, 25 * MIB, DEVICE_FP32 },
		{ "buckets of 16 KiB, a block", 20000, 16384, 4096, 4096, 5,
		  4096, DEVICE_FP32 },
		{ "no less than a block", 9000, 1024, 4096, 4096, 3, 4096,
		  DEVICE_FP32 },
		{ "nor parts of one", 40000, 70000, 16384, 16384, 3, 16384,
		  DEVICE_FP32 },
		{ "twice the values of 16 bits", 20000, 16384, 8192, 8192, 3,
		  8192, DEVICE_FP16 },
		{ "buckets of 1 MiB", 3 * MIB, 1 << 20, MIB, MIB, 3, MIB,
		  DEVICE_FP32 },
		{ "1 and 25 MiB of 16 bits", 52 * MIB, 25 << 20, 2 * MIB,
		  50 * MIB, 2, 50 * MIB, DEVICE_BF16 }
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		gradient_type = rows[i].type;
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
	gradient_type = DEVICE_FP32;
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
			   enum device_type type, int event)
{
	usleep(30000);
	return fake_start(collective, op, offset, count, type, event);
}

/* Whether a rank of a world owns this of each bucket, and keeps it there. */
static bool owns(int rank, int size, int count, const size_t (*want)[3])
{
	struct collective collective = { .rank = rank, .size = size };
	struct buckets buckets = {
		.collective = &collective, .type = DEVICE_FP32, .sharded = true
	};
	bool right = true;
	size_t kept = 0;

	/* Four and a half blocks, in buckets of at most three. */
	if (buckets_create(&buckets, 18432, 49152) < 0)
		abort();
	for (int i = 0; i < buckets.count && i < count; i++) {
		const struct bucket *bucket = &buckets.list[i];

		right &= bucket->own.begin == want[i][0] &&
			 bucket->own.end == want[i][1] &&
			 bucket->kept == want[i][2];
		kept += want[i][1] - want[i][0];
	}
	right &= buckets.count == count && buckets.kept == kept;
	buckets_destroy(&buckets);
	return right;
}

static void test_slices(void)
{
	static const size_t one[][3] = { { 0, 12288, 0 },
					 { 12288, 18432, 12288 } };
	static const size_t first[][3] = { { 0, 4096, 0 },
					   { 8192, 12288, 4096 },
					   { 16384, 18432, 8192 } };
	static const size_t second[][3] = { { 4096, 8192, 0 },
					    { 12288, 16384, 4096 },
					    { 18432, 18432, 8192 } };
	static const size_t last[][3] = { { 12288, 16384, 0 },
					  { 18432, 18432, 4096 } };
	static const size_t fifth[][3] = { { 16384, 18432, 0 } };
	static const size_t none[][3] = { { 18432, 18432, 0 } };

	ok(owns(0, 1, 2, one), "one rank owns it all");
	ok(owns(0, 2, 3, first) && owns(1, 2, 3, second),
	   "of two, each a block of a bucket");
	ok(owns(3, 4, 2, last), "of four, too");
	ok(owns(4, 8, 1, fifth) && owns(5, 8, 1, none),
	   "of eight, some have nothing of the rest");
}

/*
 * Whether 100 MiB of a world's fp32 are cut to this many blocks, and each
 * bucket is found by its first and last value.
 */
static bool are_cut(int size, size_t first, size_t length)
{
	struct collective collective = { .size = size };
	struct buckets buckets = {
		.collective = &collective, .type = DEVICE_FP32, .sharded = true
	};
	bool right, found = true;

	if (buckets_create(&buckets, 100 * MIB, 25 << 20) < 0)
		abort();
	for (int i = 0; i < buckets.count; i++)
		found &= buckets_find(&buckets, buckets.list[i].begin) == i &&
			 buckets_find(&buckets, buckets.list[i].end - 1) == i;
	right = found && buckets.count > 2 &&
		buckets.list[0].end == first * 4096 &&
		buckets.list[1].begin == first * 4096 &&
		buckets.list[1].end == (first + length) * 4096;
	buckets_destroy(&buckets);
	return right;
}

/* 1 MiB has 64 blocks of fp32, 25 MiB 1600. */
static void test_equal_slices(void)
{
	ok(are_cut(64, 64, 1600), "of 64 ranks each has as much of a bucket");
	ok(are_cut(48, 48, 1584), "of 48, as buckets are smaller");
	ok(are_cut(100, 100, 1600), "of 100, as the first is larger");
}

/* What is sharded is reduce-scattered, and then gathered from elsewhere. */
static void test_sharded(void)
{
	bool right = true;

	begin(6 * MIB, 2 << 20, true, MIB);
	play->buckets.sharded = true;
	play->op = REDUCE_SCATTER;
	backward(6 * MIB, 12);
	buckets_finish(&play->buckets);
	ok(starts_are_right(6 * MIB, MIB, 2 * MIB) && waits_are_right(),
	   "sharded buckets are reduce-scattered");
	play->op = ALL_GATHER;
	play->calls = 0;
	for (int i = 0; i < play->buckets.count; i++)
		buckets_start_gather(&play->buckets, i, 6 * MIB, DEVICE_FP32);
	buckets_wait(&play->buckets);
	for (int i = 0; i < play->buckets.count; i++) {
		const struct bucket *bucket = &play->buckets.list[i];
		const struct call *call = &play->history[3 * i];

		right &= call[0].kind == RECORD && call[1].kind == START &&
			 call[0].event == call[1].event &&
			 call[1].begin == 6 * MIB + bucket->begin &&
			 call[1].end == 6 * MIB + bucket->end &&
			 call[2].kind == POLL;
	}
	ok(right && !play->wrong && count_calls(WAIT) == play->buckets.count &&
	   play->done == play->sent, "and what lies elsewhere is gathered");
	end();
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
	optind = 1;
	if (options_parse(&options, 3, argv, &error) < 0 ||
	    options_complete(&options, 1, &error) < 0)
		abort();
	trainer = trainer_create(&options, &play->collective, &no_data,
				 &error);
	if (!trainer || trainer->model->param_count > 1024)
		abort();
	trainer->levels[0] = memory[0];
	trainer->grad = memory[0];
	trainer->param = trainer->master = memory[1];
	trainer_take_step(trainer, 1);
	if (trainer_read_step(trainer, 1, &share, &error) < 0)
		abort();
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
	test_slices();
	test_equal_slices();
	test_sharded();
	test_exposed(true);
	test_exposed(false);
	printf("1..%d\n", tests);
	return failures != 0;
}
