/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The commands of a shell script, as far as they can be told without running
 * it: nothing is expanded.
 */
#ifndef DDP_REQUEST_SHELL_WORDS_H
#define DDP_REQUEST_SHELL_WORDS_H

#include <stdbool.h>
#include <stddef.h>

enum {
	DDP_SCRIPT_DEPTH = 16,		/* if, case and { in each other */
	DDP_SCRIPT_DOCUMENTS = 4	/* here-documents of one line */
};

/*
 * The state of reading a script. Begin with a text in begin and at, the rest 0.
 */
struct ddp_script {
	const char *begin, *at;		/* all of it; what is left */
	unsigned int line;		/* from 1, on which the last command
					 * begins */
	/*
	 * Commands of one choice and of different branches exclude each other,
	 * as those of an if: an if or a case with all that is in it is one
	 * choice, and so are all functions together. What follows a test by
	 * "&&" or "||" is a choice of its own, and "||" begins a branch.
	 */
	unsigned int choice;		/* the last command's; 0: none */
	unsigned int branch;
	unsigned int choices, branches;	/* how many there were; they may begin
					 * at any number */

	/* For shell_words.c */
	const char *counted;		/* up to which lines are counted */
	unsigned int functions;		/* their choice; 0: none yet */
	char open[DDP_SCRIPT_DEPTH];	/* 'i', 'c', 'f', '{'; 'a': behind a
					 * test */
	size_t depth;
	struct {
		unsigned int choice, branch;
	} outer[DDP_SCRIPT_DEPTH];	/* those of an 'a's test */
	char end;			/* of the last command; see shell_words.c */
	bool tests;			/* the last command did */
	bool pattern;			/* of a case comes next */
	bool defines;			/* a function's body comes next */
	struct {
		const char *at;		/* what ends it */
		size_t length;
		bool tabs;		/* <<- */
	} documents[DDP_SCRIPT_DOCUMENTS];
	size_t document_count;
};

/*
 * Read the next simple command of a script, which ends at ";", "&", "|", a
 * parenthesis or a line's end. Its words, without their quotes, go to
 * words[max], of which only the first max are kept. Their text goes to the
 * buffer, which has as many bytes as what is left of the script and its NUL.
 * Left out are comments, here-documents, reserved words such as "then", the
 * patterns of a case and the names of functions that are defined; a $(...) or
 * `...` is part of its word, as it stands. Returns how many words there are,
 * which may be none; -1 at the script's end.
 */
int ddp_words_next(struct ddp_script *script, char *buffer, char **words,
		   size_t max);

/*
 * Returns true if a word is among the options that sbatch takes from a script:
 * those of its lines that begin with "#SBATCH", up to the first command.
 */
bool ddp_words_sbatch(const char *script, const char *word);

#endif
