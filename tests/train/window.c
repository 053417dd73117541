/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * window handover UID: a descriptor is handed to a process of this user and not
 * to one of UID that comes first, however many of those there are; and none is
 * taken from a process of UID.
 * Prints what went wrong.
 *
 * window room PROC: a line with what each room has left, as PROC tells.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mpi/memory_left.h"
#include "mpi/window.h"

enum { CROWD = 64 };

static int failures;

static void expect(int is_right, const char *what)
{
	if (is_right)
		return;
	printf("%s (%s)\n", what, strerror(errno));
	failures++;
}

/* A process of another user runs this, and its exit code is returned. */
static pid_t start(uid_t uid, int (*function)(const char *name, int pipe),
		   const char *name, int pipe)
{
	pid_t child = fork();

	if (child != 0)
		return child;
	if (setresuid(uid, uid, uid) < 0)
		_exit(100);
	_exit(function(name, pipe));
}

static int end(pid_t child)
{
	int status;

	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 101;
}

/* Whoever knows the name can connect. */
static int connect_stranger(const char *name, int flags)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int connection = socket(AF_UNIX, SOCK_STREAM | flags, 0);

	strcpy(address.sun_path + 1, name);
	if (connect(connection, (struct sockaddr *)&address,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
				strlen(name))) < 0)
		return -1;
	return connection;
}

/* Nothing comes but the end. */
static int intrude(const char *name, int pipe)
{
	int connection = connect_stranger(name, 0);

	if (connection < 0 || write(pipe, "c", 1) != 1)
		return 102;
	return handover_receive(connection) >= 0;
}

/* Connects until there is no room for anybody else. */
static int crowd(const char *name, int pipe)
{
	while (connect_stranger(name, SOCK_NONBLOCK) >= 0)
		;
	return errno != EAGAIN || write(pipe, "c", 1) != 1 || sleep(20) > 0;
}

static int pretend(const char *name, int pipe)
{
	char own[HANDOVER_NAME];
	int listener = handover_listen(own);
	int connection;

	(void)name;
	if (listener < 0 || write(pipe, own, sizeof(own)) != sizeof(own))
		return 103;
	/* Until the test has looked at it, and closed its end. */
	connection = accept(listener, NULL, NULL);
	return connection >= 0 ? 0 : sleep(1) > 0;
}

static int take(const char *name, int pipe)
{
	char text[2] = "";
	int connection = handover_connect(name, true);
	int fd = connection < 0 ? -1 : handover_receive(connection);

	(void)pipe;
	return fd < 0 || pread(fd, text, 1, 0) != 1 || text[0] != 'x';
}

static void test_send(uid_t uid)
{
	char name[HANDOVER_NAME], byte;
	int memory = memfd_create("test", 0), pipes[2];
	int listener = handover_listen(name);
	pid_t stranger, friend;

	expect(memory >= 0 && write(memory, "x", 1) == 1 && listener >= 0 &&
	       pipe(pipes) == 0, "cannot begin");
	stranger = start(uid, intrude, name, pipes[1]);
	close(pipes[1]);
	expect(read(pipes[0], &byte, 1) == 1, "the stranger cannot connect");
	friend = start(geteuid(), take, name, -1);
	expect(handover_send(listener, memory, 1) == 0, "cannot send");
	expect(end(friend) == 0, "a process of this user has no descriptor");
	expect(end(stranger) == 0, "a process of another user has one");
}

/* Until it waits, or has ended. */
static void wait_for_sleep(pid_t child)
{
	char path[64], state = 'R';

	snprintf(path, sizeof(path), "/proc/%d/stat", child);
	while (state == 'R') {
		FILE *file = fopen(path, "r");

		if (!file || fscanf(file, "%*d %*s %c", &state) != 1)
			state = '?';
		if (file)
			fclose(file);
	}
}

static void test_crowd(uid_t uid)
{
	char name[HANDOVER_NAME], byte;
	int memory = memfd_create("test", 0), pipes[2];
	int listener = handover_listen(name);
	pid_t strangers, friend;

	/* A short queue, which few open files fill. */
	expect(memory >= 0 && write(memory, "x", 1) == 1 && listener >= 0 &&
	       listen(listener, CROWD) == 0 && pipe(pipes) == 0,
	       "cannot begin");
	strangers = start(uid, crowd, name, pipes[1]);
	close(pipes[1]);
	expect(read(pipes[0], &byte, 1) == 1, "no crowd comes");
	expect(handover_connect(name, false) < 0 && errno == EAGAIN,
	       "there is room beside a crowd");
	friend = start(geteuid(), take, name, -1);
	wait_for_sleep(friend);
	expect(handover_send(listener, memory, 1) == 0,
	       "cannot send beside a crowd");
	expect(end(friend) == 0, "a process has no descriptor for the crowd");
	kill(strangers, SIGKILL);
	end(strangers);
}

static void test_connect(uid_t uid)
{
	char name[HANDOVER_NAME] = "";
	int pipes[2];
	pid_t stranger;

	expect(pipe(pipes) == 0, "cannot begin");
	stranger = start(uid, pretend, "", pipes[1]);
	close(pipes[1]);
	expect(read(pipes[0], name, sizeof(name)) == sizeof(name),
	       "the stranger cannot listen");
	expect(handover_connect(name, false) < 0 && errno == EPERM,
	       "connects to a process of another user");
	end(stranger);
}

int main(int argc, char **argv)
{
	struct room rooms[ROOMS];

	if (argc != 3)
		return 2;
	if (strcmp(argv[1], "handover") == 0) {
		test_send((uid_t)atoi(argv[2]));
		test_crowd((uid_t)atoi(argv[2]));
		test_connect((uid_t)atoi(argv[2]));
		return failures > 0;
	}
	for (int i = 0, count = room_find(argv[2], rooms); i < count; i++)
		printf("%llu\n", (unsigned long long)rooms[i].bytes);
	return 0;
}
