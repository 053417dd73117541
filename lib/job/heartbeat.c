/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ddp_heartbeat: counts in the file that lib/layout/vars.h describes. It
 * may interrupt itself in a signal handler, so nobody waits here: a beat that
 * comes while the first one opens the file is not counted.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ddp.h"
#include "layout/vars.h"

static atomic_flag tried = ATOMIC_FLAG_INIT;
static struct ddp_heartbeat *_Atomic counter;	/* NULL: counts nothing */

/*
 * A child of fork counts nothing. A data loader's workers would hide that the
 * rank itself hangs.
 */
static void stop_counting(void)
{
	atomic_flag_test_and_set(&tried);
	atomic_store(&counter, NULL);
}

/* Runs when the library is loaded, so that a child is known before any beat. */
__attribute__((constructor)) static void expect_forks(void)
{
	pthread_atfork(NULL, NULL, stop_counting);
}

/* A file of the user's that was named by mistake stays as it is. */
static bool is_ours(const struct stat *status)
{
	return S_ISREG(status->st_mode) && status->st_uid == geteuid() &&
	       (status->st_size == 0 ||
		status->st_size == DDP_HEARTBEAT_SIZE);
}

/*
 * Take the file's blocks now: on a full disk a beat would end the process by
 * SIGBUS, and above the limit on files this would end it by SIGXFSZ.
 */
static bool take_blocks(int fd)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_FSIZE, &limit) == 0 &&
	       limit.rlim_cur >= DDP_HEARTBEAT_SIZE &&
	       posix_fallocate(fd, 0, DDP_HEARTBEAT_SIZE) == 0;
}

static struct ddp_heartbeat *map_file(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK |
		      O_NOCTTY | O_CLOEXEC, 0600);
	void *page = MAP_FAILED;
	struct stat status;

	if (fd < 0)
		return NULL;
	if (fstat(fd, &status) == 0 && is_ours(&status) && take_blocks(fd))
		page = mmap(NULL, DDP_HEARTBEAT_SIZE, PROT_READ | PROT_WRITE,
			    MAP_SHARED, fd, 0);
	close(fd);
	return page == MAP_FAILED ? NULL : page;
}

static struct ddp_heartbeat *open_counter(void)
{
	struct ddp_heartbeat *page = NULL;
	const char *path;
	int reason = errno;

	if (atomic_flag_test_and_set(&tried))
		return NULL;
	path = secure_getenv(DDP_HEARTBEAT_VARIABLE);
	if (path && *path == '/')
		page = map_file(path);
	atomic_store_explicit(&counter, page, memory_order_release);
	errno = reason;
	return page;
}

void ddp_heartbeat(void)
{
	struct ddp_heartbeat *page = atomic_load_explicit(&counter,
							 memory_order_acquire);

	if (!page)
		page = open_counter();
	if (page)
		atomic_fetch_add_explicit(&page->beats, 1,
					  memory_order_relaxed);
}
