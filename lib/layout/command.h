/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The programs that a command runs, as far as its words tell: behind those that
 * run another, such as env, timeout or apptainer exec, and in bash -c. Nothing
 * is run, expanded or looked up.
 */
#ifndef DDP_LAYOUT_COMMAND_H
#define DDP_LAYOUT_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

/* Words that are left to look at. */
struct ddp_words {
	char *const *at;
	size_t count;
};

/* Leave out the first count words, or all if there are no more. */
void ddp_words_skip(struct ddp_words *words, size_t count);

/* Whether the second word is this one; NULL: any, or none. */
bool ddp_words_has_sub(const struct ddp_words *words, const char *sub);

/* A command's name without its folder. */
const char *ddp_command_base(const char *command);

/* A program and its arguments, which are gone afterwards; true: look no
 * further. */
typedef bool (*ddp_command_fn)(const struct ddp_words *words, void *data);

/*
 * Call for each program that a command runs, whose words end with NULL, in the
 * order in which they are written. Returns whether a call returned true.
 */
bool ddp_command_visit(char *const *command, ddp_command_fn call, void *data);

#endif
