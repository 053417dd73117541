/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions that the parsers share. */
#ifndef DDP_UTIL_SCAN_H
#define DDP_UTIL_SCAN_H

#include <stddef.h>
#include <stdint.h>

#include "util/error.h"

enum { DDP_SCAN_DIGITS_MAX = 18 };	/* so that sums fit into 64 bits */

/*
 * Read the decimal digits at *at and move *at past them. Returns 0, or -1 with
 * *at and *value unchanged. It fails if there is no digit, if there are more
 * than DDP_SCAN_DIGITS_MAX (leading zeros included), or if the number is not
 * from min to max.
 */
int ddp_scan_number(const char **at, uint64_t min, uint64_t max,
		    uint64_t *value);

/*
 * The same for the whole of an environment variable. Returns 1 with *value
 * unchanged if it is not set.
 */
int ddp_scan_variable(const char *name, uint64_t min, uint64_t max,
		      uint64_t *value);

/*
 * The known name that is nearest to a text, by the letters to change, add,
 * leave out or swap with the next: begin with { 0 }, and show it every name.
 * name stays NULL where none is like the text.
 */
struct ddp_scan_nearest {
	const char *name;
	size_t distance;
};
void ddp_scan_compare(struct ddp_scan_nearest *nearest, const char *text,
		      size_t length, const char *name);

/*
 * Returns the index of text in words, which end with NULL; -1 if it is not one
 * of them, with the error "WHAT 'TEXT' is not one of A, B; did you mean B".
 */
int ddp_scan_word(const char *what, const char *text, const char *const *words,
		  struct ddp_error *error);

/*
 * Report that text is malformed at at, a pointer into it:
 * "WHAT 'TEXT', byte N: expected EXPECTED". Of a long text only the part around
 * at is quoted. Returns -1.
 */
int ddp_scan_error(struct ddp_error *error, const char *what, const char *text,
		   const char *at, const char *expected, ...)
	__attribute__((format(printf, 5, 6)));

#endif
