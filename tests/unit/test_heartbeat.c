/* SPDX-License-Identifier: BSD-3-Clause */
/* ddp_heartbeat: the file, who counts in it, and which files are refused. */
#define _GNU_SOURCE
#include <criterion/criterion.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ddp.h"

enum { THREADS = 4, EACH = 100000 };

static char folder[] = "/tmp/slurm-ddp-test.XXXXXX";
static char path[64];

static void begin(void)
{
	cr_assert_not_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/beats", folder);
	setenv("DDP_HEARTBEAT_FILE", path, 1);
}

static void end(void)
{
	unlink(path);
	rmdir(path);
	cr_assert_eq(rmdir(folder), 0, "something else is in the folder");
}

TestSuite(heartbeat, .init = begin, .fini = end);

/* As the agent would read it: the first 8 bytes of 4096; else -1. */
static int64_t read_beats(void)
{
	char bytes[5000];
	FILE *file = fopen(path, "r");
	size_t length = file ? fread(bytes, 1, sizeof(bytes), file) : 0;
	int64_t beats;

	if (file)
		fclose(file);
	memcpy(&beats, bytes, sizeof(beats));
	return length == 4096 ? beats : -1;
}

static void write_file(const char *name, const char *text)
{
	FILE *file = fopen(name, "w");

	cr_assert(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

/* The exit code of a child of fork that beats. */
static int beat_in_child(void)
{
	pid_t child = fork();
	int status = -1;

	if (child == 0) {
		ddp_heartbeat();
		_exit(7);
	}
	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

Test(heartbeat, counts_in_the_file)
{
	struct stat status;

	ddp_heartbeat();
	cr_expect_eq(read_beats(), 1);
	ddp_heartbeat();
	ddp_heartbeat();
	cr_expect_eq(read_beats(), 3);
	cr_assert_eq(stat(path, &status), 0);
	cr_expect_eq(status.st_mode, S_IFREG | 0600);
}

Test(heartbeat, goes_on_counting_where_a_program_before_has_ended)
{
	char zeros[4096] = { 41 };
	int fd = open(path, O_WRONLY | O_CREAT, 0600);

	cr_assert_eq(write(fd, zeros, sizeof(zeros)), sizeof(zeros));
	close(fd);
	ddp_heartbeat();
	cr_expect_eq(read_beats(), 42);
}

/* The agent removes the file at the end, perhaps before the rank ends. */
Test(heartbeat, survives_a_file_that_is_removed)
{
	ddp_heartbeat();
	unlink(path);
	ddp_heartbeat();
	cr_expect_eq(access(path, F_OK), -1);
}

Test(heartbeat, does_not_count_in_a_child_of_fork)
{
	cr_expect_eq(beat_in_child(), 7);
	cr_expect_eq(access(path, F_OK), -1, "a child has made the file");
	ddp_heartbeat();
	cr_expect_eq(beat_in_child(), 7);
	cr_expect_eq(read_beats(), 1);
	ddp_heartbeat();
	cr_expect_eq(read_beats(), 2);
}

static void *beat_often(void *none)
{
	for (int i = 0; i < EACH; i++)
		ddp_heartbeat();
	return none;
}

Test(heartbeat, counts_all_threads)
{
	pthread_t threads[THREADS];

	ddp_heartbeat();
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, beat_often, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	cr_expect_eq(read_beats(), 1 + THREADS * EACH);
}

Test(heartbeat, without_the_variable_does_nothing)
{
	unsetenv("DDP_HEARTBEAT_FILE");
	ddp_heartbeat();
	ddp_heartbeat();
	cr_expect_eq(access(path, F_OK), -1);
}

Test(heartbeat, takes_no_path_that_is_not_absolute)
{
	cr_assert_eq(chdir(folder), 0);
	setenv("DDP_HEARTBEAT_FILE", "beats", 1);
	ddp_heartbeat();
	cr_expect_eq(access(path, F_OK), -1);
}

Test(heartbeat, follows_no_link)
{
	char target[80];

	snprintf(target, sizeof(target), "%s/target", folder);
	write_file(target, "");
	cr_assert_eq(symlink(target, path), 0);
	ddp_heartbeat();
	unlink(path);
	cr_assert_eq(rename(target, path), 0);
	cr_expect_eq(read_beats(), -1, "the link's target was changed");
}

Test(heartbeat, makes_no_target_of_a_link)
{
	char target[80];

	snprintf(target, sizeof(target), "%s/target", folder);
	cr_assert_eq(symlink(target, path), 0);
	ddp_heartbeat();
	cr_expect_eq(access(target, F_OK), -1);
}

/* A wrong variable must not cost anybody a file. */
Test(heartbeat, leaves_a_file_of_other_size_as_it_is)
{
	char text[20] = "";
	FILE *file;

	write_file(path, "my thesis");
	ddp_heartbeat();
	file = fopen(path, "r");
	cr_assert_not_null(file);
	cr_assert_not_null(fgets(text, sizeof(text), file));
	fclose(file);
	cr_expect_str_eq(text, "my thesis");
}

Test(heartbeat, does_not_wait_for_a_pipe, .timeout = 60)
{
	cr_assert_eq(mkfifo(path, 0600), 0);
	ddp_heartbeat();
}

Test(heartbeat, takes_no_folder)
{
	cr_assert_eq(mkdir(path, 0700), 0);
	errno = EXDEV;
	ddp_heartbeat();
	cr_expect_eq(errno, EXDEV);
}

Test(heartbeat, takes_no_file_of_another_user)
{
	if (geteuid() != 0)
		cr_skip_test("only root can make one");
	write_file(path, "");
	cr_assert_eq(chown(path, 65534, 65534), 0);
	ddp_heartbeat();
	cr_expect_eq(read_beats(), -1);
}

/* Above this limit the kernel would end the process. */
Test(heartbeat, survives_a_limit_on_files)
{
	struct rlimit limit = { .rlim_cur = 4095, .rlim_max = 4095 };
	struct stat status;

	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	ddp_heartbeat();
	ddp_heartbeat();
	cr_assert_eq(stat(path, &status), 0);
	cr_expect_eq(status.st_size, 0);
}
