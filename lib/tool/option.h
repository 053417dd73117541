/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The options of a program, a row each: what makes --help, reads the command
 * line, and tells the ranks' options apart. An option is written --name VALUE,
 * --name=VALUE, shorter where only one name begins so, or by its letter, -b 8
 * or -b8.
 */
#ifndef DDP_TOOL_OPTION_H
#define DDP_TOOL_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/error.h"

enum { TOOL_LIST_MAX = 64 };

/* The field of TOOL_HELP. */
enum tool_help { TOOL_HELP_NONE, TOOL_HELP_USUAL, TOOL_HELP_ALL };

/* The values of an option that may be given again. */
struct tool_list {
	const char *texts[TOOL_LIST_MAX];
	uint32_t count;
};

/* The kind of an option: what follows it, and the field that it sets. */
enum tool_kind {
	TOOL_ASK,		/* nothing: bool; what follows is not read */
	TOOL_HELP,		/* nothing or "all": enum tool_help; likewise */
	TOOL_FLAG,		/* nothing: bool */
	TOOL_SWITCH,		/* off or on: bool */
	TOOL_CHOICE,		/* one of words: an enum in their order */
	TOOL_TEXT,		/* not empty, and unless the row is own without
				   control characters: const char * */
	TOOL_LIST,		/* any text, once more each time: tool_list */
	TOOL_WHOLE,		/* min to max: uint64_t */
	TOOL_SIZE,		/* 1 to 2^40, also as 8K, 64M or 1G: uint64_t */
	TOOL_REAL,		/* 0 or more: double */
	TOOL_POSITIVE,		/* above 0: double */
	TOOL_FRACTION,		/* 0 to below 1: double */
	TOOL_MIB		/* of 2^20 bytes, rounded up to whole ones:
				   uint64_t */
};

struct tool_option {
	const char *name;
	enum tool_kind kind;
	size_t field;			/* its offset in the options */
	uint64_t min, max;		/* TOOL_WHOLE's */
	unsigned mark;			/* the program's own */
	const char *value;		/* for --help; of a choice NULL: its
					   words */
	const char *help;		/* lines of up to 50 columns */
	char letter;			/* 0: none */
	bool own;			/* need not be the same on all ranks */
	bool rare;			/* only in --help all */
	const char *heading;		/* begins a group of --help; NULL: it
					   belongs to the one before */
	const char *const *words;	/* of a choice; ends with NULL */
};

#define TOOL_WORDS(...) ((const char *const[]){ __VA_ARGS__, NULL })

struct tool_options {
	const char *program, *usage;
	const struct tool_option *rows;
	unsigned count;			/* of rows, at most 64 */
	const char *stray;		/* what to do about an argument that is
					   no option */
};

/*
 * Set the fields of options that the arguments give, and bit i of *given (NULL:
 * not wanted) for row i. Texts are borrowed from argv. Returns 0, or -1 with
 * error set to the first thing that is wrong; the rest is read all the same.
 */
int tool_options_parse(const struct tool_options *table, int argc, char **argv,
		       void *options, uint64_t *given,
		       struct ddp_error *error);

/*
 * The options that must be the same on all ranks, as lines "--name value" in
 * the order of the rows, into text[size]: a flag is on or off, what was left
 * open is "-", and numbers read back exactly. Returns their length, or size
 * where text is too small for them.
 */
size_t tool_options_describe(const struct tool_options *table,
			     const void *options, char *text, size_t size);

/*
 * Set the fields of options by such lines, but for rows whose bits are in
 * `but`, and the bits of the others in *recalled. An option that the table does
 * not have is left out. lines are cut up, and texts borrowed from them. Returns
 * 0, or -1 with error set to the first value that is wrong.
 */
int tool_options_recall(const struct tool_options *table, char *lines,
			uint64_t but, void *options, uint64_t *recalled,
			struct ddp_error *error);

/*
 * Print the text of --help, the usual options or all of them, or without help
 * the version. Returns the exit status, with a message on stderr if it is not
 * 0.
 */
int tool_options_answer(const struct tool_options *table, enum tool_help help);

#endif
