/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Asks NCCL's RAS what the ranks of the step have launched. A process of each
 * that NCCL runs in listens at NCCL_RAS_ADDR, all of a node at the same port,
 * and knows of all nodes. It is asked only when the ranks of this node have
 * made no progress for half the time that the watchdog gives them. Without an
 * answer nothing happens: NCCL is too old, not in use, or has no RAS.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/state.h"
#include "options/plugin.h"
#include "util/file.h"

enum {
	ANSWER_MAX = 8 << 20,	/* some 10,000 ranks of communicators */
	PATIENCE_MS = 8000,	/* RAS itself waits for 7 s at most */
	AGAIN_MIN_MS = 1000
};

static const char loopback[] = "localhost:";

/* Only where it is on the node itself; 0: not asked. */
uint16_t ddp_ras_find_port(const struct ddp_agent_step *step)
{
	const char *users = step->ras_address;
	unsigned long port;
	char *end;

	if (!users)
		return step->ras_port;
	if (strncmp(users, loopback, sizeof(loopback) - 1) != 0)
		return 0;
	port = strtoul(users + sizeof(loopback) - 1, &end, 10);
	return *end || port > UINT16_MAX ? 0 : (uint16_t)port;
}

/* As NCCL does, which takes the first address of "localhost": one of these. */
static int dial(const struct ddp_ras_talk *talk)
{
	const struct sockaddr_in six_less = {
		.sin_family = AF_INET,
		.sin_port = htons(talk->port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	const struct sockaddr_in6 six = {
		.sin6_family = AF_INET6,
		.sin6_port = htons(talk->port),
		.sin6_addr = IN6ADDR_LOOPBACK_INIT,
	};
	int fd = socket(talk->six ? AF_INET6 : AF_INET,
			SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), rc;

	if (fd < 0)
		return -1;
	rc = talk->six ?
		connect(fd, (const struct sockaddr *)&six, sizeof(six)) :
		connect(fd, (const struct sockaddr *)&six_less,
			sizeof(six_less));
	if (rc == 0 || errno == EINPROGRESS)
		return fd;
	close(fd);
	return -1;
}

static void hang_up(struct ddp_ras_talk *talk)
{
	if (talk->fd > 0)
		close(talk->fd);
	free(talk->answer);
	talk->fd = 0;
	talk->answer = NULL;
	talk->length = talk->size = 0;
	talk->asked = false;
}

/*
 * What it last said is old now. Where nobody listens it may be at the other
 * address, which is tried at once.
 */
static void fail(struct ddp_ras_talk *talk)
{
	if (!talk->asked)
		talk->next_ms = 0;
	hang_up(talk);
	talk->valid = false;
	talk->six = !talk->six;
}

/* The whole answer has come. */
static void take(struct ddp_agent *agent)
{
	struct ddp_progress *progress = &agent->progress;
	struct ddp_ras_talk *talk = &progress->ras;
	struct ifaddrs *own = NULL;
	struct ddp_ras now;
	uint32_t i;

	if (!talk->answer || ddp_ras_read(talk->answer, &now) < 0) {
		fail(talk);
		return;
	}
	hang_up(talk);
	if (ddp_ras_rises(&talk->last, &now))
		for (i = 0; i < agent->count; i++)
			progress->ranks[i].idle_ms = 0;
	if (getifaddrs(&own) == 0)
		ddp_ras_mark(&now, own);
	freeifaddrs(own);
	free(talk->last.ranks);
	talk->last = now;
	talk->valid = true;
}

/* Room for more, and for a NUL. */
static bool make_room(struct ddp_ras_talk *talk)
{
	size_t size = talk->size ? 2 * talk->size : 1 << 16;
	char *answer;

	if (talk->length + 1 < talk->size)
		return true;
	answer = size <= ANSWER_MAX ? realloc(talk->answer, size) : NULL;
	if (!answer)
		return false;
	talk->answer = answer;
	talk->size = size;
	return true;
}

/* Returns whether to go on: not when all is read, or nothing more comes. */
static bool receive(struct ddp_agent *agent)
{
	struct ddp_ras_talk *talk = &agent->progress.ras;
	ssize_t got;

	if (!make_room(talk)) {
		fail(talk);
		return false;
	}
	got = recv(talk->fd, talk->answer + talk->length,
		   talk->size - talk->length - 1, 0);
	if (got < 0 && errno == EAGAIN)
		return false;
	if (got < 0) {
		fail(talk);
		return false;
	}
	talk->length += (size_t)got;
	talk->answer[talk->length] = '\0';
	if (got == 0)
		take(agent);
	return got > 0;
}

/* Where IPv4 has nobody, who listens at IPv6 can have both. */
static int find_owner(const struct ddp_ras_talk *talk, uid_t *owner)
{
	char *four = talk->six ? NULL : ddp_file_read("/proc/net/tcp"), *six;
	int rc = ddp_ras_find_owner(four, false, talk->port, owner);

	free(four);
	if (rc == 0)
		return 0;
	six = ddp_file_read("/proc/net/tcp6");
	rc = ddp_ras_find_owner(six, talk->six, talk->port, owner);
	free(six);
	return rc;
}

/* Whether it is this user's: any user of the node could have taken the port. */
static bool is_users(const struct ddp_ras_talk *talk)
{
	uid_t owner;

	return find_owner(talk, &owner) == 0 && owner == geteuid();
}

static bool ask(struct ddp_ras_talk *talk)
{
	static const char question[] = DDP_RAS_QUESTION;
	ssize_t sent = send(talk->fd, question, sizeof(question) - 1,
			    MSG_NOSIGNAL);

	if (sent < 0 && errno == EAGAIN)
		return false;
	talk->asked = sent == sizeof(question) - 1 && is_users(talk);
	if (!talk->asked)
		fail(talk);
	return talk->asked;
}

void ddp_ras_begin(struct ddp_agent *agent, uint32_t idle_ms)
{
	struct ddp_ras_talk *talk = &agent->progress.ras;
	uint32_t hang_ms = 1000 * ddp_plugin.watchdog_s;
	int64_t now_ms = ddp_clock_ms();

	if (!talk->port || talk->fd > 0 || idle_ms < hang_ms / 2 ||
	    now_ms < talk->next_ms)
		return;
	talk->next_ms = now_ms + (hang_ms / 8 > AGAIN_MIN_MS ?
				  hang_ms / 8 : AGAIN_MIN_MS);
	talk->until_ms = now_ms + PATIENCE_MS;
	talk->fd = dial(talk);
	if (talk->fd < 0)
		fail(talk);
}

void ddp_ras_serve(struct ddp_agent *agent)
{
	struct ddp_ras_talk *talk = &agent->progress.ras;

	if (talk->fd <= 0)
		return;
	if (ddp_clock_ms() >= talk->until_ms)
		fail(talk);
	else if (talk->asked || ask(talk))
		while (receive(agent))
			;
}

static uint32_t find_rank(const struct ddp_processes *all, uint32_t pid)
{
	size_t i;

	for (i = 0; i < all->count; i++)
		if (all->data[i].pid == (pid_t)pid)
			return all->data[i].rank;
	return DDP_WIRE_NO_RANK;
}

uint32_t ddp_ras_find_behind(const struct ddp_agent *agent, uint32_t task,
			     const struct ddp_processes *all)
{
	const struct ddp_ras_talk *talk = &agent->progress.ras;
	const struct ddp_ras_rank *rank;
	uint32_t behind = 0;
	size_t i;

	for (i = 0; talk->valid && i < talk->last.count; i++) {
		rank = &talk->last.ranks[i];
		if (rank->here && rank->behind > behind &&
		    find_rank(all, rank->pid) == agent->node->slots[task].rank)
			behind = rank->behind;
	}
	return behind;
}
