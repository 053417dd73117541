/* SPDX-License-Identifier: BSD-3-Clause */
/* The device that a test's argument names. */
#ifndef DDP_TEST_LOAD_TABLE_H
#define DDP_TEST_LOAD_TABLE_H

#include <dlfcn.h>
#include <string.h>

#include "device.h"

/* Not in a program that was built without an engine for its products. */
extern const struct device_table device_cpu __attribute__((weak));

/*
 * The table of a module such as ddp_cuda.so, or of "cpu". NULL with *why set if
 * it cannot be loaded; a module stays loaded.
 */
static inline const struct device_table *load_table(const char *module,
						    const char **why)
{
	const struct device_table *table = &device_cpu;

	if (strcmp(module, "cpu") != 0) {
		void *library = dlopen(module, RTLD_NOW | RTLD_LOCAL);

		table = library ? dlsym(library, "ddp_device_table") : NULL;
	}
	if (table && table->abi == DEVICE_ABI)
		return table;
	*why = table ? "another ABI" : strcmp(module, "cpu") == 0 ?
	       "no device of CPUs is here: name a module" : dlerror();
	return NULL;
}

#endif
