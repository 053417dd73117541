/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The functions that -fsanitize=thread and -fsanitize=alignment have the
 * compiler call: each load and store of a kernel of a checked build comes here.
 * Nothing is linked with those sanitizers' own libraries.
 */
#include "emu.h"

#define CALLER __builtin_return_address(0)

static inline void aligned(void *p, size_t n, const void *pc)
{
	if (emu_self && (uintptr_t)p % n)
		emu_report(pc, "an access of %zu bytes at a misaligned address",
			   n);
}

extern "C" {
#define HOOK(n) \
void __tsan_read##n(void *p) \
{ \
	aligned(p, n, CALLER); \
	emu_access((uintptr_t)p, n, EMU_READ, CALLER); \
} \
void __tsan_write##n(void *p) \
{ \
	aligned(p, n, CALLER); \
	emu_access((uintptr_t)p, n, EMU_WRITE, CALLER); \
} \
void __tsan_volatile_read##n(void *p) \
{ \
	emu_access((uintptr_t)p, n, EMU_READ, CALLER); \
} \
void __tsan_volatile_write##n(void *p) \
{ \
	emu_access((uintptr_t)p, n, EMU_WRITE, CALLER); \
} \
void __tsan_unaligned_read##n(void *p) \
{ \
	emu_access((uintptr_t)p, n, EMU_READ, CALLER); \
} \
void __tsan_unaligned_write##n(void *p) \
{ \
	emu_access((uintptr_t)p, n, EMU_WRITE, CALLER); \
}
HOOK(1)
HOOK(2)
HOOK(4)
HOOK(8)
HOOK(16)

void __tsan_read_range(void *p, size_t n)
{
	emu_access((uintptr_t)p, n, EMU_READ, CALLER);
}

void __tsan_write_range(void *p, size_t n)
{
	emu_access((uintptr_t)p, n, EMU_WRITE, CALLER);
}

/* clang has these instead of the functions themselves. */
void *__tsan_memcpy(void *to, const void *from, size_t n)
{
	emu_access((uintptr_t)from, n, EMU_READ, CALLER);
	emu_access((uintptr_t)to, n, EMU_WRITE, CALLER);
	return memcpy(to, from, n);
}

void *__tsan_memset(void *to, int value, size_t n)
{
	emu_access((uintptr_t)to, n, EMU_WRITE, CALLER);
	return memset(to, value, n);
}

void *__tsan_memmove(void *to, const void *from, size_t n)
{
	emu_access((uintptr_t)from, n, EMU_READ, CALLER);
	emu_access((uintptr_t)to, n, EMU_WRITE, CALLER);
	return memmove(to, from, n);
}

void __tsan_init(void) { emu_hooked = true; }
void __tsan_func_entry(void *) { }
void __tsan_func_exit(void) { }
void __tsan_vptr_update(void **, void *) { }
void __tsan_vptr_read(void **) { }

struct mismatch {
	const char *file;
	uint32_t line, column;
	const void *type;
	unsigned char log_alignment, kind;
};

void __ubsan_handle_type_mismatch_v1(mismatch *m, uintptr_t p)
{
	emu_report(CALLER, "a misaligned pointer: %#zx for %d bytes", (size_t)p,
		   1 << m->log_alignment);
}

void __ubsan_handle_type_mismatch_v1_abort(mismatch *m, uintptr_t p)
{
	__ubsan_handle_type_mismatch_v1(m, p);
}
}
