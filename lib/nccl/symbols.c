/* SPDX-License-Identifier: BSD-3-Clause */
/* The one loader of function tables: of NCCL, and of the CUDA driver. */
#include "nccl/symbols.h"

#include <dlfcn.h>
#include <string.h>

const char *ddp_symbols_find(void *handle, const struct ddp_symbol *symbols,
			     size_t count)
{
	const char *missing = NULL;
	void *address;
	size_t i;

	for (i = 0; i < count; i++) {
		address = dlsym(handle, symbols[i].name);
		/* ISO C does not let a void * become a function pointer. */
		if (address)
			memcpy(symbols[i].function, &address, sizeof(address));
		else if (!missing && !symbols[i].optional)
			missing = symbols[i].name;
	}
	return missing;
}
