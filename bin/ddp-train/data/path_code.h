/* SPDX-License-Identifier: BSD-3-Clause */
/* Chooses the error code, and so the exit code, for a file of the user's. */
#ifndef DDP_TRAIN_PATH_CODE_H
#define DDP_TRAIN_PATH_CODE_H

#include <errno.h>

#include "util/error.h"

/*
 * The code for an errno of a path: DDP_ERROR_ARGUMENT where another attempt
 * would fail alike, as there is no such file or it may not be used; else
 * DDP_ERROR_SYSTEM.
 */
static inline enum ddp_error_code find_path_code(int cause)
{
	switch (cause) {
	case ENOENT:
	case ENOTDIR:
	case EISDIR:
	case ELOOP:
	case ENAMETOOLONG:
	case EACCES:
	case EPERM:
	case EROFS:
		return DDP_ERROR_ARGUMENT;
	default:
		return DDP_ERROR_SYSTEM;
	}
}

#endif
