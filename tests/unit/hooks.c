/* SPDX-License-Identifier: BSD-3-Clause */
/* --wrap in tests.mk makes the linker replace libc's functions by these. */
#define _GNU_SOURCE
#include "hooks.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/resource.h>
#include <unistd.h>

/* Is there only in a program under AddressSanitizer. */
void __asan_init(void) __attribute__((weak));

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void __real_free(void *block);
int __real_setrlimit(int resource, const struct rlimit *limit);
int __real_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock);
int __real_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *lock,
				  const struct timespec *until);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
void __wrap_free(void *block);
int __wrap_setrlimit(int resource, const struct rlimit *limit);
int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock);
int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *lock,
				  const struct timespec *until);

static size_t bytes_left = SIZE_MAX;	/* SIZE_MAX: there is no limit */
static _Atomic uintptr_t watched;	/* 0 after it was freed */
static atomic_int untimed_wakes, timed_wakes, waits;
static const atomic_bool *expires_after;

/* ---- memory */

void hook_limit_memory(size_t bytes)
{
	bytes_left = bytes;
}

/* Returns 0, or -1 with errno set if count times size bytes are too many. */
static int take(size_t count, size_t size)
{
	if (bytes_left == SIZE_MAX)
		return 0;
	if (size > 0 && count > bytes_left / size) {
		errno = ENOMEM;
		return -1;
	}
	bytes_left -= count * size;
	return 0;
}

void *__wrap_malloc(size_t size)
{
	return take(1, size) == 0 ? __real_malloc(size) : NULL;
}

void *__wrap_calloc(size_t count, size_t size)
{
	return take(count, size) == 0 ? __real_calloc(count, size) : NULL;
}

void *__wrap_realloc(void *old, size_t size)
{
	return take(1, size) == 0 ? __real_realloc(old, size) : NULL;
}

void hook_watch_block(const void *block)
{
	watched = (uintptr_t)block;
}

bool hook_block_is_free(void)
{
	return watched == 0;
}

void __wrap_free(void *block)
{
	if (block && (uintptr_t)block == watched)
		watched = 0;
	__real_free(block);
}

/*
 * AddressSanitizer reserves far more memory than the code allows itself, so that
 * under the kernel's limit nothing could be allocated any more.
 */
int __wrap_setrlimit(int resource, const struct rlimit *limit)
{
	if (resource != RLIMIT_DATA || !__asan_init)
		return __real_setrlimit(resource, limit);
	hook_limit_memory(limit->rlim_cur);
	return 0;
}

/* ---- conditions */

void hook_wake(int untimed, int timed)
{
	untimed_wakes = untimed;
	timed_wakes = timed;
}

int hook_count_wakes(void)
{
	return untimed_wakes + timed_wakes;
}

int hook_count_waits(void)
{
	return waits;
}

static bool wakes(atomic_int *left)
{
	waits++;
	return *left > 0 && (*left)--;
}

void hook_expire_after(const atomic_bool *event)
{
	expires_after = event;
}

static int expire(pthread_mutex_t *lock)
{
	const atomic_bool *event = expires_after;
	int i;

	expires_after = NULL;
	pthread_mutex_unlock(lock);
	for (i = 0; i < 60000 && !*event; i++)
		usleep(1000);
	pthread_mutex_lock(lock);
	return ETIMEDOUT;
}

int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock)
{
	return wakes(&untimed_wakes) ? 0 :
		__real_pthread_cond_wait(cond, lock);
}

int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *lock,
				  const struct timespec *until)
{
	if (wakes(&timed_wakes))
		return 0;
	return expires_after ? expire(lock) :
		__real_pthread_cond_timedwait(cond, lock, until);
}
