/* SPDX-License-Identifier: BSD-3-Clause */
/* Looks up what moves data in the NCCL of this process. */
#define _GNU_SOURCE
#include "nccl/calls.h"

#include <dlfcn.h>

#include "nccl/symbols.h"

int ddp_nccl_find_calls(const struct ddp_nccl *nccl,
			struct ddp_nccl_calls *calls, struct ddp_error *error)
{
	const struct ddp_symbol symbols[] = {
		{ "ncclAllReduce", &calls->all_reduce, false },
		{ "ncclReduceScatter", &calls->reduce_scatter, false },
		{ "ncclAllGather", &calls->all_gather, false },
		{ "ncclBroadcast", &calls->broadcast, false },
		{ "ncclSend", &calls->send, false },
		{ "ncclRecv", &calls->receive, false },
		{ "ncclCommSplit", &calls->split, false },
		{ "ncclGroupStart", &calls->group_start, false },
		{ "ncclGroupEnd", &calls->group_end, false }
	};
	void *handle = dlopen(nccl->path, RTLD_NOW | RTLD_NOLOAD);
	const char *missing = symbols[0].name;

	if (handle)
		missing = ddp_symbols_find(handle, symbols, sizeof(symbols) /
							    sizeof(*symbols));
	if (missing)
		return ddp_error_set(error, DDP_ERROR_NCCL, "%s has no %s",
				     nccl->path, missing);
	return 0;
}
