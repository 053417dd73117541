/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads what RAS says, the part of NCCL that answers questions about its state
 * while it runs. RAS tells how many collective operations each rank of each
 * communicator has launched. NCCL 2.28.7 to 2.30.7 write this as JSON
 * (jsonWriteRankData in src/ras/client_support.cc). Versions from 2.24 on have
 * a text only, without counts as long as those are equal. Whoever is asked can
 * answer anything.
 */
#ifndef DDP_PROC_RAS_H
#define DDP_PROC_RAS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * The question, whose answer ends with the connection. TIMEOUT is how long RAS
 * waits for processes that do not answer, in seconds, before it waits 5 s for
 * those that wait for others.
 */
#define DDP_RAS_QUESTION "CLIENT PROTOCOL 2\nTIMEOUT 2\nSET FORMAT json\n" \
			 "STATUS\n"

enum {
	DDP_RAS_FUNCTIONS = 8,	/* NCCL counts 5, such as AllReduce */
	DDP_RAS_HOST_SIZE = 46	/* holds an address as text */
};

#define DDP_RAS_MISSING UINT32_MAX	/* its process does not answer */

/* A rank of a communicator: not of the step. */
struct ddp_ras_rank {
	uint64_t communicator[2];
	uint32_t number, pid;
	char host[DDP_RAS_HOST_SIZE];	/* its address, as inet_ntop has it */
	bool missing;		/* its process does not answer, or does not know
				 * the communicator: there are no counts */
	bool here;		/* ddp_ras_mark found it on this node */
	uint64_t counts[DDP_RAS_FUNCTIONS];
	uint32_t behind;	/* what more than half of its communicator have
				 * launched more of a function; or: */
};

struct ddp_ras {
	struct ddp_ras_rank *ranks;	/* sorted; to be freed */
	size_t count;
};

/*
 * Read an answer. Returns 0; -1 if it is none, is not whole or too
 * long, or memory is short: then ras is empty.
 */
int ddp_ras_read(const char *answer, struct ddp_ras *ras);

struct ifaddrs;

/* Mark the ranks whose host is one of these addresses. */
void ddp_ras_mark(struct ddp_ras *ras, const struct ifaddrs *own);

/*
 * Finds the user who listens at a port where the node itself reaches it: at
 * 127.0.0.1, or ::1 if six. text is that of /proc/net/tcp or tcp6, and may be
 * NULL. The kernel lets only one user listen at an address, so the first is
 * told. Returns 0; -1 if the text has nobody.
 */
int ddp_ras_find_owner(const char *text, bool six, uint16_t port, uid_t *owner);

/* Returns true if a rank that both have has launched something in between. */
bool ddp_ras_rises(const struct ddp_ras *before, const struct ddp_ras *now);

#endif
