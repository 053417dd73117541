/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions of a library that is loaded at run time, by a table. */
#ifndef DDP_NCCL_SYMBOLS_H
#define DDP_NCCL_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>

struct ddp_symbol {
	const char *name;
	void *function;		/* address of the function pointer to set */
	bool optional;		/* the library may lack it: pointer unchanged */
};

/*
 * Set the function pointers of a table from a handle of dlopen. Where two
 * entries set the same pointer, the later one that the library has wins.
 * Returns NULL, or the name of the first entry that is missing.
 */
const char *ddp_symbols_find(void *handle, const struct ddp_symbol *symbols,
			     size_t count);

#endif
