/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The programs in bin/ share this folder; nothing else links it, and it is not
 * installed. Start here: these are the standard streams and the files that a
 * program writes. option.h reads command lines by a table. ranks.h compares the
 * ranks with what the launcher promised, and makes an error of one rank that of
 * all. mpi_private.h begins and ends MPI.
 */
#ifndef DDP_TOOL_TOOL_H
#define DDP_TOOL_TOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "util/error.h"

/*
 * Call it first in main(). Standard streams that are closed are opened on
 * /dev/null, so that no file which is opened later takes their place. A file
 * that may not grow (ulimit -f) makes a write fail, rather than end the
 * program by SIGXFSZ.
 */
void tool_start(void);

/*
 * Write out what was printed. Returns 0, or -1 with error set if any of it
 * since the start could not be written.
 */
int tool_flush(struct ddp_error *error);

/* Print and free text; NULL is a lack of memory, and an error. */
int tool_print_text(char *text, struct ddp_error *error);

/*
 * Returns true if the file is to have colour: it is a terminal, which the
 * variable TERM does not call dumb, and NO_COLOR is not set, or is empty.
 */
bool tool_has_colour(FILE *file);

/* Print "PROGRAM: what is wrong" on stderr. */
void tool_print_error(const char *program, const struct ddp_error *error);

/*
 * Write why this process ends to the file that TORCHELASTIC_ERROR_FILE names,
 * if it does, as @record writes it (see util/failure.h). Does nothing if that
 * cannot be written, as it is said elsewhere, too.
 */
void tool_record_failure(const char *message);

/* Print a string as JSON's, in quotation marks. */
void tool_print_json(FILE *file, const char *string);

/*
 * Write text[length] to a file in one piece: beside it first, under a name
 * that nobody can guess, then in place of it. A file that is there stays as it
 * is if that fails. option names the file in messages, as "--draw". Returns 0,
 * or -1 with error set, also if path is there and no regular file.
 */
int tool_replace_file(const char *option, const char *path, const char *text,
		      size_t length, struct ddp_error *error);

/*
 * Open a file to add lines to. A pipe or a terminal will do as well, but this
 * never waits for a pipe's reader: a pipe without one is an error. Returns
 * NULL with error set, or the file for the caller to close. The error is
 * DDP_ERROR_ARGUMENT if it is one of the name, as where a folder has it, or may
 * not be written in.
 */
FILE *tool_open_log(const char *option, const char *path,
		    struct ddp_error *error);

#endif
