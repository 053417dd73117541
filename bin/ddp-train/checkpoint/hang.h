/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds a save that no longer goes on, as its file system does not answer. */
#ifndef DDP_TRAIN_HANG_H
#define DDP_TRAIN_HANG_H

#include <stdbool.h>

struct collective;
struct writer;

struct hang {
	double clock;			/* of the last look; 0: none */
	double waited;			/* seconds without progress */
};

/*
 * Look at the writer, often. If its job has made no progress for as long as
 * --timeout says, ends all ranks with a sentence that names this one and the
 * file. Time in which this process was stopped does not count.
 */
void hang_look(struct hang *hang, struct writer *writer, bool grown,
	       struct collective *collective);

#endif
