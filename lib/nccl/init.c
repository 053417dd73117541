/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes one communicator from its unique ids. */
#include "nccl/init.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nccl/await.h"

enum {
	CONFIG_SIZE = offsetof(ncclConfig_t, blocking) + sizeof(int),
	CONFIG_LARGEST = 65536
};

ncclConfig_t *ddp_init_copy_config(const ncclConfig_t *config,
				   struct ddp_error *error)
{
	static const ncclConfig_t least = {
		.size = CONFIG_SIZE, .magic = DDP_NCCL_CONFIG_MAGIC,
		.version = DDP_NCCL_CONFIG_VERSION
	};
	ncclConfig_t *copy;
	size_t size;

	if (!config)
		config = &least;
	size = config->size;
	if (config->magic != DDP_NCCL_CONFIG_MAGIC ||
	    config->version < DDP_NCCL_CONFIG_VERSION ||
	    size < CONFIG_SIZE || size > CONFIG_LARGEST) {
		ddp_error_set(error, DDP_ERROR_ARGUMENT, "the config is not "
			      "valid: set it to NCCL_CONFIG_INITIALIZER first");
		return NULL;
	}
	copy = calloc(1, size > sizeof(*copy) ? size : sizeof(*copy));
	if (!copy) {
		ddp_error_set(error, DDP_ERROR_SYSTEM,
			      "out of memory for a config");
		return NULL;
	}
	memcpy(copy, config, size);
	copy->blocking = 0;
	return copy;
}

static int start_comm(const struct ddp_nccl *nccl,
		      const struct ddp_roster *roster, ncclUniqueId *ids,
		      ncclConfig_t *config, ncclComm_t *comm)
{
	int size = (int)roster->size, rank = (int)roster->rank;

	if (roster->root_count > 1)
		return nccl->init_scalable(comm, size, rank,
					   (int)roster->root_count, ids,
					   config);
	return nccl->init_rank(comm, size, ids[0], rank, config);
}

int ddp_init_comm(const struct ddp_nccl *nccl, const struct ddp_roster *roster,
		  ncclUniqueId *ids, ncclConfig_t *config, const char *name,
		  int64_t deadline, ncclComm_t *comm, struct ddp_error *error)
{
	char what[96];
	int result;

	snprintf(what, sizeof(what), "the initialisation of the %s "
		 "communicator of %u rank%s", name, roster->size,
		 roster->size > 1 ? "s" : "");
	*comm = NULL;
	ddp_nccl_note_use();
	result = start_comm(nccl, roster, ids, config, comm);
	if (result != DDP_NCCL_SUCCESS && result != DDP_NCCL_IN_PROGRESS)
		ddp_nccl_set_error(error, nccl, what, result);
	else
		result = ddp_await_comm(nccl, *comm, what, deadline, error);
	if (result == 0)
		return 0;
	/*
	 * If cudaGetDevice fails, NCCL returns inside a group that it has
	 * opened, and later calls of this thread would become part of it. So
	 * close it; after another error this call does nothing.
	 */
	if (result == DDP_NCCL_CUDA_ERROR && !*comm)
		nccl->group_end();
	return -1;
}
