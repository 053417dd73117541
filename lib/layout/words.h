/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The commands of a shell script, as far as they can be told without running
 * it: nothing is expanded.
 */
#ifndef DDP_LAYOUT_WORDS_H
#define DDP_LAYOUT_WORDS_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Read the next simple command of a script, which ends at ";", "&", "|", a
 * parenthesis or a line's end, and move *at past it. Its words, without their
 * quotes, go to words[max], of which only the first max are kept, and their
 * text to the buffer, which has as many bytes as the script and its NUL.
 * Comments are left out; a $(...) or `...` is part of its word, as it stands.
 * Returns how many words there are, which may be none; -1 at the script's end.
 */
int ddp_words_next(const char **at, char *buffer, char **words, size_t max);

/*
 * Whether a word is among the options that sbatch takes from a script: those of
 * its lines that begin with "#SBATCH", up to the first command.
 */
bool ddp_words_sbatch(const char *script, const char *word);

#endif
