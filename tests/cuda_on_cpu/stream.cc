/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Streams: work is done as late, or in as odd an order, as what was declared
 * between operations allows.
 *
 *   EMU_ORDER=eager   at once, in order, blocks and threads too [this]
 *   EMU_ORDER=lazy    only what a wait of the host asks for
 *   EMU_ORDER=N       in a random order of seed N; queries say "not yet" at
 *                     times
 *
 * Each operation has a vector clock: which operations of each stream are before
 * it. So a missing wait is found whichever order was taken.
 */
#include <algorithm>
#include <deque>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string>
#include <unistd.h>
#include "emu.h"

struct operation {
	uint32_t id;
	emu_work run;
	void *arg;
	emu_moment before;		/* and itself */
	uint32_t after[2];		/* 0: none */
	bool done;
};

struct past {				/* what remains of an operation */
	int stream;
	uint32_t index;			/* in its stream, from 1 */
	const char *name;
	const void *kernel;
};

struct attempt { uint64_t begin; uint32_t op; };

enum order { EAGER, LAZY, RANDOM };

uint32_t emu_op;
uint64_t emu_op_time;
bool emu_in_order = true;
static order order;
static uint64_t seed = 88172645463325252ull;
static std::deque<operation> open_ops;	/* from the first that is not done */
static std::vector<past> history(1);	/* by operation */
static std::vector<attempt> attempts(1);
static CUstream_st streams[EMU_STREAMS];	/* 0: the default stream */
static emu_moment host;			/* what the host has waited for */
static unsigned long waits, defaults;

uint64_t emu_random(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	return seed ^= seed << 17;
}

static void read_order(void)
{
	const char *text = getenv("EMU_ORDER");

	if (!text || strcmp(text, "eager") == 0)
		return;
	order = strcmp(text, "lazy") == 0 ? LAZY : RANDOM;
	emu_in_order = false;
	seed += strtoull(text, NULL, 10) * 0x9e3779b97f4a7c15ull;
}

/* ---- what ran when */

uint32_t emu_op_at(uint64_t time, uint64_t *begin, uint64_t *end)
{
	auto next = std::upper_bound(attempts.begin(), attempts.end(), time,
		[](uint64_t t, const attempt &a) { return t < a.begin; });

	*end = next == attempts.end() ? UINT64_MAX : next->begin;
	--next;
	*begin = next->begin;
	return next->op;
}

static operation *find_open(uint32_t op)
{
	if (open_ops.empty() || op < open_ops.front().id || op == 0)
		return NULL;
	return &open_ops[op - open_ops.front().id];
}

static bool is_done(uint32_t op)
{
	const operation *o = find_open(op);

	return !o || o->done;
}

bool emu_op_before(uint32_t earlier, uint32_t later)
{
	const past *p = &history[earlier];
	const operation *o = find_open(later);

	return !o || o->before.clock[p->stream] >= p->index;
}

const void *emu_op_kind(uint32_t op)
{
	return history[op].kernel ? history[op].kernel : history[op].name;
}

const char *emu_op_name(uint32_t op)
{
	static std::string texts[4];
	static unsigned turn;
	std::string &text = texts[turn++ % 4];

	if (op == 0)
		return "the host";
	const past *p = &history[op];

	text = std::string(p->kernel ? emu_kernel_name(p->kernel) : p->name) +
		" (operation " + std::to_string(op) + ", stream " +
		std::to_string(p->stream) + ")";
	return text.c_str();
}

/* ---- running */

static bool is_ready(const operation *o)
{
	return !o->done && is_done(o->after[0]) && is_done(o->after[1]);
}

/* Whether it is done then. */
static bool run(operation *o)
{
	uint64_t touches = emu_touches;
	uint32_t id = o->id;
	bool again = attempts.back().op == id;

	if (!again)
		attempts.push_back({ ++emu_time, id });
	emu_op_time = attempts.back().begin;	/* of this one, again or not */
	emu_op = id;
	bool done = !o->run || o->run(o->arg);
	emu_op = 0;
	if (!done) {
		if (!again && touches == emu_touches)
			attempts.pop_back();
		return false;
	}
	o->done = true;
	emu_time++;
	while (!open_ops.empty() && open_ops.front().done)
		open_ops.pop_front();
	return true;
}

/* Mark what an operation needs, itself too. */
static std::vector<bool> find_needed(uint32_t op)
{
	uint32_t first = open_ops.front().id;
	std::vector<bool> needed(op - first + 1);

	needed[op - first] = true;
	for (uint32_t i = op - first; i > 0; i--)
		for (uint32_t after : open_ops[i].after)
			if (needed[i] && after >= first)
				needed[after - first] = true;
	return needed;
}

/* Run what is ready, in order; only what op needs, unless that is 0. */
static bool run_in_order(uint32_t op)
{
	bool moved = false;

	if (open_ops.empty() || (op && is_done(op)))
		return false;
	uint32_t first = open_ops.front().id;
	uint32_t last = op ? op : open_ops.back().id;
	std::vector<bool> needed = op ? find_needed(op) : std::vector<bool>();

	for (uint32_t id = first; id <= last; id++) {
		operation *o = find_open(id);

		if (o && is_ready(o) && (!op || needed[id - first]))
			moved |= run(o);
	}
	return moved;
}

/* Run one of those that are ready. */
static bool run_random(void)
{
	std::vector<uint32_t> ready;

	for (const operation &o : open_ops)
		if (is_ready(&o))
			ready.push_back(o.id);
	while (!ready.empty()) {
		size_t at = emu_random() % ready.size();

		if (run(find_open(ready[at])))
			return true;
		ready.erase(ready.begin() + (long)at);
	}
	return false;
}

/* Another process may be what is waited for. */
static void rest(unsigned *idle)
{
	if (++*idle < 100)
		sched_yield();
	else
		usleep(50);
}

void emu_wait(uint32_t op)
{
	bool moved = true;
	unsigned idle = 0;

	emu_open_memory(true);
	while (!is_done(op)) {
		/* Where the one that is needed waits, others go on. */
		moved = order == RANDOM ? run_random() :
			run_in_order(order == LAZY && moved ? op : 0);
		if (!moved)
			rest(&idle);
	}
	emu_open_memory(false);
}

bool emu_poll(uint32_t op, int *patience)
{
	if (is_done(op))
		return true;
	if (order != EAGER && (*patience)-- > 0)
		return false;
	emu_open_memory(true);
	if (order != LAZY || !run_in_order(op))
		run_in_order(0);
	emu_open_memory(false);
	return is_done(op);
}

/* ---- operations */

static void merge(emu_moment *to, const emu_moment *from)
{
	for (int i = 0; i < EMU_STREAMS; i++)
		to->clock[i] = std::max(to->clock[i], from->clock[i]);
}

void emu_host_waited(const emu_moment *moment) { merge(&host, moment); }
void emu_count_wait(void) { waits++; }
void emu_get_waits(unsigned long *of_host, unsigned long *in_default)
{
	*of_host = waits;
	*in_default = defaults;
}

void emu_stream_waited(cudaStream_t stream, const emu_moment *moment)
{
	merge(&emu_stream(stream)->before, moment);
}

const emu_moment *emu_stream_moment(cudaStream_t stream)
{
	return &emu_stream(stream)->before;
}

uint32_t emu_enqueue(cudaStream_t stream, const char *name, emu_work run_it,
		     void *arg, uint32_t after, const void *kernel)
{
	CUstream_st *s = emu_stream(stream);
	uint32_t id = (uint32_t)history.size();

	if (emu_op)
		emu_report(NULL, "%s was asked for inside of another "
			   "operation", name ? name : "a launch");
	defaults += s->number == 0;
	merge(&s->before, &host);
	history.push_back({ s->number, ++s->before.clock[s->number], name,
			    kernel });
	open_ops.push_back({ id, run_it, arg, s->before,
			   { s->last, after }, false });
	s->last = id;
	if (order == LAZY || (order == RANDOM && emu_random() % 4))
		return id;
	emu_open_memory(true);
	if (order == EAGER)
		run_in_order(0);
	else
		run_random();
	emu_open_memory(false);
	return id;
}

void emu_wait_all(void)
{
	for (CUstream_st &s : streams) {
		if (!s.open)
			continue;
		emu_wait(s.last);
		merge(&host, &s.before);
	}
}

/* ---- streams, and what a fake library finds at their begin */

static void enqueue_fake(void *stream, const char *name, int (*work)(void *),
			 void *arg)
{
	emu_enqueue((cudaStream_t)stream, name, work, arg);
}

static int touch(const void *p, size_t n, int how, const char *who)
{
	uintptr_t a = (uintptr_t)p;

	if (how != FAKE_STREAM_LOOK)
		emu_access_host(a, n, how == FAKE_STREAM_WRITE ? EMU_WRITE :
				EMU_READ, who);
	return n == 0 || (emu_is_device(a) && emu_inside(a, n)) ? 0 : -1;
}

static int query(void *stream)
{
	cudaError_t error = cudaStreamQuery((cudaStream_t)stream);

	return error == cudaSuccess ? 1 : error == cudaErrorNotReady ? 0 : -1;
}

CUstream_st *emu_open_stream(void)
{
	for (int i = 0; i < EMU_STREAMS; i++) {
		CUstream_st *s = &streams[i];

		if (s->open)
			continue;
		s->head = { FAKE_STREAM_MAGIC, enqueue_fake, touch, query,
			emu_fail_unseen };
		s->number = i;
		s->open = true;
		return s;
	}
	return NULL;
}

CUstream_st *emu_stream(cudaStream_t stream)
{
	CUstream_st *s = stream ? stream : &streams[0];

	if (s->head.magic != FAKE_STREAM_MAGIC || !s->open) {
		fprintf(stderr, "cuda_on_cpu: that is no stream\n");
		abort();
	}
	return s;
}

void emu_start(void)
{
	if (streams[0].open)
		return;
	emu_open_stream();
	read_order();
	emu_watch_faults();
}
