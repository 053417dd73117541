/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The emulator from inside: what its parts share.
 *
 * Time is a counter: it moves at the begin of a block, at each barrier and at
 * the begin of each operation of a stream. All that is known of an access is
 * when it was and by which thread; what lies between two accesses follows.
 */
#ifndef CUDA_ON_CPU_EMU_H
#define CUDA_ON_CPU_EMU_H

#include <stddef.h>
#include <vector>
#include "cuda_on_cpu.h"
#include "../fakes/fake_stream.h"

#pragma GCC visibility push(hidden)

enum { EMU_THREADS = 1024, EMU_STACK = 128 << 10, EMU_SHARED = 227 << 10,
       EMU_STREAMS = 32 };

/* ---- fiber.cc */

struct emu_copy {			/* a cp.async under way */
	void *to;
	const void *from;
	int bytes, group;
	bool live;
};

struct emu_copies {			/* those of a thread */
	std::vector<emu_copy> list;
	int group;
};

struct emu_fiber;
extern emu_fiber *emu_self;		/* the thread that runs; NULL: none */
extern uint64_t emu_time;
extern uint64_t emu_block_time;		/* when the block began */
extern uint64_t emu_barrier_time;	/* its last __syncthreads */
extern uint32_t emu_block;		/* number of the block */
extern const void *emu_kernel;		/* NULL: none runs */
extern const void *emu_call_memory;	/* a launch's arguments */
extern size_t emu_call_bytes;

extern int emu_thread;			/* its number in the block */
extern uintptr_t emu_stack;		/* where its stack begins */
emu_copies *emu_my_copies(void);
/* Whether this warp ordered what that thread did then before now. */
bool emu_warp_between(int thread, uint64_t time);
size_t emu_dynamic_bytes(void);		/* of the launch */

struct emu_grid {
	const void *kernel;
	dim3 grid, block;
	size_t shared;
	void *call;
	size_t bytes;
	void (*run)(void *);
};
void emu_run_grid(const emu_grid *grid);

extern char emu_dynamic[];		/* dynamic shared memory */

/* ---- report.cc */

extern bool emu_hooked;			/* kernels tell of each access */
void emu_report(const void *pc, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* The line and the function behind which a call returned */
void emu_locate(const void *pc, char *text, char *function, size_t room);
void emu_get_banks(unsigned long *rows, unsigned long *conflicts);
const char *emu_kernel_name(const void *kernel);
void emu_watch_faults(void);

/* ---- access.cc */

enum emu_kind { EMU_READ, EMU_WRITE, EMU_ATOMIC, EMU_ISSUE, EMU_LAND };
void emu_access(uintptr_t a, size_t n, emu_kind kind, const void *pc);
void emu_access_host(uintptr_t a, size_t n, emu_kind kind, const char *who);

extern uint64_t emu_touches;		/* calls of emu_access_host */
struct emu_arrays {			/* the __shared__ ones of a file */
	char *begin, *end;
	uint64_t *writes, *reads;	/* their shadow */
};
std::vector<emu_arrays> &emu_shared_arrays(void);

/* ---- memory.cc: one reservation, the device's memory and then pinned */

#define EMU_ROOM ((size_t)64 << 30)
#define EMU_PINNED_ROOM ((size_t)8 << 30)
#define EMU_GRANULE 256			/* allocations begin at multiples */

struct emu_memory {
	uintptr_t at;
	size_t bytes;
	bool pinned, freed;
};
extern char *emu_space;
extern uint32_t *emu_owner;		/* of each granule; 0: none */
extern emu_memory *emu_memories;
extern uint64_t *emu_writes, *emu_reads;	/* shadow: 8 bytes for 2 */

static inline bool emu_is_device(uintptr_t a)
{
	return emu_space && a - (uintptr_t)emu_space < EMU_ROOM;
}

static inline bool emu_is_ours(uintptr_t a)
{
	return emu_space && a - (uintptr_t)emu_space <
		EMU_ROOM + EMU_PINNED_ROOM;
}

/* The allocation of an address of ours; one of no bytes if there is none. */
static inline const emu_memory *emu_memory_of(uintptr_t a)
{
	return &emu_memories[emu_owner[(a - (uintptr_t)emu_space) /
		EMU_GRANULE]];
}

static inline bool emu_inside(uintptr_t a, size_t n)
{
	const emu_memory *m = emu_memory_of(a);

	return !m->freed && a >= m->at && a + n <= m->at + m->bytes;
}

const char *emu_describe(uintptr_t a);
void emu_open_memory(bool open);	/* let the host's thread touch it */

/* ---- stream.cc */

struct emu_moment {			/* what is before an operation */
	uint32_t clock[EMU_STREAMS];
};

struct CUstream_st {
	struct fake_stream head;
	int number;
	uint32_t last;			/* operation */
	emu_moment before;
	bool open;
};

typedef int (*emu_work)(void *arg);	/* 1: done; 0: call again later */

extern uint32_t emu_op;			/* that runs: 0 none, the host */
extern bool emu_in_order;		/* blocks and threads, too */
void emu_start(void);
uint64_t emu_random(void);
/* The operation that ran then, and since when until when it did. */
uint32_t emu_op_at(uint64_t time, uint64_t *begin, uint64_t *end);
extern uint64_t emu_op_time;		/* when the one that runs began */
bool emu_op_before(uint32_t earlier, uint32_t later);
const char *emu_op_name(uint32_t op);
const void *emu_op_kind(uint32_t op);	/* equal for those of one kind */

CUstream_st *emu_stream(cudaStream_t stream);	/* also of NULL */
CUstream_st *emu_open_stream(void);
/*
 * name is kept; a kernel has its address instead. It runs after that operation,
 * too, unless that is 0.
 */
uint32_t emu_enqueue(cudaStream_t stream, const char *name, emu_work run,
		     void *arg, uint32_t after = 0,
		     const void *kernel = NULL);
bool emu_poll(uint32_t op, int *patience);	/* is it done? */
void emu_wait(uint32_t op);
const emu_moment *emu_stream_moment(cudaStream_t stream);
void emu_host_waited(const emu_moment *moment);
void emu_count_wait(void);		/* for a stream, or all of them */
void emu_get_waits(unsigned long *of_host, unsigned long *in_default);
unsigned emu_count_allocations(void);
void emu_stream_waited(cudaStream_t stream, const emu_moment *moment);
void emu_wait_all(void);

/* ---- device.cc */

cudaError_t emu_fail(cudaError_t error);	/* for cudaGetLastError */
cudaError_t emu_driver_error(void);	/* whether a GPU can be used */
int emu_shared_limit(void);		/* bytes of a block, at most */
void emu_count_launch(void);
void emu_fail_unseen(int error);	/* from now on, by another's call */
cudaError_t emu_failure(void);		/* that every call has from now on */

#pragma GCC visibility pop

#endif
