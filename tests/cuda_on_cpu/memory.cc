/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The device's memory and the host's pinned one: one reservation, with room
 * behind each allocation, whose addresses are never given out again. The host
 * cannot touch the device's: outside of the work of streams it is protected.
 *
 *   EMU_BYTES=N    memory of the GPU [8 GiB]
 *   EMU_GUARD=no   leave it open to the host
 */
#include <limits.h>
#include <map>
#include <stdio.h>
#include <stdlib.h>
#include <string>
#include <sys/mman.h>
#include "emu.h"

enum { MEMORIES = 1 << 20, ROOM_BEHIND = 4096 };
static const size_t huge = 2 << 20;

char *emu_space;
uint32_t *emu_owner;
emu_memory *emu_memories;
uint64_t *emu_writes, *emu_reads;
static uint32_t memory_count = 1;
static size_t used[2], device_bytes;	/* used: of device and pinned */
static bool guard = true;

static void *reserve(size_t bytes)
{
	void *p = mmap(NULL, bytes + huge, PROT_READ | PROT_WRITE, MAP_PRIVATE |
		       MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED) {
		perror("cuda_on_cpu: mmap");
		exit(1);
	}
	/* Protecting huge pages is quick. */
	p = (void *)(((uintptr_t)p + huge - 1) / huge * huge);
	madvise(p, bytes, MADV_HUGEPAGE);
	return p;
}

static void start_memory(void)
{
	const size_t all = EMU_ROOM + EMU_PINNED_ROOM;
	const char *text = getenv("EMU_GUARD");

	emu_start();
	if (emu_space)
		return;
	guard = !text || strcmp(text, "no") != 0;
	emu_owner = (uint32_t *)reserve(all / EMU_GRANULE * 4);
	emu_memories = (emu_memory *)reserve(MEMORIES * sizeof(emu_memory));
	emu_writes = (uint64_t *)reserve(all * 4);
	emu_reads = (uint64_t *)reserve(all * 4);
	emu_space = (char *)reserve(all);
}

void emu_open_memory(bool open)
{
	static int depth;

	if (!guard || used[0] == 0)
		return;
	depth += open ? 1 : -1;
	if (depth == (open ? 1 : 0))
		mprotect(emu_space, (used[0] + huge - 1) / huge * huge,
			 open ? PROT_READ | PROT_WRITE : PROT_NONE);
}

const char *emu_describe(uintptr_t a)
{
	static char texts[2][160];
	static int turn;
	char *text = texts[turn ^= 1];
	const emu_memory *m = emu_memory_of(a);

	/* The end of one that is left of here */
	for (uintptr_t at = a; m->at == 0 && at > (uintptr_t)emu_space +
			EMU_GRANULE && a - at < 1 << 20; at -= EMU_GRANULE)
		m = emu_memory_of(at);
	if (m->at == 0)
		snprintf(text, 160, "address %#zx of no allocation", (size_t)a);
	else
		snprintf(text, 160, "byte %zu of %s%zu bytes at %#zx",
			 (size_t)(a - m->at), m->freed ? "freed " : "",
			 m->bytes, (size_t)m->at);
	return text;
}

/* ---- allocating */

static size_t total_bytes(void)
{
	const char *text = getenv("EMU_BYTES");

	return text ? strtoull(text, NULL, 10) : (size_t)8 << 30;
}

static cudaError_t take(void **p, size_t bytes, bool pinned)
{
	start_memory();
	size_t most = pinned ? EMU_PINNED_ROOM : EMU_ROOM;
	size_t at = (used[pinned] + ROOM_BEHIND + EMU_GRANULE - 1) /
		EMU_GRANULE * EMU_GRANULE;

	*p = NULL;
	if (bytes == 0)
		return cudaSuccess;
	if (bytes > most || at + bytes + huge > most ||
	    memory_count == MEMORIES ||
	    (!pinned && device_bytes + bytes > total_bytes()))
		return emu_fail(cudaErrorMemoryAllocation);
	*p = emu_space + (pinned ? EMU_ROOM : 0) + at;
	emu_memories[memory_count] = { (uintptr_t)*p, bytes, pinned, false };
	for (size_t i = 0; i < bytes; i += EMU_GRANULE)
		emu_owner[((uintptr_t)*p + i - (uintptr_t)emu_space) /
			EMU_GRANULE] = memory_count;
	memory_count++;
	used[pinned] = at + bytes;
	device_bytes += pinned ? 0 : bytes;
	emu_open_memory(true);
	memset(*p, 0xff, bytes);	/* NaN, whatever the type */
	emu_open_memory(false);
	return cudaSuccess;
}

/* Large ones give their pages back, and those of their shadow. */
static void drop_pages(char *begin, char *end)
{
	begin = (char *)(((uintptr_t)begin + huge - 1) / huge * huge);
	end = (char *)((uintptr_t)end / huge * huge);
	if (begin < end)
		madvise(begin, (size_t)(end - begin), MADV_DONTNEED);
}

static void drop(const emu_memory *m)
{
	size_t at = m->at - (uintptr_t)emu_space;

	drop_pages((char *)m->at, (char *)m->at + m->bytes);
	drop_pages((char *)emu_writes + at * 4,
		   (char *)emu_writes + (at + m->bytes) * 4);
	drop_pages((char *)emu_reads + at * 4,
		   (char *)emu_reads + (at + m->bytes) * 4);
}

/* CUDA waits for all work first; here no program can count on that. */
static cudaError_t give(void *p, bool pinned, const void *pc)
{
	emu_memory *m;

	if (!p)
		return cudaSuccess;
	start_memory();
	m = emu_is_ours((uintptr_t)p) ?
		(emu_memory *)emu_memory_of((uintptr_t)p) : emu_memories;
	if (m->at != (uintptr_t)p || m->freed || m->pinned != pinned) {
		emu_report(pc, "%s of what %s", pinned ? "cudaFreeHost" :
			   "cudaFree", m->at == (uintptr_t)p && m->freed ?
			   "is freed already" : "was not allocated so");
		return emu_fail(cudaErrorInvalidValue);
	}
	m->freed = true;
	drop(m);
	device_bytes -= pinned ? 0 : m->bytes;
	return cudaSuccess;
}

unsigned emu_count_allocations(void)
{
	return memory_count - 1;
}

/* ---- copying */

struct transfer {
	void *to;
	const void *from;
	size_t bytes;
	int value;
	std::string staged;
};

static int run_copy(void *arg)
{
	transfer *t = (transfer *)arg;

	if (t->staged.empty())
		emu_access_host((uintptr_t)t->from, t->bytes, EMU_READ,
				"memcpy");
	emu_access_host((uintptr_t)t->to, t->bytes, EMU_WRITE, "memcpy");
	memcpy(t->to, t->staged.empty() ? t->from : t->staged.data(),
	       t->bytes);
	delete t;
	return 1;
}

static int run_set(void *arg)
{
	transfer *t = (transfer *)arg;

	emu_access_host((uintptr_t)t->to, t->bytes, EMU_WRITE, "memset");
	memset(t->to, t->value, t->bytes);
	delete t;
	return 1;
}

static bool usable(const void *p, size_t n)
{
	return !emu_is_ours((uintptr_t)p) || emu_inside((uintptr_t)p, n);
}

static bool fits(cudaMemcpyKind kind, const void *to, const void *from)
{
	bool to_device = kind == cudaMemcpyHostToDevice ||
		kind == cudaMemcpyDeviceToDevice;
	bool from_device = kind == cudaMemcpyDeviceToHost ||
		kind == cudaMemcpyDeviceToDevice;

	return kind == cudaMemcpyDefault ||
		(emu_is_device((uintptr_t)to) == to_device &&
		 emu_is_device((uintptr_t)from) == from_device);
}

/*
 * What is pageable is staged before the call returns; to it, the call returns
 * when the copy is complete.
 */
static cudaError_t copy(void *to, const void *from, size_t n,
			cudaMemcpyKind kind, cudaStream_t stream, bool *waits,
			const void *pc)
{
	transfer *t;

	start_memory();
	if (!usable(to, n) || !usable(from, n) || !fits(kind, to, from)) {
		emu_report(pc, "a copy of %zu bytes %s", n,
			   fits(kind, to, from) ? "beyond an allocation" :
			   "whose kind is not that of its addresses");
		return emu_fail(cudaErrorInvalidValue);
	}
	if (n == 0)
		return cudaSuccess;
	t = new transfer{ to, from, n, 0, "" };
	if (!emu_is_ours((uintptr_t)from)) {
		t->staged.assign((const char *)from, n);
		*waits = false;
	}
	if (!emu_is_ours((uintptr_t)to))
		*waits = true;
	emu_enqueue(stream, "memcpy", run_copy, t);
	return *waits ? cudaStreamSynchronize(stream) : emu_failure();
}

extern "C" {
cudaError_t cudaMalloc(void **p, size_t n) { return take(p, n, false); }
cudaError_t cudaMallocHost(void **p, size_t n) { return take(p, n, true); }
cudaError_t cudaHostAlloc(void **p, size_t n, unsigned)
{
	return take(p, n, true);
}

cudaError_t cudaFree(void *p)
{
	return give(p, false, __builtin_return_address(0));
}

cudaError_t cudaFreeHost(void *p)
{
	return give(p, true, __builtin_return_address(0));
}

cudaError_t cudaMemGetInfo(size_t *left, size_t *all)
{
	*all = total_bytes();
	*left = *all - device_bytes;
	return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t n,
			    cudaMemcpyKind kind, cudaStream_t stream)
{
	bool waits = false;

	return copy(to, from, n, kind, stream, &waits,
		    __builtin_return_address(0));
}

/* Between two places of the device the host does not wait. */
cudaError_t cudaMemcpy(void *to, const void *from, size_t n,
		       cudaMemcpyKind kind)
{
	bool waits = !emu_is_device((uintptr_t)to) ||
		!emu_is_device((uintptr_t)from);

	return copy(to, from, n, kind, NULL, &waits,
		    __builtin_return_address(0));
}

cudaError_t cudaMemsetAsync(void *p, int value, size_t n, cudaStream_t stream)
{
	start_memory();
	if (!usable(p, n) || !emu_is_ours((uintptr_t)p)) {
		emu_report(__builtin_return_address(0), "cudaMemset of %zu "
			   "bytes beyond an allocation", n);
		return emu_fail(cudaErrorInvalidValue);
	}
	if (n > 0)
		emu_enqueue(stream, "memset", run_set,
			    new transfer{ p, NULL, n, value, "" });
	return emu_failure();
}

/* The host does not wait: what another stream does is not behind it. */
cudaError_t cudaMemset(void *p, int value, size_t n)
{
	return cudaMemsetAsync(p, value, n, NULL);
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *attributes,
				     const void *p)
{
	uintptr_t a = (uintptr_t)p;

	*attributes = {};
	attributes->type = emu_is_device(a) ? cudaMemoryTypeDevice :
		emu_is_ours(a) ? cudaMemoryTypeHost :
		cudaMemoryTypeUnregistered;
	attributes->devicePointer = emu_is_ours(a) ? (void *)p : NULL;
	attributes->hostPointer = emu_is_ours(a) && !emu_is_device(a) ?
		(void *)p : NULL;
	return cudaSuccess;
}
}
