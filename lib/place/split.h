/* SPDX-License-Identifier: BSD-3-Clause */
/* CPUs, dealt out fairly to ranks that want some of the same ones. */
#ifndef DDP_PLACE_SPLIT_H
#define DDP_PLACE_SPLIT_H

#include <stdint.h>

#include "place/cpuset.h"
#include "place/machine.h"
#include "util/error.h"

enum ddp_split {
	DDP_SPLIT_CORES,	/* whole cores, as far as it wants them */
	DDP_SPLIT_THREADS,	/* threads: fewer cores than ranks */
	DDP_SPLIT_SHARED	/* also another rank's: fewer CPUs than ranks */
};

/*
 * Give each of count ranks some of the CPUs of want[rank], at least one.
 *
 * If every rank can have a core, no core is given to two ranks. Otherwise,
 * among the ranks that compete with one that cannot, no CPU is. Otherwise a
 * rank for which none is left shares a CPU with another.
 *
 * The smallest number that a rank gets is as high as it can be, then the second
 * smallest, and so on; the first ranks have a core more where it does not come
 * out even. Within that, ranks get what is in their like rather than what is
 * not, as far as swaps between two can bring it about; then neighbours.
 *
 * Each want must hold a CPU of the machine's; others are ignored. Writes get
 * and how of each rank. Returns 0, or -1 if memory is short.
 */
int ddp_split(const struct ddp_machine *machine, uint32_t count,
	      const struct ddp_cpuset *want, const struct ddp_cpuset *like,
	      struct ddp_cpuset *get, enum ddp_split *how,
	      struct ddp_error *error);

#endif
