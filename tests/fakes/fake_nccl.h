/* SPDX-License-Identifier: BSD-3-Clause */
/* The fake NCCL from inside: what its parts share. */
#ifndef DDP_TESTS_FAKE_NCCL_H
#define DDP_TESTS_FAKE_NCCL_H

#include <limits.h>
#include <stdatomic.h>
#include <stddef.h>

typedef struct {
	char internal[128];	/* "fake-HOST-PID-COUNT", zeros */
} ncclUniqueId;

/* ncclResult_t */
enum { SUCCESS, CUDA, SYSTEM, INTERNAL, ARGUMENT, USAGE, REMOTE, PROGRESS };

enum { RANKS = 8 };		/* of a communicator that moves data */

enum kind { ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER, BROADCAST, REDUCE, SEND,
	    RECEIVE, KINDS };

struct fake_stream;
struct shared;

struct ncclComm {
	unsigned int magic;
	int size, rank, id_count;
	ncclUniqueId *ids;
	int met, state, blocking;
	int splits;			/* communicators made of this one */
	struct ncclComm **made;		/* where the latest of them is to be */
	struct ncclComm *child;		/* it */
	long start, finalized;
	int calls;			/* that moved data, and were not asked
					 * for since */
	struct shared *shared;		/* NULL until data is moved */
	void *stream;			/* of the last call */
	int pending;			/* moves that were begun */
	/* Moves that were asked for, and of them how many are done */
	unsigned int collectives, sends[RANKS], receives[RANKS];
	unsigned int collected, sent[RANKS], received[RANKS];
	unsigned int pieces;		/* of collectives, that are done */
	unsigned int asked[KINDS];	/* calls, for the log */
};

/* The moves of all communicators that are pending, and not aborted. */
extern atomic_int fake_moves;

/* A call of this thread that moves data in a communicator begins. */
void fake_list(struct ncclComm *comm);

/* The path of a file of a communicator; "": its folder. */
void fake_format_path(char path[PATH_MAX], const ncclUniqueId *id,
		      const char *name);

/* ncclDataType_t */
enum { INT8, UINT8, INT32, UINT32, INT64, UINT64, FP16, FP32, FP64, BF16,
       TYPES };

/* What a call moves, and how far that is. */
struct move {
	enum kind kind;
	struct ncclComm *comm;
	struct fake_stream *stream;	/* NULL: not emulated */
	const void *send;
	void *receive;
	size_t count, at;		/* values in all, and done */
	int type, peer;			/* or root */
	unsigned int ticket;		/* its place among those like it */
	int published, done;
};

size_t fake_size(int type);
const char *fake_name(enum kind kind);

/* Go on as far as the other ranks are: 1 when it is done. It never waits. */
int fake_move(struct move *move);

/* Map the communicator's file, unless that has been done. */
int fake_map(struct ncclComm *comm);
void fake_unmap(struct ncclComm *comm);

/* Groups that are open; what ncclGroupEnd has to do for the last of them. */
int fake_depth(void);
int fake_end_group(void);

/* ARGUMENT, and its reason; that ranks do not agree on what they do. */
int fake_fail(const char *text);
void fake_differ(struct ncclComm *comm, const char *what);

#endif
