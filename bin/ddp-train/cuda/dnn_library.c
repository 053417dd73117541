/* SPDX-License-Identifier: BSD-3-Clause */
/* Loads libcudnn, which the module is not linked with. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "cuda/dnn.h"
#include "util/error.h"

#define TEXT(number) #number
#define FILE_OF(major) "libcudnn.so." TEXT(major)
#define OR_OWN "or choose --attention own"

/*
 * 9.18: by cudnn-frontend, earlier ones have no deterministic backward pass on
 * Blackwell, and up to 9.15 a context that is not a multiple of 128 must be
 * masked beyond its end.
 */
enum { OLDEST = 90000 + 1800 };

static const char *find_functions(struct dnn_library *library, void *handle)
{
	const struct {
		const char *name;
		void *to;
	} functions[] = {
#define X(function) { #function, &library->function },
		DNN_FUNCTIONS(X)
#undef X
	};

	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
		void *function = dlsym(handle, functions[i].name);

		if (!function)
			return functions[i].name;
		*(void **)functions[i].to = function;
	}
	return NULL;
}

static int check_version(struct dnn_library *library, const char *path,
			 struct ddp_error *error)
{
	size_t version = library->cudnnGetVersion();

	snprintf(library->name, sizeof(library->name), "cuDNN %zu.%zu.%zu",
		 version / 10000, version / 100 % 100, version % 100);
	if (version >= OLDEST && version / 10000 == CUDNN_MAJOR)
		return 0;
	return ddp_error_set(error, DDP_ERROR_CUDA, "--attention cudnn: %s is "
			     "%s, and needed is %d.%d or a later one of %d: "
			     "install that, " OR_OWN, path, library->name,
			     OLDEST / 10000, OLDEST / 100 % 100, CUDNN_MAJOR);
}

int dnn_load(struct dnn_library *library, struct ddp_error *error)
{
	const char *named = getenv("DDP_CUDNN_LIBRARY");
	const char *path = named && *named ? named : FILE_OF(CUDNN_MAJOR);
	void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	const char *missing;

	if (!handle)
		return ddp_error_set(error, DDP_ERROR_CUDA, "--attention "
				     "cudnn: no cuDNN: %s; set "
				     "DDP_CUDNN_LIBRARY to %s path, " OR_OWN,
				     dlerror(),
				     path == named ? "the right" : "its");
	missing = find_functions(library, handle);
	if (missing)
		return ddp_error_set(error, DDP_ERROR_CUDA, "--attention "
				     "cudnn: %s is no cuDNN of release %d: it "
				     "has no %s; set DDP_CUDNN_LIBRARY to the "
				     "right path, " OR_OWN, path, CUDNN_MAJOR,
				     missing);
	return check_version(library, path, error);
}
