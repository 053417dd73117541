/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A test asks here for what libc does only rarely. The code that is linked into
 * the program gets it; shared libraries keep libc's own functions.
 */
#ifndef DDP_UNIT_HOOKS_H
#define DDP_UNIT_HOOKS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * The process may allocate so many bytes more from now on. The limit is ours
 * and not the kernel's, because a program under AddressSanitizer needs more than
 * RLIMIT_DATA can leave it.
 */
void hook_limit_memory(size_t bytes);

/* Watch a block of memory, and later ask whether it has been freed. */
void hook_watch_block(const void *block);
bool hook_block_is_free(void);

/*
 * Wake the next waits for a condition without a reason, which POSIX allows: so
 * many without a deadline, and so many with one.
 */
void hook_wake(int untimed, int timed);

/* How many of those are left to wake. */
int hook_count_wakes(void);

/*
 * The deadline of the next wait for a condition passes when this is set, and not
 * before; within a minute it must be.
 */
void hook_expire_after(const atomic_bool *event);

/* How many waits for a condition have begun. */
int hook_count_waits(void);

#endif
