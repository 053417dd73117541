/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What went wrong, as a code and one sentence.
 *
 * Every function that can fail takes a struct ddp_error last. NULL is
 * allowed and means that the caller does not want the text. On success it is
 * left as it was; on failure nothing but it has changed.
 */
#ifndef DDP_LAYOUT_ERROR_H
#define DDP_LAYOUT_ERROR_H

enum ddp_error_code {
	DDP_ERROR_NONE = 0,
	DDP_ERROR_ARGUMENT,	/* the input is wrong; text says where */
	DDP_ERROR_SYSTEM	/* the machine refused, such as for memory */
};

struct ddp_error {
	enum ddp_error_code code;
	char text[512];		/* one line, no newline at its end */
};

/*
 * Fill error (NULL: do nothing) from a printf format; text that is too long
 * is cut. Returns -1 always, so that callers can return its result.
 */
int ddp_error_set(struct ddp_error *error, enum ddp_error_code code,
		  const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
