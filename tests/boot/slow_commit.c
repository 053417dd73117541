/* SPDX-License-Identifier: BSD-3-Clause */
/* To be preloaded: a fake of a PMIx server that takes 5 s to take a record. */
#define _GNU_SOURCE
#include <pmix.h>
#include <unistd.h>

pmix_status_t PMIx_Commit(void)
{
	sleep(5);
	return PMIX_SUCCESS;
}
