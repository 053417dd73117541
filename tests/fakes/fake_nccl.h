/* SPDX-License-Identifier: BSD-3-Clause */
/* The fake NCCL from inside: what its two parts share. */
#ifndef DDP_TESTS_FAKE_NCCL_H
#define DDP_TESTS_FAKE_NCCL_H

#include <limits.h>

typedef struct {
	char internal[128];	/* "fake-HOST-PID-COUNT", zeros */
} ncclUniqueId;

/* ncclResult_t */
enum { SUCCESS, CUDA, SYSTEM, INTERNAL, ARGUMENT, USAGE, REMOTE, PROGRESS };

struct shared;

struct ncclComm {
	unsigned int magic;
	int size, rank, id_count;
	ncclUniqueId *ids;
	int met, state;
	long start, finalized;
	int calls;			/* that moved data, and were not asked
					 * for since */
	struct shared *shared;		/* NULL until data is moved */
};

/* The path of a file of a communicator; "": its folder. */
void fake_format_path(char path[PATH_MAX], const ncclUniqueId *id,
		      const char *name);

/* What ncclGroupEnd has to do for ncclRecv. */
int fake_end_group(void);

void fake_unmap(struct ncclComm *comm);

#endif
