/* SPDX-License-Identifier: BSD-3-Clause */
/* When a node that does not begin its tasks is lost. */
#define _GNU_SOURCE
#include "supervisor/late.h"

#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define END "end\n"

static bool read_line(char *line, struct ddp_late_node *node)
{
	struct addrinfo hints = {
		.ai_socktype = SOCK_STREAM,
		.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
	}, *list;
	char *save, *name = strtok_r(line, " ", &save);
	char *host = strtok_r(NULL, " ", &save);
	char *port = strtok_r(NULL, " ", &save);

	if (!port || getaddrinfo(host, port, &hints, &list) != 0)
		return false;
	*node = (struct ddp_late_node){
		.name = strdup(name), .length = list->ai_addrlen, .fd = -1,
	};
	memcpy(&node->address, list->ai_addr, list->ai_addrlen);
	freeaddrinfo(list);
	return node->name != NULL;
}

static bool is_whole(const char *answer)
{
	size_t length = strlen(answer), end = strlen(END);

	return length >= end && strcmp(answer + length - end, END) == 0 &&
	       (length == end || answer[length - end - 1] == '\n');
}

size_t ddp_late_read(struct ddp_late *late, char *answer)
{
	char *line, *save, *at;
	size_t lines = 0;

	if (!is_whole(answer))
		return 0;
	for (at = answer; (at = strchr(at, '\n')); at++)
		lines++;
	late->all = calloc(lines, sizeof(*late->all));
	for (line = late->all ? strtok_r(answer, "\n", &save) : NULL; line;
	     line = strtok_r(NULL, "\n", &save))
		late->count += read_line(line, &late->all[late->count]);
	return late->count;
}

void ddp_late_clear(struct ddp_late *late)
{
	size_t i;

	for (i = 0; i < late->count; i++) {
		if (late->all[i].fd >= 0)
			close(late->all[i].fd);
		free(late->all[i].name);
	}
	free(late->all);
	*late = (struct ddp_late){ .count = 0 };
}

/* One that has failed is tried at once again, others more rarely. */
static bool is_due(const struct ddp_late *late,
		   const struct ddp_late_node *node, bool failed)
{
	if (node->here)
		return !failed && !late->reached;
	return failed ? node->failed > 0 :
		node->failed == 0 && late->round % DDP_LATE_EVERY == 0;
}

/* In turn, if there are more than can be tried at once. */
static size_t choose(struct ddp_late *late, bool failed, size_t most,
		     size_t *chosen, size_t count)
{
	size_t i, index, first = late->first;

	for (i = 0; i < late->count && count < most; i++) {
		index = (first + i) % late->count;
		if (!is_due(late, &late->all[index], failed))
			continue;
		chosen[count++] = index;
		if (count == most)
			late->first = (index + 1) % late->count;
	}
	return count;
}

size_t ddp_late_choose(struct ddp_late *late, int64_t now_ns, size_t most,
		       size_t *chosen)
{
	size_t count;

	if (late->count == 0 || now_ns < late->next_ns)
		return 0;
	count = choose(late, true, most, chosen, 0);
	count = choose(late, false, most, chosen, count);
	late->round++;
	late->next_ns = now_ns + (int64_t)DDP_LATE_ROUND_MS * 1000000;
	return count;
}

/*
 * Whether a connection that has not come about by now tells of the node, and not
 * of this host. A slurmd that has answered before and refuses now is restarted:
 * the tasks go on.
 */
static bool tells(const struct ddp_late_node *node, int cause)
{
	if (cause == ECONNREFUSED)
		return !node->answered;
	return cause == 0 || cause == ETIMEDOUT || cause == EHOSTUNREACH;
}

void ddp_late_take(struct ddp_late *late, struct ddp_late_node *node,
		   bool accepted, int cause)
{
	if (accepted) {
		node->failed = 0;
		node->answered = late->reached = true;
	} else if (tells(node, cause)) {
		node->failed++;
	}
}

bool ddp_late_is_lost(const struct ddp_late *late,
		      const struct ddp_late_node *node)
{
	return !node->here && node->failed >=
	       (late->reached ? DDP_LATE_FAILED : DDP_LATE_ALONE);
}
