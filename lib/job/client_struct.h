/* SPDX-License-Identifier: BSD-3-Clause */
/* The client from inside: what client.c and client_get.c share. */
#ifndef DDP_JOB_CLIENT_STRUCT_H
#define DDP_JOB_CLIENT_STRUCT_H

#include <pmix.h>
#include <sys/types.h>

#include "job/client.h"

struct ddp_client {
	pmix_proc_t self, all;
	pmix_info_t collect;		/* of the fence: carry the data */
	pid_t process;
	struct ddp_worker *worker;	/* for calls that wait for the server */
};

/* Each returns -1. */
int ddp_client_set_error(struct ddp_error *error, pmix_status_t status,
			 const char *what);
int ddp_client_set_memory_error(struct ddp_error *error);

#endif
