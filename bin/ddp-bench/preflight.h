/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ddp-bench --preflight: is every node fit for a job, and which is not?
 *
 * * Whatever can hang is done by a worker, a child of each rank's process: it
 * gathers facts (preflight_worker.c) and moves data (preflight_move.c). The
 * rank's process itself (preflight.c) connects to the master's address and
 * passes on what the worker says (preflight_worker.c). There a child of rank
 * 0's listens (preflight_judge.c): that collects what has come until nothing
 * more comes, judges it (verdict.h) and prints (preflight_print.c). Neither MPI
 * nor PMIx nor NCCL have to work for it.
 *
 * * A rank that is behind the others is at fault once there is no news for the
 * limit. Where most are behind, none is: they get longer, the patience.
 */
#ifndef DDP_BENCH_PREFLIGHT_H
#define DDP_BENCH_PREFLIGHT_H

#include <sys/types.h>

#include "bench.h"
#include "verdict.h"

/* Run it on this rank, and print the verdict. Returns the exit status. */
int preflight_run(const struct options *options);

/*
 * ---- what goes over the connections; PREFLIGHT_TAG_SIZE for "JOB.STEP"
 *
 * The tag tells steps apart, and is no secret: whoever reaches the port can say
 * hello in a rank's place. That can spoil a check, and no more.
 */

enum { PREFLIGHT_TAG_SIZE = 32 };

enum message_kind {
	MESSAGE_HELLO, MESSAGE_CLOCK, MESSAGE_FACTS, MESSAGE_MOVED,
	MESSAGE_HERE
};

/* The head of a message of a rank, or of its worker. This part is the same in
 * every version. */
struct header {
	char tag[PREFLIGHT_TAG_SIZE];	/* both ends are of one step */
	uint32_t size;			/* of the message */
	uint32_t kind, rank, world_size;
	char host[FACT_HOST];
	char version[16];		/* of ddp-bench */
};

struct message {
	struct header header;
	union {
		struct facts facts;
		struct moved moved;
	};
};

/*
 * Rank 0's words: the time; begin to move data by MPI or NCCL (value); tell
 * that you are here; end, with an exit status (value); tell facts, complete or
 * not. Versions of ddp-bench with messages of one size meet: new words come
 * last.
 */
enum word_kind { WORD_CLOCK, WORD_GO, WORD_ASK, WORD_END, WORD_TELL };
enum { GO_MPI, GO_NCCL };

struct word {
	char tag[PREFLIGHT_TAG_SIZE];
	uint32_t kind, value;
	double clock_s;
};

/* The date in seconds. */
double preflight_date(void);

/* Returns how long to wait without news: --limit, or the default, which is
 * longer for what is done with GPUs. */
int64_t preflight_limit_ms(const struct options *options, bool gpus);
int64_t preflight_patience_ms(const struct options *options, bool gpus);

/* ---- a rank's parts */

enum { WHY_TEXT = 240 };	/* a sentence with a name and its address */

struct preflight {
	const struct options *options;
	int rank, size, local_rank;
	const char *master, *port;	/* MASTER_ADDR and MASTER_PORT */
	char host[FACT_HOST];
	char tag[PREFLIGHT_TAG_SIZE];
};

/* A message of this rank, with all but its content. */
struct message preflight_message(const struct preflight *preflight,
				 enum message_kind kind);

/* All of it, however long that takes. Returns 0; -1: the other end is gone. */
int preflight_send(int fd, const void *data, size_t size);
int preflight_receive(int fd, void *data, size_t size);

/* A child that does not outlive this process. Returns as fork(2) does. */
pid_t preflight_fork(void);

/* The worker, and the process between it and the judge. */
struct worker {
	const struct preflight *preflight;
	const struct facts *clock;	/* how far it is off */
	int server;			/* the connection to the judge */
	pid_t pid;
	int fd;				/* -1: it has ended */
	bool told;			/* it has sent its facts */
	struct moved last;
};

/* Start the worker. Returns 0, or -1. */
int worker_start(struct worker *worker, const struct preflight *preflight);

/*
 * Pass on what the worker and the judge say, once clock and server are set,
 * until the judge ends it. Returns the exit status; -1: the judge is gone.
 */
int worker_mediate(struct worker *worker);

/* Fill in the GPUs of the step here, given and untried; asks no driver. */
void preflight_count_gpus(struct facts *facts);

/* The worker calls it. It tells fd what it finds, as messages. */
void preflight_move(const struct preflight *preflight,
		    const struct backend *backend, int fd);

/*
 * The process that judges; returns the exit status. fd listens. Where it
 * cannot, preflight_listen returns -1 with why.
 */
int preflight_listen(const struct preflight *preflight, char why[WHY_TEXT]);
int preflight_serve(const struct preflight *preflight, int fd);

/* ---- the verdict in words */

struct preflight_summary {
	const struct world *world;
	const struct facts *facts;	/* of all ranks */
	const char *backend;		/* that moved data */
	const char *why_not_moved;	/* NULL: data was moved */
	bool named;			/* all nodes have names of theirs */
	double seconds;
};

void preflight_print(const struct preflight_summary *summary,
		     const struct verdict *verdict, bool json);

#endif
