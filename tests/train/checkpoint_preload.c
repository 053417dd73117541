/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For LD_PRELOAD: the calls by which a program changes files below the folder
 * SAVE_DIR. SAVE_TRACE gets a line for each that has succeeded. SAVE_KILL=k
 * kills the process in place of the k-th call, SAVE_END=TEXT in place of the
 * first one with this in its path; of a write, half is done before.
 * SAVE_RANK: only where OMPI_COMM_WORLD_RANK is this. SAVE_FAIL=NAME:ERRNO
 * makes the calls of this name fail. SAVE_SLOW: seconds to wait before each
 * write. SAVE_HOLD: writes wait while there is a file of this name. SAVE_SHORT:
 * a write writes no more bytes than this. SAVE_LATE=TEXT:N: N times a file with
 * TEXT in its name is not found when it is opened to be read, or looked at.
 * SAVE_READ=FILE: a shard is not read while there is this file; FILE.reads then
 * has the number of the process. SAVE_READS gets a line "BYTES PATH" for each
 * read of a shard. SAVE_DEAF: seconds before a signal is taken, as on a busy
 * machine. SAVE_WAITS gets a byte whenever the process begins to wait for a
 * signal.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static atomic_int calls, hidden;

static const char *get(const char *name)
{
	const char *rank = getenv("SAVE_RANK");
	const char *own = getenv("OMPI_COMM_WORLD_RANK");

	return rank && own && strcmp(rank, own) != 0 ? NULL : getenv(name);
}

/* Whether a call is one that counts: its path has SAVE_DIR. */
static int counts(const char *path)
{
	const char *dir = getenv("SAVE_DIR");

	return dir && path && strstr(path, dir);
}

static const char *name_fd(int fd, char *path, size_t size)
{
	char link[64];
	ssize_t length;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	length = readlink(link, path, size - 1);
	path[length > 0 ? length : 0] = '\0';
	return path;
}

/* What a name in an open folder stands for. */
static const char *name_at(int fd, const char *name, char *path, size_t size)
{
	size_t length;

	if (fd == AT_FDCWD || name[0] == '/')
		return name;
	length = strlen(name_fd(fd, path, size));
	snprintf(path + length, size - length, "/%s", name);
	return path;
}

/* Whether it is still too early to see this file. */
static int is_late(const char *path)
{
	const char *late = get("SAVE_LATE"), *colon;
	char text[256];

	if (!late || !path || !counts(path))
		return 0;
	colon = strrchr(late, ':');
	snprintf(text, sizeof(text), "%.*s", (int)(colon - late), late);
	if (!strstr(path, text) ||
	    atomic_fetch_add(&hidden, 1) >= atoi(colon + 1))
		return 0;
	errno = ENOENT;
	return 1;
}

/* Before a call: whether it is to be the last one of this process. */
static int is_last(const char *path)
{
	const char *at = get("SAVE_KILL"), *end = get("SAVE_END");

	if (end && strstr(path, end))
		return 1;

	return at && atomic_fetch_add(&calls, 1) + 1 == atoi(at);
}

static void die(void)
{
	syscall(SYS_kill, getpid(), SIGKILL);
	pause();
}

static int fails(const char *name)
{
	const char *what = get("SAVE_FAIL");
	size_t length = strlen(name);

	if (!what || strncmp(what, name, length) != 0 || what[length] != ':')
		return 0;
	errno = atoi(what + length + 1);
	return 1;
}

static void trace(const char *name, const char *path)
{
	const char *file = get("SAVE_TRACE");
	int cause = errno, fd = file ? (int)syscall(SYS_openat, AT_FDCWD, file,
		O_WRONLY | O_CREAT | O_APPEND, 0666) : -1;
	char line[4400];
	int length = snprintf(line, sizeof(line), "%s %s\n", name, path);

	if (fd >= 0) {
		syscall(SYS_write, fd, line, (size_t)length);
		syscall(SYS_close, fd);
	}
	errno = cause;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

/* A call of one path, or of what a descriptor stands for. */
#define CALL(name, what, ...) \
	const char *at = what; \
	int result; \
	if (!counts(at)) \
		return REAL(name)(__VA_ARGS__); \
	if (is_last(at)) \
		die(); \
	result = fails(#name) ? -1 : REAL(name)(__VA_ARGS__); \
	if (result >= 0) \
		trace(#name, at); \
	return result

int sigwait(const sigset_t *set, int *number)
{
	const char *deaf = get("SAVE_DEAF"), *waits = get("SAVE_WAITS");
	int fd;

	if (deaf)
		sleep((unsigned int)atoi(deaf));
	if (waits) {
		fd = (int)syscall(SYS_openat, AT_FDCWD, waits,
				  O_WRONLY | O_CREAT | O_APPEND, 0666);
		syscall(SYS_write, fd, "w", 1);
		syscall(SYS_close, fd);
	}
	return REAL(sigwait)(set, number);
}

/* Of locks; SAVE_FAIL has it as any other. */
int fcntl(int fd, int command, ...)
{
	char path[4096];
	va_list list;
	void *argument;

	va_start(list, command);
	argument = va_arg(list, void *);
	va_end(list);
	if (command == F_OFD_SETLK &&
	    counts(name_fd(fd, path, sizeof(path))) && fails("fcntl"))
		return -1;
	return REAL(fcntl)(fd, command, argument);
}

int mkdir(const char *path, mode_t mode)
{
	CALL(mkdir, path, path, mode);
}

int unlink(const char *path)
{
	CALL(unlink, path, path);
}

int rmdir(const char *path)
{
	CALL(rmdir, path, path);
}

int rename(const char *from, const char *to)
{
	CALL(rename, to, from, to);
}

int renameat(int from, const char *old, int to, const char *new)
{
	char path[4096];
	const char *name = name_at(to, new, path, sizeof(path));
	const char *what = name;
	int result;

	if (!counts(what))
		return REAL(renameat)(from, old, to, new);
	if (is_last(what))
		die();
	result = fails("rename") ? -1 : REAL(renameat)(from, old, to, new);
	if (result >= 0)
		trace("rename", what);
	return result;
}

int fstatat(int fd, const char *name, struct stat *status, int flags)
{
	char path[4096];

	if (is_late(name_at(fd, name, path, sizeof(path))))
		return -1;
	return REAL(fstatat)(fd, name, status, flags);
}

int fsync(int fd)
{
	char path[4096];

	CALL(fsync, name_fd(fd, path, sizeof(path)), fd);
}

/* It changes nothing; SAVE_FAIL has it as any other. */
int sync_file_range(int fd, off_t begin, off_t count, unsigned flags)
{
	char path[4096];

	if (counts(name_fd(fd, path, sizeof(path))) && fails("sync_file_range"))
		return -1;
	return REAL(sync_file_range)(fd, begin, count, flags);
}

int close(int fd)
{
	char path[4096];

	CALL(close, name_fd(fd, path, sizeof(path)), fd);
}

int ftruncate(int fd, off_t length)
{
	char path[4096];

	CALL(ftruncate, name_fd(fd, path, sizeof(path)), fd, length);
}

int unlinkat(int fd, const char *name, int flags)
{
	char path[4096];

	CALL(unlinkat, name_fd(fd, path, sizeof(path)), fd, name, flags);
}

/* Opened to be made, as folders and what is read do not count. */
static int open_at(int fd, const char *name, int flags, mode_t mode)
{
	char path[4096];
	const char *what = name_at(fd, name, path, sizeof(path));
	int result;

	if (!(flags & O_CREAT) && is_late(what))
		return -1;
	if (!(flags & O_CREAT) || !counts(what))
		return REAL(openat)(fd, name, flags, mode);
	if (is_last(what))
		die();
	result = fails("open") ? -1 : REAL(openat)(fd, name, flags, mode);
	if (result >= 0)
		trace("open", what);
	return result;
}

static mode_t find_mode(int flags, va_list list)
{
	return flags & O_CREAT ? va_arg(list, mode_t) : 0;
}

int open(const char *path, int flags, ...)
{
	va_list list;
	mode_t mode;

	va_start(list, flags);
	mode = find_mode(flags, list);
	va_end(list);
	return open_at(AT_FDCWD, path, flags, mode);
}

int openat(int fd, const char *path, int flags, ...)
{
	va_list list;
	mode_t mode;

	va_start(list, flags);
	mode = find_mode(flags, list);
	va_end(list);
	return open_at(fd, path, flags, mode);
}

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t at)
{
	char path[4096];

	if (!counts(name_fd(fd, path, sizeof(path))))
		return REAL(pwrite)(fd, bytes, count, at);
	if (is_last(path)) {
		syscall(SYS_pwrite64, fd, bytes, count / 2, at);
		die();
	}
	trace("pwrite", path);
	return REAL(pwrite)(fd, bytes, count, at);
}

static void say_process(const char *file)
{
	char path[4096], name[4096], text[32];
	int length = snprintf(text, sizeof(text), "%d\n", getpid());
	int fd;

	snprintf(path, sizeof(path), "%s.reads.new", file);
	fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT, 0666);
	syscall(SYS_write, fd, text, (size_t)length);
	syscall(SYS_close, fd);
	snprintf(name, sizeof(name), "%s.reads", file);
	syscall(SYS_renameat, AT_FDCWD, path, AT_FDCWD, name);
}

static void say_read(int fd, ssize_t count)
{
	const char *file = get("SAVE_READS");
	char path[4096], line[4400];
	int to, length;

	if (!file || count <= 0 ||
	    !strstr(name_fd(fd, path, sizeof(path)), "/shard-"))
		return;
	length = snprintf(line, sizeof(line), "%zd %s\n", count, path);
	to = (int)syscall(SYS_openat, AT_FDCWD, file,
			  O_WRONLY | O_CREAT | O_APPEND, 0666);
	syscall(SYS_write, to, line, (size_t)length);
	syscall(SYS_close, to);
}

ssize_t read(int fd, void *bytes, size_t count)
{
	char path[4096];
	const char *file = get("SAVE_READ");
	ssize_t done;

	if (file && counts(name_fd(fd, path, sizeof(path))) &&
	    strstr(path, "/shard-") && access(file, F_OK) == 0) {
		say_process(file);
		while (access(file, F_OK) == 0)
			usleep(20000);
	}
	done = REAL(read)(fd, bytes, count);
	say_read(fd, done);
	return done;
}

ssize_t write(int fd, const void *bytes, size_t count)
{
	char path[4096];
	const char *slow = get("SAVE_SLOW"), *most = get("SAVE_SHORT");
	const char *hold = get("SAVE_HOLD");

	if (!counts(name_fd(fd, path, sizeof(path))))
		return REAL(write)(fd, bytes, count);
	if (slow)
		usleep((useconds_t)(atof(slow) * 1e6));
	while (hold && access(hold, F_OK) == 0)
		usleep(20000);
	if (is_last(path)) {
		syscall(SYS_write, fd, bytes, count / 2);
		die();
	}
	if (fails("write"))
		return -1;
	trace("write", path);
	if (most && count > (size_t)atoi(most))
		count = (size_t)atoi(most);
	return REAL(write)(fd, bytes, count);
}
