/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The file in which PyTorch's @record writes the exception that ends a program
 * (torch/distributed/elastic/multiprocessing/errors): JSON, which begins with
 *
 *	{"message": {"message": "ValueError: bad batch", ...
 *
 * or, by other programs than Python's, {"message": "bad batch", ...
 */
#ifndef DDP_UTIL_FAILURE_H
#define DDP_UTIL_FAILURE_H


enum { DDP_FAILURE_SIZE = 256 };	/* holds a message and its NUL */

/*
 * Find the message in a file's text, which may be cut, and copy its first line,
 * which is printable (see ddp_text_quote); what has no room ends in "...".
 * Returns 0; -1 if the text does not begin so, or the line is empty.
 */
int ddp_failure_parse(const char *text, char message[DDP_FAILURE_SIZE]);

#endif
