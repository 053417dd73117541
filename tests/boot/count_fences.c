/* SPDX-License-Identifier: BSD-3-Clause */
/* To be preloaded: says at the end how many PMIx fences a program began. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pmix.h>
#include <stdio.h>
#include <string.h>

static int count;

pmix_status_t PMIx_Fence_nb(const pmix_proc_t procs[], size_t nprocs,
			    const pmix_info_t info[], size_t ninfo,
			    pmix_op_cbfunc_t ended, void *data)
{
	pmix_status_t (*next)(const pmix_proc_t *procs, size_t nprocs,
			      const pmix_info_t *info, size_t ninfo,
			      pmix_op_cbfunc_t ended, void *data);
	void *symbol = dlsym(RTLD_NEXT, "PMIx_Fence_nb");

	count++;
	memcpy(&next, &symbol, sizeof(symbol));
	return next(procs, nprocs, info, ninfo, ended, data);
}

__attribute__((destructor)) static void say(void)
{
	printf("fences %d\n", count);
}
