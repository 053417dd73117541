/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lib/util has what every other folder needs and libc lacks: errors, text, the
 * reading of numbers, private files, the clock. It uses libc alone.
 *
 * Here: how errors are reported, which are those of the public headers.
 */
#ifndef DDP_UTIL_ERROR_H
#define DDP_UTIL_ERROR_H

#include "ddp_error.h"

/*
 * Fill error (NULL: do nothing) from a printf format; text that is too long is
 * cut, what is not printable in it becomes '?' (see ddp_text_quote), and native
 * is 0. Returns -1 always, so that callers can return its result.
 */
int ddp_error_set(struct ddp_error *error, enum ddp_error_code code,
		  const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Set the native code of an error (NULL: do nothing) that ddp_error_set has
 * filled. Returns -1 always. */
int ddp_error_set_native(struct ddp_error *error, int native);

#endif
