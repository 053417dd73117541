/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads what RAS says, and finds who is behind. */
#define _GNU_SOURCE
#include "proc/ras.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORD_SIZE = 64, RANKS_MAX = 1 << 16 };
enum { LISTENS = 10, LINE_SIZE = 256 };	/* as /proc/net/tcp has them */

/* A member of a JSON object: "name": number, word or "text"; else value is "". */
struct member {
	char name[WORD_SIZE], value[WORD_SIZE];
};

struct reader {
	struct ddp_ras *ras;
	size_t size;
	uint64_t communicator[2];
	bool missing;		/* those that come are */
	size_t function;	/* of the rank; how many have been read */
	bool counts;		/* what comes now are counts */
	bool ended;		/* the last member was read */
};

/*
 * Copy a string without its quotes, cut where it is too long; returns what is
 * behind it, or NULL. NCCL's have no backslash.
 */
static const char *read_string(const char *at, char word[WORD_SIZE])
{
	size_t length = strcspn(++at, "\"");

	snprintf(word, WORD_SIZE, "%.*s",
		 length < WORD_SIZE ? (int)length : WORD_SIZE - 1, at);
	return at[length] ? at + length + 1 : NULL;
}

static const char *skip_space(const char *at)
{
	return at + strspn(at, " \t\r\n");
}

/* The next member; returns what is behind it, or NULL. */
static const char *read_member(const char *at, struct member *member)
{
	size_t length;

	do {
		at = strchr(at, '"');
		at = at ? read_string(at, member->name) : NULL;
		at = at ? skip_space(at) : NULL;
	} while (at && *at != ':');
	member->value[0] = '\0';
	if (!at)
		return NULL;
	at = skip_space(at + 1);
	if (*at == '"')
		return read_string(at, member->value);
	length = strspn(at, "-0123456789aeflrstu");
	snprintf(member->value, WORD_SIZE, "%.*s",
		 length < WORD_SIZE ? (int)length : WORD_SIZE - 1, at);
	return at + length;
}

static struct ddp_ras_rank *add_rank(struct reader *reader)
{
	struct ddp_ras *ras = reader->ras;
	struct ddp_ras_rank *ranks;

	if (ras->count == RANKS_MAX)
		return NULL;
	if (ras->count == reader->size) {
		reader->size = reader->size ? 2 * reader->size : 64;
		ranks = realloc(ras->ranks, reader->size * sizeof(*ranks));
		if (!ranks)
			return NULL;
		ras->ranks = ranks;
	}
	ranks = &ras->ranks[ras->count++];
	memset(ranks, 0, sizeof(*ranks));
	memcpy(ranks->communicator, reader->communicator,
	       sizeof(ranks->communicator));
	ranks->missing = reader->missing;
	return ranks;
}

static bool is(const struct member *member, const char *name)
{
	return strcmp(member->name, name) == 0;
}

/* The functions that a later NCCL could have beyond what fits are one. */
static void add_count(struct reader *reader, struct ddp_ras_rank *rank,
		      const struct member *member)
{
	rank->counts[reader->function] += strtoull(member->value, NULL, 10);
	if (reader->function < DDP_RAS_FUNCTIONS - 1)
		reader->function++;
}

/* Takes what a member of a rank says. */
static void take_of_rank(struct reader *reader, struct ddp_ras_rank *rank,
			 const struct member *member)
{
	if (is(member, "pid"))
		rank->pid = (uint32_t)strtoul(member->value, NULL, 10);
	else if (is(member, "host"))
		snprintf(rank->host, sizeof(rank->host), "%.45s",
			 member->value);
	else if (is(member, "unresponsive") &&
		 strcmp(member->value, "true") == 0)
		rank->behind = DDP_RAS_MISSING;
	else if (is(member, "collective_counts"))
		reader->counts = true;
	else if (reader->counts && *member->value)
		add_count(reader, rank, member);
}

static int take(struct reader *reader, const struct member *member)
{
	struct ddp_ras *ras = reader->ras;
	struct ddp_ras_rank *rank =
		ras->count ? &ras->ranks[ras->count - 1] : NULL;
	char *second;

	if (is(member, "hash")) {
		reader->communicator[0] = strtoull(member->value, NULL, 16);
		reader->missing = false;
	} else if (is(member, "secondary_hash")) {
		reader->communicator[1] = strtoull(member->value, &second, 16);
		if (*second == ':')
			reader->communicator[1] ^= strtoull(second + 1, NULL,
							    16) << 1;
	} else if (is(member, "missing_ranks")) {
		reader->missing = true;
		reader->counts = false;
	} else if (is(member, "rank")) {
		rank = add_rank(reader);
		if (!rank)
			return -1;
		rank->number = (uint32_t)strtoul(member->value, NULL, 10);
		reader->counts = false;
		reader->function = 0;
	} else if (is(member, "timeouts_count")) {
		reader->ended = true;
	} else if (rank) {
		take_of_rank(reader, rank, member);
	}
	return 0;
}

static int compare_number(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static int compare_communicators(const struct ddp_ras_rank *a,
				 const struct ddp_ras_rank *b)
{
	int order = compare_number(a->communicator[0], b->communicator[0]);

	return order ? order :
		compare_number(a->communicator[1], b->communicator[1]);
}

static int compare(const void *a, const void *b)
{
	const struct ddp_ras_rank *one = a, *other = b;
	int order = compare_communicators(one, other);

	return order ? order : compare_number(one->number, other->number);
}

/*
 * Returns what more than half of these ranks have launched of a function, found
 * by voting; 0 if there is no such number.
 */
static uint64_t find_most(const struct ddp_ras_rank *ranks, size_t count,
			  size_t function)
{
	size_t i, votes = 0, same = 0, there = 0;
	uint64_t most = 0;

	for (i = 0; i < count; i++) {
		if (ranks[i].missing)
			continue;
		there++;
		if (votes == 0)
			most = ranks[i].counts[function];
		votes += ranks[i].counts[function] == most ? 1 : SIZE_MAX;
	}
	for (i = 0; i < count; i++)
		same += !ranks[i].missing &&
			ranks[i].counts[function] == most;
	return 2 * same > there ? most : 0;
}

/* One that differs in functions, too, is behind in one of them. */
static void compare_counts(struct ddp_ras_rank *ranks, size_t count)
{
	uint64_t most, behind;
	size_t i, function;

	for (function = 0; function < DDP_RAS_FUNCTIONS; function++) {
		most = find_most(ranks, count, function);
		for (i = 0; i < count; i++) {
			behind = most > ranks[i].counts[function] ?
				most - ranks[i].counts[function] : 0;
			if (behind > INT32_MAX)
				behind = INT32_MAX;
			if (!ranks[i].missing && behind > ranks[i].behind)
				ranks[i].behind = (uint32_t)behind;
		}
	}
}

static void find_behind(struct ddp_ras *ras)
{
	size_t first, end;

	for (first = 0; first < ras->count; first = end) {
		for (end = first + 1; end < ras->count; end++)
			if (compare_communicators(&ras->ranks[first],
						  &ras->ranks[end]) != 0)
				break;
		compare_counts(&ras->ranks[first], end - first);
	}
}

int ddp_ras_read(const char *answer, struct ddp_ras *ras)
{
	struct reader reader = { .ras = ras };
	struct member member;
	int rc = 0;

	memset(ras, 0, sizeof(*ras));
	while (rc == 0 && (answer = read_member(answer, &member)))
		rc = take(&reader, &member);
	if (rc < 0 || !reader.ended) {
		free(ras->ranks);
		memset(ras, 0, sizeof(*ras));
		return -1;
	}
	if (ras->count)
		qsort(ras->ranks, ras->count, sizeof(*ras->ranks), compare);
	find_behind(ras);
	return 0;
}

static bool is_among(const struct ifaddrs *own, const char *host)
{
	char text[INET6_ADDRSTRLEN];
	const void *address;

	for (; own; own = own->ifa_next) {
		if (!own->ifa_addr)
			continue;
		address = own->ifa_addr->sa_family == AF_INET ?
			(const void *)&((const struct sockaddr_in *)
					own->ifa_addr)->sin_addr :
			own->ifa_addr->sa_family == AF_INET6 ?
			(const void *)&((const struct sockaddr_in6 *)
					own->ifa_addr)->sin6_addr : NULL;
		if (address && inet_ntop(own->ifa_addr->sa_family, address,
					 text, sizeof(text)) &&
		    strcmp(text, host) == 0)
			return true;
	}
	return false;
}

/* Ranks of a node come one after the other, mostly. */
void ddp_ras_mark(struct ddp_ras *ras, const struct ifaddrs *own)
{
	struct ddp_ras_rank *ranks = ras->ranks;
	size_t i;

	for (i = 0; i < ras->count; i++)
		ranks[i].here =
			i > 0 && strcmp(ranks[i].host, ranks[i - 1].host) == 0 ?
			ranks[i - 1].here : is_among(own, ranks[i].host);
}

static bool has_launched(const struct ddp_ras_rank *before,
			 const struct ddp_ras_rank *now)
{
	size_t i;

	for (i = 0; i < DDP_RAS_FUNCTIONS; i++)
		if (!before->missing && !now->missing &&
		    now->counts[i] > before->counts[i])
			return true;
	return false;
}

bool ddp_ras_rises(const struct ddp_ras *before, const struct ddp_ras *now)
{
	size_t i = 0, j = 0;
	int order;

	while (i < before->count && j < now->count) {
		order = compare(&before->ranks[i], &now->ranks[j]);
		if (order == 0 && has_launched(&before->ranks[i],
					       &now->ranks[j]))
			return true;
		i += order <= 0;
		j += order >= 0;
	}
	return false;
}

/* An address is there as words of the CPU's byte order, 1 or 4 of them. */
static bool reaches(const char *address, bool six)
{
	const uint32_t loopback = htonl(INADDR_LOOPBACK);
	char texts[4][33];
	size_t i;

	/* 127.0.0.1, 0.0.0.0, ::ffff:127.0.0.1 and ::; ::1 and :: */
	snprintf(texts[0], 33, "%08" PRIX32, loopback);
	snprintf(texts[1], 33, "%08X", 0);
	snprintf(texts[2], 33, "%016X%08" PRIX32 "%08" PRIX32, 0,
		 (uint32_t)htonl(0xffff), loopback);
	snprintf(texts[3], 33, "%032X", 0);
	if (six)
		snprintf(texts[2], 33, "%024X%08" PRIX32, 0,
			 (uint32_t)htonl(1));
	for (i = six ? 2 : 0; i < 4; i++)
		if (strcmp(address, texts[i]) == 0)
			return true;
	return false;
}

int ddp_ras_find_owner(const char *text, bool six, uint16_t port, uid_t *owner)
{
	char line[LINE_SIZE], address[33];
	unsigned int at, state, user;
	size_t length;

	for (; text && *text; text += length + (text[length] == '\n')) {
		/* sscanf would first find the end of a long text. */
		length = strcspn(text, "\n");
		snprintf(line, sizeof(line), "%.*s", (int)length, text);
		if (sscanf(line, " %*u: %32[0-9A-F]:%x %*[0-9A-F]:%*x %x %*s "
			   "%*s %*s %u", address, &at, &state, &user) != 4 ||
		    at != port || state != LISTENS || !reaches(address, six))
			continue;
		*owner = user;
		return 0;
	}
	return -1;
}
