/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The way of a rank to the master's address, and how far its clock is off.
 *
 * Rank 0 answers a question with its date. The answer was written between
 * question and answer; the middle of the two is at most half the time between
 * them off. Of several questions the one with the shortest time counts.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "preflight.h"
#include "util/clock.h"
#include "util/text.h"

enum { QUESTIONS = 8, AGAIN_MS = 50, TRY_MS = 2000 };

static int wait_for(int fd, short what, int64_t deadline)
{
	struct pollfd poller = { fd, what, 0 };
	int64_t left = deadline - ddp_clock_ms();
	int result = poll(&poller, 1, left > 0 ? (int)left : 0);

	if (result == 0)
		errno = ETIMEDOUT;
	return result > 0 ? 0 : -1;
}

/* One question. Returns 0, or -1 with errno set. */
static int ask(const struct preflight *preflight, int fd, int64_t deadline,
	       struct facts *clock)
{
	const struct message question = preflight_message(preflight,
							   MESSAGE_CLOCK);
	double date = preflight_date(), took = ddp_clock_seconds();
	struct word answer;

	if (preflight_send(fd, &question, sizeof(question)) < 0 ||
	    wait_for(fd, POLLIN, deadline) < 0)
		return -1;
	errno = EPROTO;
	if (preflight_receive(fd, &answer, sizeof(answer)) < 0 ||
	    memcmp(answer.tag, preflight->tag, sizeof(answer.tag)) != 0 ||
	    answer.kind != WORD_CLOCK)
		return -1;
	took = ddp_clock_seconds() - took;
	if (clock->clock_error_s < 0 || took / 2 < clock->clock_error_s) {
		clock->clock_error_s = took / 2;
		clock->clock_s = answer.clock_s - date - took / 2;
	}
	return 0;
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

static int greet(const struct preflight *preflight, int fd, int64_t deadline,
		 struct facts *clock)
{
	struct message hello = preflight_message(preflight, MESSAGE_HELLO);
	int i, result;

	hello.facts.gpus_given = facts_count_given();
	result = preflight_send(fd, &hello, sizeof(hello));
	clock->clock_error_s = -1;
	for (i = 0; result == 0 && i < QUESTIONS; i++)
		result = ask(preflight, fd, deadline, clock);
	return result;
}

static void say(const struct preflight *preflight,
		const struct addrinfo *address, char why[WHY_TEXT])
{
	char name[64] = "?";
	int number = errno;

	getnameinfo(address->ai_addr, address->ai_addrlen, name, sizeof(name),
		    NULL, 0, NI_NUMERICHOST);
	snprintf(why, WHY_TEXT, number == EPROTO ? "at the master's address, "
		 "%.40s:%.5s (%s), another program answers: let the name lead "
		 "to rank 0's node" : number == ECONNREFUSED ? "nobody listens "
		 "at the master's address, %.40s:%.5s (%s): rank 0 hangs, or "
		 "the name leads elsewhere" : "cannot reach the master at "
		 "%.40s:%.5s (%s): %.60s; let routes and the firewall pass it",
		 preflight->master, preflight->port, name, strerror(number));
}

/* Each address of the master, once. */
static int try_all(const struct preflight *preflight,
		   const struct addrinfo *at, int64_t deadline,
		   struct facts *clock, char why[WHY_TEXT])
{
	int64_t end = ddp_clock_ms() + TRY_MS;
	int fd = -1;

	end = end < deadline ? end : deadline;
	for (; at && fd < 0; at = at->ai_next) {
		fd = try_connect(at, end);
		if (fd >= 0 && greet(preflight, fd, deadline, clock) == 0)
			return fd;
		say(preflight, at, why);
		if (fd >= 0)
			close(fd);
		fd = -1;
	}
	return -1;
}

/* Again and again: rank 0 may begin later, and a name may come late. */
int preflight_meet(const struct preflight *preflight, int64_t deadline,
		   struct facts *clock, char why[WHY_TEXT])
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *addresses;
	int result, fd = -1;

	do {
		result = getaddrinfo(preflight->master, preflight->port,
				     &hints, &addresses);
		if (result != 0) {
			snprintf(why, WHY_TEXT, "cannot resolve the master's "
				 "address %.40s: %s; add it to DNS or "
				 "/etc/hosts", preflight->master,
				 gai_strerror(result));
		} else {
			fd = try_all(preflight, addresses, deadline, clock,
				     why);
			freeaddrinfo(addresses);
		}
		if (fd < 0)
			poll(NULL, 0, AGAIN_MS);
	} while (fd < 0 && ddp_clock_ms() < deadline);
	ddp_text_quote(why);
	return fd;
}
