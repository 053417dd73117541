/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Nodes that have not begun their tasks a while after srun has launched them:
 * where their slurmds listen, and when such a node is lost. What still runs its
 * prolog accepts a connection, so one is made in each round; whose slurmd
 * accepts none in so many rounds is lost. Pure: the supervisor asks Slurm, and
 * makes the connections.
 */
#ifndef DDP_SUPERVISOR_LATE_H
#define DDP_SUPERVISOR_LATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

enum {
	DDP_LATE_ROUND_MS = 1200,	/* for a connection, which Linux tries
					 * once more after a second */
	DDP_LATE_FAILED = 5,	/* so many in a row, and the node is lost */
	DDP_LATE_ALONE = 24,	/* the same, if no slurmd at all answers */
	DDP_LATE_EVERY = 3,	/* rounds; slurmd's log has a line for each */
	DDP_LATE_AT_ONCE = 128	/* connections */
};

struct ddp_late_node {
	char *name;
	struct sockaddr_storage address;	/* of its slurmd */
	socklen_t length;
	bool here;		/* it has begun, or is not asked for: it shows
				 * who can be reached */
	bool answered;		/* it has, since the launch */
	bool told;		/* the user knows that it does not */
	int fd;			/* a connection to it; -1: none */
	int cause;		/* errno, if that failed at once */
	uint32_t failed;	/* connections in a row */
};

/* Zeros are the beginning. */
struct ddp_late {
	struct ddp_late_node *all;	/* those of the step; count of them */
	size_t count;
	bool reached;		/* a slurmd has answered: this host can reach
				 * them */
	int64_t next_ns;	/* when the next round is due */
	uint32_t round;
	size_t first;		/* whose turn it is */
};

/*
 * Take the nodes of a whole answer: lines "NAME ADDRESS PORT", with numbers, and
 * "end", without which a part is missing. What is no such line is left out.
 * Changes answer. Returns how many there are; 0: none are known.
 */
size_t ddp_late_read(struct ddp_late *late, char *answer);
void ddp_late_clear(struct ddp_late *late);

/*
 * A round: whose slurmds are tried now, as indexes in chosen, which has room for
 * most. Those that have failed come first, in each round; others more rarely.
 * Returns how many; 0 also where no round is due.
 */
size_t ddp_late_choose(struct ddp_late *late, int64_t now_ns, size_t most,
		       size_t *chosen);

/*
 * What has become of a connection: it was accepted, or not by now. cause: errno
 * of one that has failed; 0: nobody has answered.
 */
void ddp_late_take(struct ddp_late *late, struct ddp_late_node *node,
		   bool accepted, int cause);

/* Whether the node is lost. */
bool ddp_late_is_lost(const struct ddp_late *late,
		      const struct ddp_late_node *node);

#endif
