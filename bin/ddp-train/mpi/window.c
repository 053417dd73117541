/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes the window, opens it on all ranks of the node, and maps it. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "mpi/memory_left.h"
#include "mpi/watch.h"
#include "mpi/window.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/file.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U		/* Linux 6.3 */
#endif

/* ---- a file descriptor, handed to other processes of this user */

enum { WAIT_SECONDS = 10 };

/* A union, to align the buffer for cmsghdr. */
union control {
	struct cmsghdr header;
	char space[CMSG_SPACE(sizeof(int))];
};

/* Close what did not work, but keep the reason. */
static int drop(int descriptor)
{
	int reason = errno;

	close(descriptor);
	errno = reason;
	return -1;
}

/* The address of an abstract name; returns its length. */
static socklen_t fill_address(struct sockaddr_un *address, const char *name)
{
	size_t length = strlen(name);

	*address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	memcpy(address->sun_path + 1, name, length);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length);
}

/* Returns true if the process at the other end is this user's. */
static bool is_ours(int connection)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);

	return getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer,
			  &size) == 0 && peer.uid == geteuid();
}

int handover_listen(char name[HANDOVER_NAME])
{
	struct sockaddr_un address;
	uint64_t random[2];
	socklen_t length;
	int listener;

	if (ddp_random_fill(random, sizeof(random)) < 0)
		return -1;
	snprintf(name, HANDOVER_NAME, "slurm-ddp-%016llx%016llx",
		 (unsigned long long)random[0], (unsigned long long)random[1]);
	length = fill_address(&address, name);
	listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
			  0);
	if (listener < 0)
		return -1;
	if (bind(listener, (struct sockaddr *)&address, length) < 0 ||
	    listen(listener, SOMAXCONN) < 0)
		return drop(listener);
	return listener;
}

int handover_connect(const char *name, bool wait)
{
	struct sockaddr_un address;
	socklen_t length = fill_address(&address, name);
	struct timeval limit = { .tv_sec = WAIT_SECONDS };
	int connection = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC |
				(wait ? 0 : SOCK_NONBLOCK), 0);

	if (connection < 0)
		return -1;
	if (setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &limit,
		       sizeof(limit)) < 0 ||
	    connect(connection, (struct sockaddr *)&address, length) < 0)
		return drop(connection);
	if (!is_ours(connection)) {
		errno = EPERM;
		return drop(connection);
	}
	return connection;
}

/* Wait until it can be read; -1 once the deadline has passed. */
static int await(int socket, double deadline)
{
	struct pollfd pollfd = { .fd = socket, .events = POLLIN };
	double left;
	int ready = 0;

	while (ready == 0) {
		left = deadline - ddp_clock_seconds();
		if (left <= 0) {
			errno = ETIMEDOUT;
			return -1;
		}
		ready = poll(&pollfd, 1, (int)(left * 1000) + 1);
		if (ready < 0 && errno == EINTR)
			ready = 0;
	}
	return ready < 0 ? -1 : 0;
}

static int send_descriptor(int connection, int descriptor)
{
	union control control = { .space = { 0 } };
	char byte = 0;
	struct iovec iovec = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr message = {
		.msg_iov = &iovec, .msg_iovlen = 1, .msg_control = &control,
		.msg_controllen = sizeof(control)
	};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(header), &descriptor, sizeof(int));
	return sendmsg(connection, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == 1 ?
		0 : -1;
}

int handover_send(int listener, int descriptor, int count)
{
	double deadline = ddp_clock_seconds() + WAIT_SECONDS;

	while (count > 0) {
		int connection;

		if (await(listener, deadline) < 0)
			return -1;
		connection = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		if (connection < 0) {
			if (errno == EAGAIN || errno == ECONNABORTED)
				continue;
			return -1;
		}
		/* A stranger who has seen the name gets nothing. */
		if (is_ours(connection) &&
		    send_descriptor(connection, descriptor) == 0)
			count--;
		close(connection);
	}
	return 0;
}

int handover_receive(int connection)
{
	union control control;
	char byte;
	struct iovec iovec = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr message = {
		.msg_iov = &iovec, .msg_iovlen = 1, .msg_control = &control,
		.msg_controllen = sizeof(control)
	};
	struct cmsghdr *header;
	int descriptor;

	if (await(connection, ddp_clock_seconds() + WAIT_SECONDS) < 0 ||
	    recvmsg(connection, &message, MSG_CMSG_CLOEXEC) < 0)
		return -1;
	header = CMSG_FIRSTHDR(&message);
	if (!header || header->cmsg_level != SOL_SOCKET ||
	    header->cmsg_type != SCM_RIGHTS ||
	    header->cmsg_len != CMSG_LEN(sizeof(int))) {
		errno = ECONNRESET;
		return -1;
	}
	memcpy(&descriptor, CMSG_DATA(header), sizeof(int));
	return descriptor;
}

/* ---- the window */

enum {
	HOST = 256,
	SEALS = F_SEAL_SHRINK | F_SEAL_GROW
};

static size_t total_bytes(const struct window *window)
{
	return window->segment * (size_t)window->size;
}

static const char *find_host(char host[HOST])
{
	memset(host, 0, HOST);
	gethostname(host, HOST - 1);
	return host;
}

/* Rounds up, so that so much is enough. */
static size_t count_mebibytes(size_t bytes)
{
	return (bytes >> 20) + (bytes % (1 << 20) > 0);
}

/* Says what has failed with errno, and what to do. Returns -1. */
static int fail(const struct window *window, const char *what, const char *fix,
		struct ddp_error *error)
{
	const char *reason = strerror(errno);
	char host[HOST];

	return ddp_error_set(error, DDP_ERROR_SYSTEM, "%s, %zu MiB of the "
			     "%zu MiB of %d rank%s on %s: %s; %s", what,
			     count_mebibytes(total_bytes(window)),
			     count_mebibytes(total_bytes(window) +
					     window->own *
					     (size_t)window->size),
			     window->size, window->size > 1 ? "s" : "",
			     find_host(host), reason, fix);
}

int window_open(struct window *window, MPI_Comm comm, struct watch *watch)
{
	*window = (struct window){
		.comm = comm, .watch = watch,
		.fd = -1, .listener = -1, .connection = -1
	};
	MPI_Comm_rank(comm, &window->rank);
	MPI_Comm_size(comm, &window->size);
	window->rooms = calloc((size_t)window->size * ROOMS,
			       sizeof(*window->rooms));
	return window->rooms ? 0 : -1;
}

void window_set_bytes(struct window *window, size_t bytes, size_t own)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	window->segment = (bytes + page - 1) / page * page;
	window->own = own;
}

/* Returns the bytes that this node's ranks in the same room need. */
static size_t count_need(const struct window *window, const struct room *room)
{
	size_t need = 0;

	for (int i = 0; i < window->size * ROOMS; i++)
		if (window->rooms[i].inode == room->inode &&
		    window->rooms[i].device == room->device &&
		    window->rooms[i].bytes < UINT64_MAX)
			need += window->segment;
	return need;
}

static int refuse_room(const struct window *window, const struct room *room,
		       struct ddp_error *error)
{
	size_t need = count_need(window, room);
	size_t ranks = need / window->segment;
	char host[HOST];

	return ddp_error_set(error, DDP_ERROR_SYSTEM, "memory on %s: %zu "
			     "rank%s need%s %zu MiB, of which gradients and "
			     "parameters are %zu MiB, but %s %llu MiB; %sstart "
			     "fewer ranks on a node or train a smaller model",
			     find_host(host), ranks, ranks > 1 ? "s" : "",
			     ranks > 1 ? "" : "s",
			     count_mebibytes(need + ranks * window->own),
			     count_mebibytes(need), room->inode ?
			     "the limit of their cgroup leaves" :
			     "the node has",
			     (unsigned long long)room->bytes >> 20,
			     room->inode ? "ask for more (srun --mem), " : "");
}

/* Compare each limit on memory with what all ranks under it will take. */
static int check_room(struct window *window, struct ddp_error *error)
{
	struct room mine[ROOMS];
	int count = room_find("/proc", mine);
	MPI_Request request;

	for (int i = count; i < ROOMS; i++)
		mine[i] = (struct room){ .bytes = UINT64_MAX };
	MPI_Iallgather(mine, sizeof(mine), MPI_BYTE, window->rooms,
		       sizeof(mine), MPI_BYTE, window->comm, &request);
	watch_finish(window->watch, &request);
	for (int i = 0; i < count; i++)
		if (count_need(window, &mine[i]) > mine[i].bytes)
			return refuse_room(window, &mine[i], error);
	return 0;
}

/* Sealed: nobody can shrink it, which would make its mappings fail. */
static int make_memory(size_t bytes)
{
	int fd = memfd_create("ddp-train", MFD_CLOEXEC | MFD_ALLOW_SEALING |
			      MFD_NOEXEC_SEAL);

	if (fd < 0 && errno == EINVAL)
		fd = memfd_create("ddp-train", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -1;
	if (fchmod(fd, 0600) < 0 || ftruncate(fd, (off_t)bytes) < 0 ||
	    fcntl(fd, F_ADD_SEALS, SEALS) < 0) {
		int reason = errno;

		close(fd);
		errno = reason;
		return -1;
	}
	return fd;
}

static int create(struct window *window, struct ddp_error *error)
{
	struct stat stat_buffer;

	/* A rank alone has memory of its own. */
	if (window->rank > 0 || window->size == 1)
		return 0;
	window->fd = make_memory(total_bytes(window));
	if (window->fd < 0 || fstat(window->fd, &stat_buffer) < 0)
		return fail(window, "cannot make shared memory", "train a "
			    "smaller model or start one rank on a node",
			    error);
	window->origin = (struct window_origin){
		.pid = getpid(), .fd = window->fd,
		.device = stat_buffer.st_dev, .inode = stat_buffer.st_ino
	};
	return 0;
}

/* Returns true if a descriptor (O_PATH will do) is that of the memfd. */
static bool is_origin(const struct window *window, int fd)
{
	struct stat stat_buffer;

	return fstat(fd, &stat_buffer) == 0 &&
		stat_buffer.st_dev == window->origin.device &&
		stat_buffer.st_ino == window->origin.inode &&
		stat_buffer.st_uid == geteuid() &&
		stat_buffer.st_size == (off_t)total_bytes(window);
}

static bool is_memory(const struct window *window, int fd)
{
	int seals = fcntl(fd, F_GET_SEALS);

	return is_origin(window, fd) && seals >= 0 &&
		(seals & SEALS) == SEALS;
}

/*
 * Open the memfd by its process and number. In another PID namespace these may
 * name anything: check that it is the memfd before opening it. Returns -1 if it
 * is not.
 */
static int open_by_number(const struct window *window)
{
	char path[64];
	int name, fd = -1;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", window->origin.pid,
		 window->origin.fd);
	name = open(path, O_PATH | O_CLOEXEC);
	if (name < 0)
		return -1;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", name);
	if (is_origin(window, name))
		fd = open(path, O_RDWR | O_CLOEXEC);
	close(name);
	if (fd >= 0 && !is_memory(window, fd)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* Gives all ranks of the node the first rank's bytes. */
static void broadcast(const struct window *window, void *bytes, int size)
{
	MPI_Request request;

	MPI_Ibcast(bytes, size, MPI_BYTE, 0, window->comm, &request);
	watch_finish(window->watch, &request);
}

static int open_memory(struct window *window, struct ddp_error *error)
{
	MPI_Request request;
	int missing;

	(void)error;
	broadcast(window, &window->origin, sizeof(window->origin));
	if (window->rank > 0)
		window->fd = open_by_number(window);
	missing = window->rank > 0 && window->fd < 0;
	MPI_Iallreduce(&missing, &window->missing, 1, MPI_INT, MPI_SUM,
		       window->comm, &request);
	watch_finish(window->watch, &request);
	return 0;
}

static int no_handover(const struct window *window, struct ddp_error *error)
{
	return fail(window, "cannot hand shared memory to another rank",
		    "run the ranks of a node in one PID or network namespace",
		    error);
}

/* The next steps are for the ranks that could not open it. */
static int listen_to_ranks(struct window *window, struct ddp_error *error)
{
	if (window->rank > 0 || window->missing == 0)
		return 0;
	window->listener = handover_listen(window->socket_name);
	return window->listener < 0 ? no_handover(window, error) : 0;
}

static int connect_to_first(struct window *window, struct ddp_error *error)
{
	if (window->missing == 0)
		return 0;
	broadcast(window, window->socket_name, sizeof(window->socket_name));
	if (window->rank == 0 || window->fd >= 0)
		return 0;
	window->connection = handover_connect(window->socket_name, false);
	/* Strangers fill the queue: hand_over() waits for room. */
	return window->connection < 0 && errno != EAGAIN ?
		no_handover(window, error) : 0;
}

static int hand_over(struct window *window, struct ddp_error *error)
{
	if (window->rank == 0 && window->missing > 0)
		return handover_send(window->listener, window->fd,
				     window->missing) < 0 ?
			no_handover(window, error) : 0;
	if (window->rank == 0 || window->fd >= 0)
		return 0;
	if (window->connection < 0)
		window->connection = handover_connect(window->socket_name,
						      true);
	if (window->connection < 0)
		return no_handover(window, error);
	window->fd = handover_receive(window->connection);
	if (window->fd < 0)
		return no_handover(window, error);
	if (!is_memory(window, window->fd)) {
		errno = EBADF;
		return no_handover(window, error);
	}
	return 0;
}

static void close_descriptor(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void close_descriptors(struct window *window)
{
	close_descriptor(&window->fd);
	close_descriptor(&window->listener);
	close_descriptor(&window->connection);
}

/* A mapping needs no descriptor; without one nobody can open the memfd. */
static int map(struct window *window, struct ddp_error *error)
{
	int flags = window->fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
	void *base = mmap(NULL, total_bytes(window), PROT_READ | PROT_WRITE,
			  flags, window->fd, 0);

	if (base == MAP_FAILED)
		return fail(window, "cannot map memory", "raise the limit on "
			    "address space (ulimit -v), start fewer ranks on "
			    "a node or train a smaller model", error);
	window->base = base;
	/* A seventh faster, where the administrator allows it (advise). */
	madvise(base, total_bytes(window), MADV_HUGEPAGE);
	close_descriptors(window);
	return 0;
}

/* Touch my segment by a call that fails where there is no memory. */
static int populate(struct window *window, struct ddp_error *error)
{
	char *mine = window->base + (size_t)window->rank * window->segment;

#ifdef MADV_POPULATE_WRITE
	if (madvise(mine, window->segment, MADV_POPULATE_WRITE) < 0 &&
	    errno != EINVAL)
		return fail(window, "cannot have the memory", "start fewer "
			    "ranks on a node or train a smaller model", error);
#else
	(void)error;
#endif
	memset(mine, 0, window->segment);
	return 0;
}

int (*const window_steps[WINDOW_STEPS])(struct window *,
					struct ddp_error *) = {
	check_room, create, open_memory, listen_to_ranks, connect_to_first,
	hand_over, map, populate
};

void window_close(struct window *window)
{
	close_descriptors(window);
	if (window->base)
		munmap(window->base, total_bytes(window));
	window->base = NULL;
	free(window->rooms);
	window->rooms = NULL;
}
