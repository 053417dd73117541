/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A grid on one host thread: blocks one after another, the threads of a block
 * as fibers. A fiber runs until a barrier or a warp instruction lacks others,
 * and then changes to the next that is ready.
 */
#include <numeric>
#include <stdio.h>
#include <sys/mman.h>
#ifndef __x86_64__
#include <ucontext.h>
#endif
#include "emu.h"

enum fiber_state { READY, AT_BARRIER, AT_WARP, ENDED };

struct warp {
	unsigned here, arrived;
	uint64_t synced;		/* the last __syncwarp of all */
	uint64_t pairs[32][32];		/* that of some, of each two */
};

struct emu_fiber {
#ifdef __x86_64__
	void *sp;
#else
	ucontext_t context;
#endif
	char *stack;
	uint3 index;
	int id;
	fiber_state state;
	struct warp *warp;
	emu_lane *lane;			/* what it brings to fn */
	unsigned mask;
	emu_warp_fn fn;
	int arg, line;
	const void *pc;			/* where it waits */
	emu_copies copies;
};

uint3 emu_thread_index __asm__("emu_thread_index");
uint3 emu_block_index __asm__("emu_block_index");
dim3 emu_block_dim __asm__("emu_block_dim");
dim3 emu_grid_dim __asm__("emu_grid_dim");
extern const int emu_warp_size __asm__("emu_warp_size");
const int emu_warp_size = 32;
emu_fiber *emu_self;
int emu_thread;
uintptr_t emu_stack;
uint64_t emu_time, emu_block_time, emu_barrier_time;
uint32_t emu_block;
const void *emu_kernel;
const void *emu_call_memory;
size_t emu_call_bytes;
static emu_fiber fibers[EMU_THREADS], scheduler;
static struct warp warps[EMU_THREADS / 32];
static emu_fiber *ready[EMU_THREADS];	/* a ring */
static unsigned first_ready, ready_count;
static int order[EMU_THREADS], threads, waiting, ended;
static const emu_grid *current;
alignas(1024) char emu_dynamic[EMU_SHARED + 1024];

/* ---- changing fibers */

#ifdef __x86_64__
extern "C" void emu_switch(void **save, void *load);
asm(".text\n.globl emu_switch\n.hidden emu_switch\n"
    ".type emu_switch, @function\nemu_switch:\n"
    "push %rbp\npush %rbx\npush %r12\npush %r13\npush %r14\npush %r15\n"
    "mov %rsp, (%rdi)\nmov %rsi, %rsp\n"
    "pop %r15\npop %r14\npop %r13\npop %r12\npop %rbx\npop %rbp\nret\n"
    ".size emu_switch, . - emu_switch\n");

static void change(emu_fiber *from, emu_fiber *to)
{
	emu_switch(&from->sp, to->sp);
}

static void begin_at(emu_fiber *f, char *top, void (*run)(void))
{
	void **sp = (void **)top;

	*--sp = NULL;			/* keeps the alignment of a call */
	*--sp = (void *)run;
	for (int i = 0; i < 6; i++)
		*--sp = NULL;
	f->sp = sp;
}
#else
static void change(emu_fiber *from, emu_fiber *to)
{
	swapcontext(&from->context, &to->context);
}

static void begin_at(emu_fiber *f, char *top, void (*run)(void))
{
	getcontext(&f->context);
	f->context.uc_stack.ss_sp = f->stack;
	f->context.uc_stack.ss_size = (size_t)(top - f->stack);
	f->context.uc_link = NULL;
	makecontext(&f->context, run, 0);
}
#endif

static void make_ready(emu_fiber *f)
{
	f->state = READY;
	ready[(first_ready + ready_count++) % EMU_THREADS] = f;
}

/* To the next that is ready, or where none is, back to the block. */
static void change_to_next(emu_fiber *from)
{
	emu_fiber *next = NULL;

	if (ready_count > 0) {
		next = ready[first_ready];
		first_ready = (first_ready + 1) % EMU_THREADS;
		ready_count--;
		emu_thread_index = next->index;
		emu_thread = next->id;
		emu_stack = (uintptr_t)next->stack;
	}
	emu_self = next;
	change(from, next ? next : &scheduler);
}

static void run_thread(void)
{
	for (;;) {
		emu_fiber *me = emu_self;

		current->run(current->call);
		if (!me->copies.list.empty())
			emu_report(NULL, "a thread ended with cp.async "
				   "under way");
		me->copies.list.clear();
		me->state = ENDED;
		ended++;
		change_to_next(me);
	}
}

static void prepare(emu_fiber *f)
{
	/* Not all at one place of their pages: caches have few ways. */
	size_t colour = (size_t)(f - fibers) * 832 % 16384 / 64 * 64;

	if (!f->stack) {
		f->stack = (char *)mmap(NULL, EMU_STACK + 4096,
			PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS |
			MAP_NORESERVE, -1, 0);
		mprotect(f->stack, 4096, PROT_NONE);
		f->stack += 4096;
	}
	begin_at(f, f->stack + EMU_STACK - 64 - colour, run_thread);
}

/* ---- barriers and warp instructions */

extern "C" __attribute__((noinline)) void emu_syncthreads(int line)
{
	emu_fiber *me = emu_self;

	me->pc = __builtin_return_address(0);
	me->line = line;
	me->state = AT_BARRIER;
	if (++waiting < threads) {
		change_to_next(me);
		return;
	}
	waiting = 0;
	emu_barrier_time = ++emu_time;
	me->state = READY;
	for (int i = 0; i < threads; i++) {
		emu_fiber *f = &fibers[order[i]];

		if (f->line != line)
			emu_report(me->pc, "__syncthreads at two places at "
				   "once");
		if (f != me)
			make_ready(f);
	}
}

static void sync_warp(struct warp *w, unsigned mask)
{
	emu_time++;
	if (mask == w->here) {
		w->synced = emu_time;
		return;
	}
	for (int i = 0; i < 32; i++)
		for (int j = 0; j < 32; j++)
			if (mask >> i & mask >> j & 1)
				w->pairs[i][j] = emu_time;
}

/* All lanes of the mask are here: do it. */
static void run_warp(emu_fiber *me, unsigned mask)
{
	emu_fiber *first = &fibers[me->id & ~31];
	emu_lane *lanes[32];

	for (int i = 0; i < 32; i++) {
		emu_fiber *f = &first[i];

		if (!(mask >> i & 1))
			continue;
		lanes[i] = f->lane;
		if (f->fn != me->fn || f->mask != me->mask || f->arg != me->arg)
			emu_report(me->pc, "lanes of a warp meet in different "
				   "instructions or masks");
	}
	if (me->fn)
		me->fn(lanes, mask, me->arg);
	else
		sync_warp(me->warp, mask);
	me->warp->arrived &= ~mask;
	for (int i = 0; i < 32; i++)
		if (mask >> i & 1 && &first[i] != me)
			make_ready(&first[i]);
	me->state = READY;
}

static void meet(unsigned mask, emu_lane *lane, emu_warp_fn fn, int arg,
		 const void *pc)
{
	emu_fiber *me = emu_self;
	struct warp *w = me->warp;
	unsigned bit = 1u << (me->id & 31);

	me->pc = pc;
	me->mask = mask;
	me->lane = lane;
	me->fn = fn;
	me->arg = arg;
	me->state = AT_WARP;
	if (!(mask & bit))
		emu_report(pc, "a warp instruction whose mask lacks the "
			   "caller");
	w->arrived |= bit;
	mask = (mask & w->here) | bit;
	if ((w->arrived & mask) == mask)
		run_warp(me, mask);
	else
		change_to_next(me);
}

extern "C" __attribute__((noinline)) void emu_warp(unsigned mask,
		emu_lane *lane, emu_warp_fn fn, int arg)
{
	meet(mask, lane, fn, arg, __builtin_return_address(0));
}

extern "C" __attribute__((noinline)) void emu_syncwarp(unsigned mask)
{
	emu_lane lane = {};

	meet(mask, &lane, NULL, 0, __builtin_return_address(0));
}

/* ---- what others ask of the thread that runs */

emu_copies *emu_my_copies(void) { return &emu_self->copies; }
size_t emu_dynamic_bytes(void) { return current ? current->shared : 0; }
extern "C" void *emu_dynamic_shared(void) { return emu_dynamic; }

bool emu_warp_between(int thread, uint64_t time)
{
	struct warp *w = emu_self->warp;

	return thread / 32 == emu_self->id / 32 &&
		(time < w->synced ||
		 time < w->pairs[thread % 32][emu_self->id % 32]);
}

/* ---- blocks */

static void report_stuck(void)
{
	char line[200], function[200];
	int shown = 0;

	emu_report(NULL, "deadlock: of %d threads %d have ended, %d are at "
		   "__syncthreads", threads, ended, waiting);
	for (int i = 0; i < threads && shown < 4; i++) {
		if (fibers[i].state == ENDED)
			continue;
		emu_locate(fibers[i].pc, line, function, sizeof(line));
		fprintf(stderr, "cuda_on_cpu:   thread %d waits at %s (%s)\n",
			i, line, fibers[i].state == AT_BARRIER ?
			"__syncthreads" : "warp instruction");
		shown++;
	}
}

static void begin_block(void)
{
	emu_block_time = emu_barrier_time = ++emu_time;
	ended = waiting = 0;
	for (emu_arrays &arrays : emu_shared_arrays())
		memset(arrays.begin, 0xff,
		       (size_t)(arrays.end - arrays.begin));
	memset(emu_dynamic, 0xff, current->shared);
	for (int i = 0; i < (threads + 31) / 32; i++) {
		int left = threads - i * 32;

		warps[i].here = left >= 32 ? ~0u : (1u << left) - 1;
		warps[i].arrived = 0;
	}
	first_ready = ready_count = 0;
	for (int i = 0; i < threads; i++) {
		emu_fiber *f = &fibers[order[i]];

		f->copies.group = 0;
		f->pc = NULL;
		make_ready(f);
	}
}

static bool run_block(void)
{
	begin_block();
	change_to_next(&scheduler);
	if (ended == threads)
		return true;
	report_stuck();
	for (int i = 0; i < threads; i++)
		prepare(&fibers[i]);
	return false;
}

static void prepare_threads(dim3 block)
{
	static int prepared;

	threads = (int)(block.x * block.y * block.z);
	for (; prepared < threads; prepared++)
		prepare(&fibers[prepared]);
	for (unsigned i = 0; i < (unsigned)threads; i++) {
		emu_fiber *f = &fibers[i];

		f->id = (int)i;
		f->warp = &warps[i / 32];
		f->index = { i % block.x, i / block.x % block.y,
			     i / block.x / block.y };
		order[i] = (int)i;
	}
	for (int i = threads - 1; i > 0 && !emu_in_order; i--)
		std::swap(order[i], order[emu_random() % (unsigned)(i + 1)]);
}

/* All blocks, by a step that has no divisor in common with their number. */
static void run_blocks(dim3 grid)
{
	uint64_t count = (uint64_t)grid.x * grid.y * grid.z, step = 1, at = 0;

	if (!emu_in_order) {
		at = emu_random() % count;
		for (step = emu_random() % count | 1;
		     std::gcd(step, count) != 1;)
			step += 2;
	}
	for (uint64_t n = 0; n < count; n++, at = (at + step) % count) {
		emu_block = (uint32_t)at;
		emu_block_index = { (unsigned)(at % grid.x),
			(unsigned)(at / grid.x % grid.y),
			(unsigned)(at / grid.x / grid.y) };
		if (!run_block())
			break;
	}
	emu_block = 0;
}

void emu_run_grid(const emu_grid *grid)
{
	current = grid;
	emu_kernel = grid->kernel;
	emu_call_memory = grid->call;
	emu_call_bytes = grid->bytes;
	emu_block_dim = grid->block;
	emu_grid_dim = grid->grid;
	prepare_threads(grid->block);
	run_blocks(grid->grid);
	current = NULL;
	emu_kernel = NULL;
}
