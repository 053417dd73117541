/* SPDX-License-Identifier: BSD-3-Clause */
/* The folders of a PATH, the name of a private folder, and what a pipe holds. */
#define _GNU_SOURCE
#include <criterion/criterion.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/file.h"

/* The names that a file "a" has, with a blank behind each. */
static const struct {
	const char *path, *wanted;
} table[] = {
	{ NULL, "" },
	{ "", "" },
	{ ":", "" },
	{ "/bin", "/bin/a " },
	{ "/usr/bin:/bin", "/usr/bin/a /bin/a " },
	{ ":/bin::b:", "/bin/a b/a " },
	{ "/:.", "//a ./a " },
};

Test(path, folders)
{
	char file[PATH_MAX], found[256];
	const char *at;
	size_t i;

	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		found[0] = '\0';
		for (at = table[i].path; ddp_path_next(&at, "a", file);)
			strcat(strcat(found, file), " ");
		cr_expect_str_eq(found, table[i].wanted, "%zu: %s", i, found);
	}
}

/* The folder has PATH_MAX - 3 bytes at most: '/', 'a' and the NUL follow it. */
Test(path, too_long)
{
	char path[2 * PATH_MAX], file[PATH_MAX];
	const char *at = path;

	memset(path, 'f', sizeof(path));
	strcpy(path + PATH_MAX - 3, ":/bin");
	cr_expect(ddp_path_next(&at, "a", file));
	cr_expect_eq(strlen(file), PATH_MAX - 1);
	cr_expect(ddp_path_next(&at, "a", file));
	cr_expect_str_eq(file, "/bin/a");
	at = path;
	cr_expect(ddp_path_next(&at, "aa", file));
	cr_expect_str_eq(file, "/bin/aa");
	cr_expect_not(ddp_path_next(&at, "aa", file));
}

/* A file of /proc does not tell its size: what is read counts. */
Test(file, is_read_up_to_a_limit)
{
	static const char path[] = "/proc/self/status";
	char *all = ddp_file_read(path), *text;
	size_t size = strlen(all), length;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	text = ddp_file_read_fd(fd, size + 100, &length);
	cr_assert(text);
	cr_expect_eq(length, strlen(text));
	free(text);
	lseek(fd, 0, SEEK_SET);
	errno = 0;
	cr_expect_null(ddp_file_read_fd(fd, 10, &length));
	cr_expect_eq(errno, EFBIG);
	close(fd);
	free(all);
}

Test(private, name)
{
	char name[DDP_PRIVATE_SIZE];

	ddp_private_format(12, 0, 3, name);
	cr_expect_str_eq(name, "slurm-ddp.12.0.3.");
}

/* The longest, with its folder and a random end. */
Test(private, fits)
{
	char name[DDP_PRIVATE_SIZE];

	ddp_private_format(4294967295, 4294967295, 4294967295, name);
	cr_expect_str_eq(name, "slurm-ddp.4294967295.4294967295.4294967295.");
	cr_expect_lt(strlen("/dev/shm/") + strlen(name) + strlen("XXXXXX"),
		     DDP_PRIVATE_SIZE);
}

/* ---- waiting until what was printed has been read */

static void *read_later(void *state)
{
	char bytes[8];

	usleep(100000);
	if (read(*(const int *)state, bytes, 3) != 3)
		return NULL;
	usleep(100000);
	return read(*(const int *)state, bytes, 2) == 2 ? state : NULL;
}

Test(drain, waits_until_all_is_read)
{
	int64_t begun_ms;
	pthread_t thread;
	void *done;
	int ends[2];

	cr_assert_eq(pipe(ends), 0);
	cr_assert_eq(write(ends[1], "words", 5), 5);
	begun_ms = ddp_clock_ms();
	cr_assert_eq(pthread_create(&thread, NULL, read_later, &ends[0]), 0);
	ddp_drain_wait(ends[1], 60000);
	cr_expect_geq(ddp_clock_ms() - begun_ms, 200);
	cr_expect_lt(ddp_clock_ms() - begun_ms, 60000);
	pthread_join(thread, &done);
	cr_expect_not_null(done);
}

Test(drain, gives_up_in_time, .timeout = 30)
{
	int64_t begun_ms = ddp_clock_ms();
	int ends[2];

	cr_assert_eq(pipe(ends), 0);
	cr_assert_eq(write(ends[1], "words", 5), 5);
	ddp_drain_wait(ends[1], 50);
	cr_expect_geq(ddp_clock_ms() - begun_ms, 50);
}

/* Bytes that nobody will read, and those of a file, of which FIONREAD tells. */
Test(drain, does_not_wait_in_vain, .timeout = 30)
{
	char path[] = "/tmp/ddp-drain.XXXXXX";
	int ends[2], file = mkstemp(path);

	cr_assert_eq(pipe(ends), 0);
	cr_assert_eq(write(ends[1], "words", 5), 5);
	close(ends[0]);
	ddp_drain_wait(ends[1], 60000);
	cr_assert_eq(pwrite(file, "words", 5, 0), 5);
	ddp_drain_wait(file, 60000);
	ddp_drain_wait(-1, 60000);
	close(file);
	unlink(path);
}
