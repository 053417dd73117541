/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The master's address: rank 0 listens at its port, the others resolve it,
 * connect, and measure how far their clocks are apart.
 *
 * A rank asks by a byte, and rank 0 answers with the nonce and its time. The
 * answer was written between question and answer; the middle of the two is at
 * most half the time between them off. Of several rounds the shortest counts.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "job/thread.h"
#include "layout/clock.h"
#include "layout/text.h"
#include "preflight.h"

enum { BACKLOG = 4096, QUESTIONS = 8, ROOM = 16 };

struct answer {
	uint64_t nonce;
	double clock_s;
};

static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* ---- rank 0 */

struct server {
	uint64_t nonce;
	struct pollfd *fds;		/* [room]; the first listens */
	nfds_t count, room;
};

static void take_in(struct server *server)
{
	int fd = accept4(server->fds[0].fd, NULL, NULL,
			 SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd < 0)
		return;
	if (server->count == server->room) {
		struct pollfd *more = realloc(server->fds, 2 * server->room *
					      sizeof(*more));

		if (!more) {
			close(fd);
			return;
		}
		server->fds = more;
		server->room *= 2;
	}
	server->fds[server->count++] = (struct pollfd){ fd, POLLIN, 0 };
}

/* Returns false once the other side has gone, or does not read. */
static bool answer_one(const struct server *server, int fd)
{
	struct answer answer = { .nonce = server->nonce };
	char question;

	if (recv(fd, &question, 1, 0) != 1)
		return false;
	answer.clock_s = now_s();
	return send(fd, &answer, sizeof(answer), MSG_NOSIGNAL) ==
	       sizeof(answer);
}

static void *serve(void *state)
{
	struct server *server = state;

	while (poll(server->fds, server->count, -1) >= 0 || errno == EINTR) {
		for (nfds_t i = server->count - 1; i > 0; i--) {
			if (server->fds[i].revents == 0 ||
			    answer_one(server, server->fds[i].fd))
				continue;
			close(server->fds[i].fd);
			server->fds[i] = server->fds[--server->count];
		}
		if (server->fds[0].revents != 0)
			take_in(server);
	}
	return NULL;
}

/* In a thread that takes no signals. */
static int start(struct server *server, struct ddp_error *error)
{
	sigset_t all, before;
	pthread_t thread;
	int result;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	result = pthread_create(&thread, NULL, serve, server);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return result == 0 ? 0 :
		ddp_error_set(error, DDP_ERROR_SYSTEM, "cannot start a thread "
			      "for MASTER_PORT: %s", strerror(result));
}

/* On all addresses of the node, of both families where it has both. */
static int open_port(uint16_t port)
{
	struct sockaddr_in6 six = {
		.sin6_family = AF_INET6, .sin6_port = htons(port)
	};
	struct sockaddr_in four = {
		.sin_family = AF_INET, .sin_port = htons(port)
	};
	int on = 1, off = 0, fd, result;

	fd = socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	result = fd < 0 ? -1 :
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	if (result < 0) {
		if (fd >= 0)
			close(fd);
		fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK |
			    SOCK_CLOEXEC, 0);
	}
	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if ((result == 0 ? bind(fd, (struct sockaddr *)&six, sizeof(six)) :
	     bind(fd, (struct sockaddr *)&four, sizeof(four))) == 0 &&
	    listen(fd, BACKLOG) == 0)
		return fd;
	result = errno;
	close(fd);
	errno = result;
	return -1;
}

int master_listen(const char *port, uint64_t nonce, struct ddp_error *error)
{
	struct server *server = calloc(1, sizeof(*server));
	int fd = open_port((uint16_t)atoi(port));

	if (server)
		server->fds = calloc(ROOM, sizeof(*server->fds));
	if (!server || !server->fds || fd < 0) {
		ddp_error_set(error, DDP_ERROR_SYSTEM, "cannot listen at "
			      "MASTER_PORT %s: %s; end what uses the port",
			      port, strerror(errno));
		if (server)
			free(server->fds);
		free(server);
		return -1;
	}
	server->fds[0] = (struct pollfd){ fd, POLLIN, 0 };
	server->nonce = nonce;
	server->count = 1;
	server->room = ROOM;
	return start(server, error);
}

/* ---- every rank */

struct meeting {
	char host[256], port[16];
	uint64_t nonce;
	int64_t deadline;
	struct probe probe;
};

static int wait_for(int fd, short what, int64_t deadline)
{
	struct pollfd poller = { fd, what, 0 };
	int64_t left = deadline - ddp_clock_ms();
	int result = poll(&poller, 1, left > 0 ? (int)left : 0);

	if (result == 0)
		errno = ETIMEDOUT;
	return result > 0 ? 0 : -1;
}

static int try_connect(const struct addrinfo *address, int64_t deadline)
{
	int fd = socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK |
			SOCK_CLOEXEC, 0), result;
	socklen_t size = sizeof(result);

	if (fd < 0)
		return -1;
	result = connect(fd, address->ai_addr, address->ai_addrlen);
	if (result < 0 && errno == EINPROGRESS &&
	    wait_for(fd, POLLOUT, deadline) == 0 &&
	    getsockopt(fd, SOL_SOCKET, SO_ERROR, &result, &size) == 0)
		errno = result;
	if (result == 0)
		return fd;
	result = errno;
	close(fd);
	errno = result;
	return -1;
}

/* One question. Returns 0 with how long it took, or -1 with errno set. */
static int ask(struct meeting *meeting, int fd)
{
	struct probe *probe = &meeting->probe;
	double begin = now_s(), took = ddp_clock_seconds();
	struct answer answer;

	if (send(fd, "?", 1, MSG_NOSIGNAL) != 1 ||
	    wait_for(fd, POLLIN, meeting->deadline) < 0)
		return -1;
	if (recv(fd, &answer, sizeof(answer), 0) != sizeof(answer) ||
	    answer.nonce != meeting->nonce) {
		errno = EPROTO;
		return -1;
	}
	took = ddp_clock_seconds() - took;
	if (probe->clock_error_s < 0 || took / 2 < probe->clock_error_s) {
		probe->clock_error_s = took / 2;
		probe->clock_s = answer.clock_s - begin - took / 2;
	}
	return 0;
}

static void say(struct meeting *meeting, const char *address)
{
	snprintf(meeting->probe.master_error, FACT_TEXT,
		 errno == EPROTO ? "at the master's address, %.40s:%s (%s), "
		 "another program answers: let the name lead to rank 0's node" :
		 "cannot reach the master at %.40s:%s (%s): %s; let the "
		 "firewall pass it", meeting->host, meeting->port, address,
		 strerror(errno));
}

/* Try each address of the master until one answers. */
static void meet(struct meeting *meeting, const struct addrinfo *addresses)
{
	const struct addrinfo *at = addresses;
	char name[64] = "";
	int fd, result = -1;

	for (; at && result < 0; at = at->ai_next) {
		getnameinfo(at->ai_addr, at->ai_addrlen, name, sizeof(name),
			    NULL, 0, NI_NUMERICHOST);
		fd = try_connect(at, meeting->deadline);
		result = fd < 0 ? -1 : 0;
		for (int i = 0; result == 0 && i < QUESTIONS; i++)
			result = ask(meeting, fd);
		if (result < 0)
			say(meeting, name);
		if (fd >= 0)
			close(fd);
	}
	if (result == 0)
		meeting->probe.master_error[0] = '\0';
}

static void hold_meeting(void *state)
{
	struct meeting *meeting = state;
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *addresses;
	int result = getaddrinfo(meeting->host, meeting->port, &hints,
				 &addresses);

	if (result != 0) {
		snprintf(meeting->probe.master_error, FACT_TEXT, "cannot "
			 "resolve the master's address %.40s: %s; add it to "
			 "DNS or /etc/hosts", meeting->host,
			 gai_strerror(result));
		return;
	}
	meet(meeting, addresses);
	freeaddrinfo(addresses);
}

void master_probe(const char *host, const char *port, uint64_t nonce,
		  int64_t deadline, struct probe *probe)
{
	struct meeting *meeting = calloc(1, sizeof(*meeting));

	probe->clock_error_s = -1;
	if (!meeting)
		return;
	snprintf(meeting->host, sizeof(meeting->host), "%s", host);
	snprintf(meeting->port, sizeof(meeting->port), "%s", port);
	meeting->nonce = nonce;
	meeting->deadline = deadline;
	meeting->probe = *probe;
	/* The resolver may hang for longer than the deadline. */
	if (ddp_thread_run(hold_meeting, meeting, deadline + 500) < 0) {
		snprintf(probe->master_error, FACT_TEXT, "cannot resolve the "
			 "master's address %.40s in time: look at its DNS "
			 "servers", host);
		return;
	}
	*probe = meeting->probe;
	ddp_text_quote(probe->master_error);
	free(meeting);
}
