/* SPDX-License-Identifier: BSD-3-Clause */
/* Rank 0's end of a preflight's connections, for the judge alone. */
#ifndef DDP_BENCH_PREFLIGHT_SERVER_H
#define DDP_BENCH_PREFLIGHT_SERVER_H

#include <poll.h>

#include "preflight.h"

/* A connection; count bytes of the next message are here. */
struct peer {
	int fd;
	int rank;			/* -1: it has not said hello */
	size_t count;
	struct message message;
};

/* A rank's connection, and which messages have come from it. */
struct state {
	bool hello, facts, moved, here;
	int fd;				/* -1: it is not connected */
};

struct server {
	const struct preflight *preflight;
	struct world world;
	struct peer *peers;		/* [room] */
	struct pollfd *fds;		/* [room + 1]; the first listens */
	size_t peer_count, room;
	struct state *states;		/* of all ranks, as the next */
	struct facts *facts;
	struct moved *moved;
	struct verdict verdict;
	int64_t news_ms;		/* the last thing that came */
	bool asked;			/* and since then all were asked */
	const char *why_not_moved;
	bool named;			/* where all ranks are is known */
	double begin_s;
};

/* fd listens. Returns 0; -1: memory is short. */
int server_create(struct server *server, const struct preflight *preflight,
		  int fd);

/* Take in what comes, once, by a deadline of ddp_clock_ms. */
void server_wait(struct server *server, int64_t deadline);

/* Say a word to all ranks that are connected. */
void server_tell(struct server *server, enum word_kind kind, uint32_t value);

#endif
