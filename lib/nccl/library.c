/* SPDX-License-Identifier: BSD-3-Clause */
/* Looks up the NCCL of this process. */
#define _GNU_SOURCE
#include "nccl/nccl.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nccl/driver.h"

enum { PATH_SHOWN = 90 };	/* of its end; two fit in the text of a card */

/* The one NCCL of this process, for all jobs and threads. */
static struct {
	pthread_mutex_t lock;
	void *handle;			/* NULL: not looked up yet */
	char path[PATH_MAX];
	struct ddp_nccl table;
	bool used;			/* it has read NCCL_HOSTID */
	bool shares;			/* NCCL_HOSTID is set for share_gpu */
} nccl = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* ---- the copies in the process */

struct copies {
	unsigned int count;
	char path[2][PATH_MAX];
};

static int add_copy(struct dl_phdr_info *info, size_t size, void *data)
{
	const char *name = strrchr(info->dlpi_name, '/');
	struct copies *copies = data;

	(void)size;
	name = name ? name + 1 : info->dlpi_name;
	if ((strncmp(name, "libnccl.so", 10) != 0 &&
	     strncmp(name, "librccl.so", 10) != 0) ||
	    (name[10] != '\0' && name[10] != '.'))
		return 0;
	if (copies->count < 2)
		snprintf(copies->path[copies->count], PATH_MAX, "%s",
			 info->dlpi_name);
	copies->count++;
	return 0;
}

/*
 * Add an NCCL that is not a libnccl.so: in a program that was linked with
 * libnccl_static.a -rdynamic, or in another library that was loaded with
 * RTLD_GLOBAL. If there is a libnccl.so too, only another library counts: in
 * the program the symbol can be an entry of its own PLT.
 */
static void add_inside(struct copies *copies)
{
	void *symbol = dlsym(RTLD_DEFAULT, "ncclGetUniqueId"), *map = NULL;
	const char *path;
	Dl_info info;

	if (!symbol || dladdr1(symbol, &info, &map, RTLD_DL_LINKMAP) == 0)
		return;
	path = ((const struct link_map *)map)->l_name;
	if (copies->count == 0)
		path = info.dli_fname;
	else if (*path == '\0' || strcmp(path, copies->path[0]) == 0)
		return;
	snprintf(copies->path[copies->count++], PATH_MAX, "%s", path);
}

static void find_copies(struct copies *copies)
{
	copies->count = 0;
	dl_iterate_phdr(add_copy, copies);
	if (copies->count < 2)
		add_inside(copies);
}

static const char *get_path_end(const char *path)
{
	size_t length = strlen(path);

	return length > PATH_SHOWN ? path + length - PATH_SHOWN : path;
}

static int check_copies(const struct copies *copies, struct ddp_error *error)
{
	const char *a, *b;

	if (copies->count < 2)
		return 0;
	a = get_path_end(copies->path[0]);
	b = get_path_end(copies->path[1]);
	return ddp_error_set(error, DDP_ERROR_NCCL,
			     "two copies of NCCL are in one process, %s%s and "
			     "%s%s: use only one of them",
			     a > copies->path[0] ? "..." : "", a,
			     b > copies->path[1] ? "..." : "", b);
}

/* ---- the table */

/*
 * AMD's RCCL has the same names, types and versions (rccl.h of ROCm). It is taken
 * where there is no CUDA driver, even if an NCCL is installed.
 */
static void *open_any(struct ddp_error *error)
{
	bool amd = ddp_driver_load("", "", NULL) > 0;
	void *handle = NULL;

	if (amd)
		handle = dlopen("librccl.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!handle)
		handle = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
	if (!handle)
		ddp_error_set(error, DDP_ERROR_NCCL, "no NCCL: %.180s%s: set "
			      "DDP_NCCL_LIBRARY to its path", dlerror(),
			      amd ? "; nor can librccl.so.1 be loaded" : "");
	return handle;
}

static void *open_handle(const struct copies *copies, struct ddp_error *error)
{
	const char *named = getenv("DDP_NCCL_LIBRARY");
	void *handle;

	if (copies->count > 0) {
		handle = dlopen(copies->path[0], RTLD_NOW | RTLD_NOLOAD);
		/* The program itself has no name: NULL opens it. */
		return handle ? handle : dlopen(NULL, RTLD_NOW);
	}
	if (!named || *named == '\0')
		return open_any(error);
	handle = dlopen(named, RTLD_NOW | RTLD_LOCAL);
	if (!handle)
		ddp_error_set(error, DDP_ERROR_NCCL, "no NCCL: %.180s: set "
			      "DDP_NCCL_LIBRARY to the right path", dlerror());
	return handle;
}

static const char *fill_table(struct ddp_nccl *table, void *handle)
{
	const struct ddp_symbol symbols[] = {
		{ "ncclGetVersion", &table->get_version, false },
		{ "ncclGetUniqueId", &table->get_unique_id, false },
		{ "ncclCommInitRankConfig", &table->init_rank, false },
		{ "ncclCommInitRankScalable", &table->init_scalable, true },
		{ "ncclCommGetAsyncError", &table->get_async_error, false },
		{ "ncclCommCount", &table->count, false },
		{ "ncclCommFinalize", &table->finalize, false },
		{ "ncclCommDestroy", &table->destroy, false },
		{ "ncclCommAbort", &table->abort, false },
		{ "ncclGroupEnd", &table->group_end, false },
		{ "ncclGetErrorString", &table->get_error_string, false },
		{ "ncclGetLastError", &table->get_last_error, false },
	};

	return ddp_symbols_find(handle, symbols,
				sizeof(symbols) / sizeof(symbols[0]));
}

static int check_table(struct ddp_nccl *table, void *handle,
		       struct ddp_error *error)
{
	const char *missing = fill_table(table, handle);
	int v = 0;

	if (table->get_version && table->get_version(&v) == 0 &&
	    v < DDP_NCCL_OLDEST)
		return ddp_error_set(error, DDP_ERROR_NCCL,
				     "%.200s is NCCL %d.%d.%d: use 2.18 or "
				     "later", table->path,
				     v / 10000, v / 100 % 100, v % 100);
	if (missing)
		return ddp_error_set(error, DDP_ERROR_NCCL,
				     "%.200s is no NCCL: it has no %s",
				     table->path, missing);
	table->version = v;
	return 0;
}

static void find_path(void *handle, const struct copies *copies)
{
	struct link_map *map = NULL;

	if (copies->count == 0 && dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0)
		snprintf(nccl.path, sizeof(nccl.path), "%s", map->l_name);
	else
		snprintf(nccl.path, sizeof(nccl.path), "%s", copies->path[0]);
}

static int look_up(const struct copies *copies, struct ddp_error *error)
{
	void *handle = open_handle(copies, error);

	if (!handle)
		return -1;
	find_path(handle, copies);
	nccl.table = (struct ddp_nccl){ .path = nccl.path };
	if (check_table(&nccl.table, handle, error) != 0) {
		dlclose(handle);
		return -1;
	}
	nccl.handle = handle;
	return 0;
}

const struct ddp_nccl *ddp_nccl_get(struct ddp_error *error)
{
	struct copies copies;
	int result;

	pthread_mutex_lock(&nccl.lock);
	find_copies(&copies);
	result = check_copies(&copies, error);
	if (result == 0 && !nccl.handle)
		result = look_up(&copies, error);
	pthread_mutex_unlock(&nccl.lock);
	return result == 0 ? &nccl.table : NULL;
}

const char *ddp_nccl_library(int *version, struct ddp_error *error)
{
	const struct ddp_nccl *found = ddp_nccl_get(error);

	if (!found)
		return NULL;
	if (version)
		*version = found->version;
	return found->path;
}

/* ---- its errors, ids and environment */

int ddp_nccl_set_error(struct ddp_error *error, const struct ddp_nccl *found,
		       const char *call, int result)
{
	const char *last = found->get_last_error(NULL);
	int v = found->version;

	if (!last)
		last = "";
	ddp_error_set(error, DDP_ERROR_NCCL,
		      "NCCL %d.%d.%d, in %s: %s%s%.120s%s", v / 10000,
		      v / 100 % 100, v % 100, call,
		      found->get_error_string(result),
		      *last != '\0' ? " (" : "", last,
		      *last != '\0' ? ")" : "");
	return ddp_error_set_native(error, result);
}

void ddp_nccl_note_use(void)
{
	pthread_mutex_lock(&nccl.lock);
	nccl.used = true;
	pthread_mutex_unlock(&nccl.lock);
}

int ddp_nccl_share_gpu(uint32_t rank, struct ddp_error *error)
{
	char text[32];
	int result = 0;

	pthread_mutex_lock(&nccl.lock);
	if (!nccl.shares && nccl.used) {
		result = ddp_error_set(error, DDP_ERROR_ARGUMENT,
				       "share_gpu came after the first "
				       "communicator, which read NCCL_HOSTID: "
				       "set it for the first one");
	} else if (!nccl.shares) {
		snprintf(text, sizeof(text), "ddp-rank-%u", rank);
		setenv("NCCL_HOSTID", text, 0);
		nccl.shares = true;
	}
	pthread_mutex_unlock(&nccl.lock);
	return result;
}

/* ---- what moves data */

/* The lock is not needed, as found is proof that the handle stays. */
int ddp_nccl_find_calls(const struct ddp_nccl *found,
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
	const char *missing = ddp_symbols_find(nccl.handle, symbols,
				sizeof(symbols) / sizeof(symbols[0]));

	if (missing)
		return ddp_error_set(error, DDP_ERROR_NCCL, "%s has no %s",
				     found->path, missing);
	return 0;
}
