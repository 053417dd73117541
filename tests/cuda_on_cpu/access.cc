/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is wrong with an access of a kernel: out of bounds, of memory never
 * written, a race. Accesses come from hooks.cc, which -fsanitize=thread has the
 * compiler call; those of a library's or a copy's, from their fakes.
 *
 * For each two bytes of memory, a shadow tells who wrote them last and who read
 * them since: a stamp of the time and the thread. "Before" is what a barrier,
 * the order of a stream or an event between puts before; what is not before is
 * a race, whatever order it happened to run in.
 */
#include <link.h>
#include <map>
#include <sys/mman.h>
#include "emu.h"

/* Instead of a thread's number, from EMU_THREADS on */
enum {
	A_SET = 4090,			/* reads of several operations */
	IN_FLIGHT,			/* cp.async will write */
	ATOMICALLY,
	BLOCKS,				/* several blocks of a launch */
	SEVERAL				/* threads of a block; or no kernel */
};

static std::vector<std::vector<uint32_t>> sets;
static std::map<std::vector<uint32_t>, uint64_t> merged;

static inline uint64_t stamp_of(int thread)
{
	return emu_time << 12 | (uint64_t)thread;
}

static inline int thread_of(uint64_t stamp) { return (int)(stamp & 0xfff); }

/* ---- order */

struct range { uint64_t begin, end; uint32_t op, later; bool before; };

/* Is what ran at that time before the operation that runs? Often asked anew. */
static bool op_before(uint64_t time, range *known)
{
	if (time < known->begin || time >= known->end ||
	    known->later != emu_op) {
		known->later = emu_op;
		known->op = emu_op_at(time, &known->begin, &known->end);
		known->before = emu_op_before(known->op, emu_op);
	}
	return known->before;
}

static bool set_before(uint64_t index)
{
	static uint64_t last_index;
	static uint32_t last_op;

	if (index == last_index && emu_op == last_op)
		return true;
	for (uint32_t op : sets[index])
		if (!emu_op_before(op, emu_op))
			return false;
	last_index = index;
	last_op = emu_op;
	return true;
}

static inline bool block_before(uint64_t stamp)
{
	int thread = thread_of(stamp);

	if (stamp >> 12 < emu_barrier_time)
		return stamp >> 12 >= emu_block_time && thread != BLOCKS;
	return thread == emu_thread || (thread < EMU_THREADS &&
		emu_warp_between(thread, stamp >> 12));
}

static bool global_before(uint64_t stamp, bool atomic, range *known)
{
	if (thread_of(stamp) == A_SET)
		return set_before(stamp >> 12);
	if (stamp >> 12 < emu_op_time)
		return op_before(stamp >> 12, known);
	if (!emu_self || (atomic && thread_of(stamp) == ATOMICALLY))
		return true;
	return thread_of(stamp) != BLOCKS && block_before(stamp);
}

static bool shared_before(uint64_t stamp)
{
	return stamp >> 12 < emu_block_time || block_before(stamp);
}

/* The same launch has other readers, of which only that much is kept. */
static uint64_t add_thread(uint64_t old, uint64_t now)
{
	bool blocks = old >> 12 < emu_block_time || thread_of(old) == BLOCKS;

	return (now & ~0xfffull) | (blocks ? BLOCKS : SEVERAL);
}

/* Operations that read with no order between: each is to be before a write. */
static uint64_t add_operation(uint64_t old)
{
	std::vector<uint32_t> set;
	uint64_t begin, end;

	if (thread_of(old) == A_SET)
		set = sets[old >> 12];
	else
		set.push_back(emu_op_at(old >> 12, &begin, &end));
	if (set.back() == emu_op)
		return old;
	set.push_back(emu_op);
	uint64_t &made = merged[set];
	if (!made) {
		sets.push_back(set);
		made = (sets.size() - 1) << 12 | A_SET;
	}
	return made;
}

static uint64_t add_reader(uint64_t old, uint64_t now)
{
	return thread_of(old) != A_SET && old >> 12 >= emu_op_time ?
		add_thread(old, now) : add_operation(old);
}

/* ---- global memory */

static const char *verb(emu_kind kind)
{
	return kind == EMU_READ ? "reads" : "writes";
}

/* Who a report is about: a kernel has no name until it is asked for. */
static const char *name_of(const char *who)
{
	return who ? who : emu_kernel_name(emu_kernel);
}

static void report_race(uint64_t stamp, bool wrote, emu_kind kind, uintptr_t a,
			const void *pc, const char *who)
{
	const char *other = wrote ? "writes" : "reads";
	uint64_t begin, end;
	uint32_t op = thread_of(stamp) == A_SET ? sets[stamp >> 12][0] :
		emu_op_at(stamp >> 12, &begin, &end);

	if (op == emu_op)
		emu_report(pc, "race: %s %s what another thread of the same "
			   "launch %s: %s", name_of(who), verb(kind), other,
			   emu_describe(a));
	else
		emu_report(pc, "race: %s %s what %s %s, and no event or order "
			   "of a stream is between: %s", name_of(who),
			   verb(kind), emu_op_name(op), other,
			   emu_describe(a));
}

static void check_global(uintptr_t a, uint64_t *w, uint64_t *r, emu_kind kind,
			 const void *pc, const char *who)
{
	static range writers, readers;
	bool atomic = kind == EMU_ATOMIC;
	uint64_t now = stamp_of(atomic ? (int)ATOMICALLY : emu_self ?
				emu_thread : (int)SEVERAL);

	if (*w && !global_before(*w, atomic, &writers))
		report_race(*w, true, kind, a, pc, who);
	if (kind != EMU_READ) {
		if (*r && !global_before(*r, false, &readers))
			report_race(*r, false, kind, a, pc, who);
		*w = now;
		return;
	}
	if (!*w && emu_is_device(a))
		emu_report(pc, "%s reads memory never written: %s",
			   name_of(who),
			   emu_describe(a));
	if (*r == now || *r == (now | SEVERAL))
		return;
	*r = !*r || global_before(*r, false, &readers) ? now :
		add_reader(*r, now);
}

static void access_global(uintptr_t a, size_t n, emu_kind kind, const void *pc,
			  const char *who)
{
	size_t at = (a - (uintptr_t)emu_space) / 2;

	if (!emu_inside(a, n)) {
		emu_report(pc, "%s %s %s: %s", name_of(who), verb(kind),
			   emu_memory_of(a)->freed ? "freed memory" :
			   "out of bounds", emu_describe(a));
		return;
	}
	if (!emu_hooked)
		return;
	for (size_t i = 0; i < (n + 1) / 2; i++)
		check_global(a + 2 * i, &emu_writes[at + i],
			     &emu_reads[at + i], kind, pc, who);
}

/* ---- shared memory */

static void check_shared(uintptr_t a, uint64_t *w, uint64_t *r, emu_kind kind,
			 const void *pc)
{
	uint64_t now = stamp_of(kind == EMU_ATOMIC ? (int)ATOMICALLY :
				kind == EMU_ISSUE ? (int)IN_FLIGHT :
				emu_thread);
	bool here = *w >> 12 >= emu_block_time;

	if (kind == EMU_READ && !here)
		emu_report(pc, "read of shared memory never written (byte %zu)",
			   (size_t)(a - (uintptr_t)emu_dynamic));
	if (here && thread_of(*w) == IN_FLIGHT && kind != EMU_LAND)
		emu_report(pc, "access to shared memory that cp.async still "
			   "fills");
	else if (kind != EMU_LAND && !(kind == EMU_ATOMIC &&
		 thread_of(*w) == ATOMICALLY) && !shared_before(*w))
		emu_report(pc, "race in shared memory: thread %d %s what "
			   "thread %d wrote, no barrier between", emu_thread,
			   verb(kind), thread_of(*w));
	if (kind == EMU_READ)
		*r = shared_before(*r) ? now : (now & ~0xfffull) | SEVERAL;
	else if (kind != EMU_LAND && !shared_before(*r))
		emu_report(pc, "race in shared memory: thread %d writes what "
			   "thread %d read, no barrier between", emu_thread,
			   thread_of(*r));
	if (kind != EMU_READ)
		*w = now;
}

static uint64_t *make_shadow(size_t bytes)
{
	return (uint64_t *)mmap(NULL, bytes * 4 + 64, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

std::vector<emu_arrays> &emu_shared_arrays(void)
{
	static std::vector<emu_arrays> list;

	return list;		/* made before kernel files' constructors */
}

extern "C" void emu_static_shared(char *begin, char *end)
{
	size_t bytes = (size_t)(end - begin);

	for (emu_arrays &arrays : emu_shared_arrays())
		if (arrays.begin == begin)
			return;
	if (bytes > 0)
		emu_shared_arrays().push_back({ begin, end, make_shadow(bytes),
					      make_shadow(bytes) });
}

/* The arrays that a is in: dynamic shared memory, those of a file, or NULL. */
static emu_arrays *find_arrays(uintptr_t a)
{
	static emu_arrays dynamic = { emu_dynamic, emu_dynamic + EMU_SHARED,
		make_shadow(EMU_SHARED), make_shadow(EMU_SHARED) };

	if (a - (uintptr_t)emu_dynamic < EMU_SHARED)
		return &dynamic;
	for (emu_arrays &arrays : emu_shared_arrays())
		if (a - (uintptr_t)arrays.begin <
		    (uintptr_t)(arrays.end - arrays.begin))
			return &arrays;
	return NULL;
}

static void access_shared(emu_arrays *arrays, uintptr_t a, size_t n,
			  emu_kind kind, const void *pc)
{
	size_t at = a - (uintptr_t)arrays->begin;
	size_t bytes = arrays->begin == emu_dynamic ? emu_dynamic_bytes() :
		(size_t)(arrays->end - arrays->begin);

	if (at + n > bytes) {
		emu_report(pc, "shared memory out of bounds: byte %zu of %zu",
			   at, bytes);
		return;
	}
	if (!emu_hooked)
		return;
	for (size_t i = 0; i < (n + 1) / 2; i++)
		check_shared(a + 2 * i, &arrays->writes[at / 2 + i],
			     &arrays->reads[at / 2 + i], kind, pc);
}

/* ---- all */

static int find_own(struct dl_phdr_info *info, size_t, void *result)
{
	uintptr_t *range = (uintptr_t *)result, low = UINTPTR_MAX, high = 0;

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type != PT_LOAD)
			continue;
		low = std::min<uintptr_t>(low, info->dlpi_addr + p->p_vaddr);
		high = std::max<uintptr_t>(high, info->dlpi_addr + p->p_vaddr +
					   p->p_memsz);
	}
	if ((uintptr_t)emu_dynamic < low || (uintptr_t)emu_dynamic >= high)
		return 0;
	range[0] = low;
	range[1] = high;
	return 1;
}

/* Constants of the kernels' own file, and a launch's arguments */
static bool may_read(uintptr_t a)
{
	static uintptr_t own[2];

	if (own[1] == 0)
		dl_iterate_phdr(find_own, own);
	return (a >= own[0] && a < own[1]) ||
		a - (uintptr_t)emu_call_memory < emu_call_bytes;
}

void emu_access(uintptr_t a, size_t n, emu_kind kind, const void *pc)
{
	emu_arrays *arrays;

	if (!emu_self || a - emu_stack < EMU_STACK)
		return;
	if (emu_is_device(a))
		access_global(a, n, kind, pc, NULL);
	else if ((arrays = find_arrays(a)))
		access_shared(arrays, a, n, kind, pc);
	else if (emu_is_ours(a) || kind != EMU_READ || !may_read(a))
		emu_report(pc, "%s %s the host's memory", name_of(NULL),
			   verb(kind));
}

uint64_t emu_touches;

/* By what is no kernel: a copy, or a library's work */
void emu_access_host(uintptr_t a, size_t n, emu_kind kind, const char *who)
{
	emu_touches++;
	if (n > 0 && emu_is_ours(a))
		access_global(a, n, kind, NULL, who);
}
