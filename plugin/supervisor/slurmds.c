/* SPDX-License-Identifier: BSD-3-Clause */
/* This process tries which slurmds of a step accept a connection. */
#define _GNU_SOURCE
#include "supervisor/slurmds.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "slurm/scontrol.h"
#include "util/clock.h"
#include "util/text.h"
#include "verdict/times.h"

enum {
	ASKS_MAX = 3,		/* slurmctld may be busy */
	ASK_MS = 5000,		/* between two of them */
	ROUND_MS = 1200,	/* for a connection, which Linux tries once more
				 * after a second */
	LOST = 5,		/* so many rounds in a row have failed */
	LOST_ALONE = 24,	/* the same, if no slurmd at all has answered */
	EVERY = 3,		/* one that answers is tried in one of so many
				 * rounds: slurmd's log has a line for each */
	AT_ONCE = 128		/* connections */
};

struct slurmd {
	char name[DDP_WIRE_NODE_SIZE];
	struct sockaddr_in address;
	bool shows;		/* it only shows whether any can be reached */
	bool answered;		/* it has, since the launch */
	uint32_t failed;	/* connections in a row */
};

struct list {
	struct slurmd *all;
	size_t count;
	bool reached;		/* one has answered */
	uint32_t round;
};

/* ---- what Slurm knows of them */

/*
 * "SlurmdPort              = 6818": that of all nodes which do not differ. 0 where it
 * is not told, or where slurmds may not listen by IPv4.
 */
static int read_port(void)
{
	char *text = ddp_scontrol_show("config", NULL);
	const char *at = ddp_scontrol_find_setting(text, "SlurmdPort");
	int port = at && !strcasestr(text, "EnableIPv6") ? atoi(at) : 0;

	free(text);
	return port > 0 && port <= UINT16_MAX ? port : 0;
}

/* Copies a word "NAME=value" of a line. */
static void copy_word(const char *line, const char *name, char *value,
		      size_t size)
{
	int length;
	const char *at = ddp_scontrol_find_word(line, name, &length);

	snprintf(value, size, "%.*s", length, at);
}

/* Returns false for a node whose address is not known here. */
static bool read_node(const char *line, int usual, struct slurmd *slurmd)
{
	const struct addrinfo hints = {
		.ai_family = AF_INET, .ai_socktype = SOCK_STREAM,
	};
	struct addrinfo *list;
	char host[256], port[16];

	*slurmd = (struct slurmd){ .failed = 0 };
	copy_word(line, "NodeName", slurmd->name, sizeof(slurmd->name));
	copy_word(line, "NodeAddr", host, sizeof(host));
	copy_word(line, "Port", port, sizeof(port));
	if (!*port)
		snprintf(port, sizeof(port), "%d", usual);
	if (!*slurmd->name || !*host ||
	    getaddrinfo(host, port, &hints, &list) != 0)
		return false;
	memcpy(&slurmd->address, list->ai_addr, sizeof(slurmd->address));
	freeaddrinfo(list);
	return true;
}

/* Returns the nodes of the step and the other one, a line each; NULL: not told. */
static char *show_nodes(const struct ddp_slurmds_wish *wish)
{
	char *text = ddp_scontrol_show_step(wish->job_id, wish->step_id);
	char *list = NULL;
	int length;
	const char *at = ddp_scontrol_find_word(text, "NodeList", &length);

	if (length > 0 && asprintf(&list, "%.*s%s%s", length, at,
				   wish->other ? "," : "",
				   wish->other ? wish->other : "") < 0)
		list = NULL;
	free(text);
	text = list ? ddp_scontrol_show("node", list) : NULL;
	free(list);
	return text;
}

/* Returns false where Slurm does not tell them. */
static bool read_slurmds(struct list *list, const struct ddp_slurmds_wish *wish)
{
	char *text = show_nodes(wish), *at = text, *line;
	int usual = text ? read_port() : 0;
	struct slurmd *slurmd;
	size_t lines = 1;

	for (line = text; line && (line = strchr(line, '\n')); line++)
		lines++;
	list->all = usual ? calloc(lines, sizeof(*list->all)) : NULL;
	while (list->all && (line = strsep(&at, "\n"))) {
		slurmd = &list->all[list->count];
		if (!read_node(line, usual, slurmd))
			continue;
		slurmd->shows =
			ddp_step_find_node(wish->step, slurmd->name) >= 0 ||
			(wish->other && strcmp(slurmd->name, wish->other) == 0);
		list->count++;
	}
	free(text);
	return list->count > 0;
}

/* ---- a round */

/*
 * Counts a connection that has failed, unless its errno tells of this host, and not
 * of the node. A slurmd that has answered before and refuses now is restarted: the
 * tasks go on.
 */
static void fail(struct slurmd *slurmd, int cause)
{
	slurmd->failed += cause == ETIMEDOUT || cause == EHOSTUNREACH ||
			  (cause == ECONNREFUSED && !slurmd->answered);
}

/* Returns a socket that connects; -1: that has failed at once. */
static int knock(struct slurmd *slurmd)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd >= 0 &&
	    (connect(fd, (const struct sockaddr *)&slurmd->address,
		     sizeof(slurmd->address)) == 0 || errno == EINPROGRESS))
		return fd;
	fail(slurmd, errno);
	if (fd >= 0)
		close(fd);
	return -1;
}

/* Notes what has become of a connection. */
static void look(struct list *list, struct slurmd *slurmd, int fd)
{
	int cause = 0;
	socklen_t size = sizeof(cause);

	getsockopt(fd, SOL_SOCKET, SO_ERROR, &cause, &size);
	if (cause != 0) {
		fail(slurmd, cause);
		return;
	}
	slurmd->failed = 0;
	slurmd->answered = list->reached = true;
}

/* Waits for connections to these, for ROUND_MS at most. */
static void try(struct list *list, struct slurmd **chosen, size_t count)
{
	struct pollfd fds[AT_ONCE];
	int64_t now_ms = ddp_clock_ms(), end_ms = now_ms + ROUND_MS;
	int cause = ETIMEDOUT;
	size_t i, left = 0;

	for (i = 0; i < count; i++) {
		fds[i] = (struct pollfd){
			.fd = knock(chosen[i]), .events = POLLOUT,
		};
		left += fds[i].fd >= 0;
	}
	for (; left > 0 && now_ms < end_ms; now_ms = ddp_clock_ms()) {
		if (poll(fds, count, (int)(end_ms - now_ms)) < 0) {
			cause = errno;
			break;
		}
		for (i = 0; i < count; i++) {
			if (fds[i].fd < 0 || !fds[i].revents)
				continue;
			look(list, chosen[i], fds[i].fd);
			close(fds[i].fd);
			fds[i].fd = -1;
			left--;
		}
	}
	for (i = 0; i < count; i++) {
		if (fds[i].fd < 0)
			continue;
		fail(chosen[i], cause);
		close(fds[i].fd);
	}
}

/* One that has failed is tried in each round, others more rarely. */
static bool is_due(const struct list *list, const struct slurmd *slurmd)
{
	return slurmd->shows ? !list->reached :
		slurmd->failed > 0 || list->round % EVERY == 0;
}

static void try_due(struct list *list)
{
	struct slurmd *chosen[AT_ONCE];
	size_t i, count = 0;

	for (i = 0; i < list->count; i++) {
		if (is_due(list, &list->all[i]))
			chosen[count++] = &list->all[i];
		if (count == AT_ONCE || i + 1 == list->count) {
			try(list, chosen, count);
			count = 0;
		}
	}
}

/* The line of a round, which is the caller's. */
static char *format(const struct list *list)
{
	const uint32_t lost = list->reached ? LOST : LOST_ALONE;
	const struct slurmd *slurmd;
	struct ddp_text text = { 0 };
	size_t i;

	for (i = 0; i < list->count; i++) {
		slurmd = &list->all[i];
		if (!slurmd->shows)
			ddp_text_add(&text, " %c%s", slurmd->failed >= lost ?
				     '-' : slurmd->answered ? '+' : '?',
				     slurmd->name);
	}
	ddp_text_add(&text, "\n");
	return ddp_text_finish(&text);
}

int ddp_slurmds_watch(const struct ddp_slurmds_wish *wish)
{
	struct list list = { .count = 0 };
	int64_t left_ms;
	char *line;
	int asks = 0;

	while (!read_slurmds(&list, wish)) {
		free(list.all);
		if (++asks == ASKS_MAX)
			return 1;
		poll(NULL, 0, ASK_MS);
	}
	for (;; list.round++) {
		left_ms = ddp_clock_ms() + ROUND_MS;
		try_due(&list);
		line = format(&list);
		if (line && (fputs(line, stdout) < 0 || fflush(stdout) != 0))
			return 1;
		free(line);
		left_ms -= ddp_clock_ms();
		poll(NULL, 0, left_ms > 0 ? (int)left_ms : 0);
	}
}
