/* SPDX-License-Identifier: BSD-3-Clause */
/* An option's value as text, between option.c and its two neighbours. */
#ifndef DDP_TOOL_OPTION_VALUE_H
#define DDP_TOOL_OPTION_VALUE_H

#include "tool/option.h"

/*
 * Set the row's field by its value, which may be NULL up to TOOL_FLAG. Returns
 * 0, or -1 with error set.
 */
int tool_option_set(const struct tool_option *row, const char *value,
		    void *options, struct ddp_error *error);

#endif
