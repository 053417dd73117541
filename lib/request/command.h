/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The programs that a command runs, as far as its words tell: behind those that
 * run another, such as env, timeout or apptainer exec, in bash -c, and in shell
 * scripts, which the caller reads. Nothing is run or expanded.
 */
#ifndef DDP_REQUEST_COMMAND_H
#define DDP_REQUEST_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

/* Words that are left to look at. */
struct ddp_words {
	char *const *at;
	size_t count;
};

/* Leave out the first count words, or all if there are no more. */
void ddp_words_skip(struct ddp_words *words, size_t count);

/* A command's name without its folder. */
const char *ddp_command_base(const char *command);

/* Returns whether a program of this name, without its folder, is a shell. */
bool ddp_command_is_shell(const char *name);

/*
 * Returns true if a command, whose words end with NULL, begins with a program that
 * puts another into a container, as far as its words tell: no script is read.
 */
bool ddp_command_is_contained(char *const *command);

/* This says where a program stands. */
struct ddp_place {
	const char *file;		/* the script; NULL: none was read */
	unsigned int line;		/* in it, from 1 */
	unsigned int choice, branch;	/* as those of struct ddp_script, and
					 * different in different scripts */
};

/*
 * A program and its arguments; both are gone afterwards. Returns whether the
 * program is known: its file is not read then, though it may be a script, as a
 * torchrun in a folder with a long name is.
 */
typedef bool (*ddp_command_fn)(const struct ddp_words *words,
			       const struct ddp_place *place, void *data);

/*
 * The text of a shell script, which is the caller's to free. NULL: the file of
 * this name is none, or nobody can read it. A shell runs it if shell is true,
 * whatever its first line says.
 */
typedef char *(*ddp_command_read_fn)(const char *name, bool shell);

/*
 * Call for each program that a command runs, whose words end with NULL, in the
 * order in which they are written. With read (NULL: not) also for those in the
 * scripts that it runs. These are not looked for by a relative name where the
 * script has changed its folder before.
 */
void ddp_command_visit(char *const *command, ddp_command_read_fn read,
		       ddp_command_fn call, void *data);

#endif
