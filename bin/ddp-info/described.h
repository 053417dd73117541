/* SPDX-License-Identifier: BSD-3-Clause */
/* The nodes that ddp-info's options describe, read. */
#ifndef DDP_INFO_DESCRIBED_H
#define DDP_INFO_DESCRIBED_H

#include "info.h"
#include "layout/hostlist.h"
#include "layout/layout.h"
#include "place/views.h"
#include "topo/topo.h"

struct described {
	const struct options *options;
	struct ddp_topo *topo;
	struct ddp_machine *machine;
	struct ddp_hostlist *hosts;
	uint32_t *tasks;		/* of each host */
	struct ddp_layout *layout;
	struct ddp_cpuset *masks;	/* by local rank; one: for all */
	struct ddp_view *views;		/* likewise */
	uint32_t (*indexes)[DDP_GPU_MAX];	/* of the views' GPUs in all */
	uint32_t mask_count, view_count;
	struct ddp_view all;
};

/*
 * Returns 0, or -1 with error set; call described_clear in either case. The
 * options are borrowed.
 */
int described_read(struct described *in, const struct options *options,
		   struct ddp_error *error);
void described_clear(struct described *in);

#endif
