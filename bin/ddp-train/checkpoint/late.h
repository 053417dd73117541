/* SPDX-License-Identifier: BSD-3-Clause */
/* A wait for what comes late: a file of another node, the end of a run. */
#ifndef DDP_TRAIN_LATE_H
#define DDP_TRAIN_LATE_H

#include <stdbool.h>

enum { LATE_SECONDS = 10 };

struct late {
	double begun;			/* 0: at the first call */
};

/* Wait a tenth of a second; false, at once, after LATE_SECONDS. */
bool late_wait(struct late *late);

#endif
