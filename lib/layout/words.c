/* SPDX-License-Identifier: BSD-3-Clause */
/* Splits a shell script into commands and words. */
#define _GNU_SOURCE
#include "layout/words.h"

#include <stdlib.h>
#include <string.h>

#define SBATCH "#SBATCH"

enum { WORDS_MAX = 256 };	/* of a part of a line for sbatch */

/* Where a script is read, and where its words are written. */
struct reader {
	const char *at;
	char *out;
};

static void copy(struct reader *reader)
{
	*reader->out++ = *reader->at++;
}

static bool begins_command(const char *at)
{
	return at[0] == '`' || (at[0] == '$' && at[1] == '(');
}

/* Copy a $(...) or `...` as it stands. */
static void copy_command(struct reader *reader)
{
	char close = *reader->at == '`' ? '`' : ')';
	size_t depth = 1;

	copy(reader);
	if (close == ')')
		copy(reader);
	while (*reader->at != '\0' && depth > 0) {
		if (*reader->at == close)
			depth--;
		else if (*reader->at == '(')
			depth += close == ')';
		copy(reader);
	}
}

static void copy_quoted(struct reader *reader)
{
	char quote = *reader->at++;

	while (*reader->at != '\0' && *reader->at != quote) {
		if (quote == '"' && begins_command(reader->at)) {
			copy_command(reader);
			continue;
		}
		if (quote == '"' && *reader->at == '\\' &&
		    reader->at[1] != '\0')
			reader->at++;
		copy(reader);
	}
	reader->at += *reader->at != '\0';
}

static bool is_blank(const struct reader *reader)
{
	return *reader->at == ' ' || *reader->at == '\t' ||
	       (reader->at[0] == '\\' && reader->at[1] == '\n');
}

/* The "&" of "2>&1" and of "&>file" ends no command. */
static bool ends_command(const struct reader *reader, const char *script)
{
	if (*reader->at == '&' && (reader->at[1] == '>' ||
				   (reader->at > script &&
				    reader->at[-1] == '>')))
		return false;
	return *reader->at == '\0' || strchr(";&|()\n", *reader->at);
}

static void read_word(struct reader *reader, const char *script)
{
	while (!is_blank(reader) && !ends_command(reader, script)) {
		if (begins_command(reader->at)) {
			copy_command(reader);
		} else if (*reader->at == '\'' || *reader->at == '"') {
			copy_quoted(reader);
		} else {
			if (reader->at[0] == '\\' && reader->at[1] != '\0')
				reader->at++;
			copy(reader);
		}
	}
	*reader->out++ = '\0';
}

int ddp_words_next(const char **at, char *buffer, char **words, size_t max)
{
	struct reader reader = { .at = *at, .out = buffer };
	int count = 0;
	char *word;

	if (*reader.at == '\0')
		return -1;
	while (!ends_command(&reader, *at)) {
		if (is_blank(&reader)) {
			reader.at += *reader.at == '\\' ? 2 : 1;
			continue;
		}
		if (*reader.at == '#') {
			reader.at += strcspn(reader.at, "\n");
			continue;
		}
		word = reader.out;
		read_word(&reader, *at);
		if ((size_t)count < max)
			words[count++] = word;
	}
	*at = reader.at + (*reader.at != '\0');
	return count;
}

static bool has_word(const char *line, size_t length, const char *word)
{
	char *text = strndup(line, length), *buffer = malloc(length + 1);
	char *words[WORDS_MAX];
	const char *at = text;
	bool found = false;
	int count;

	while (text && buffer &&
	       (count = ddp_words_next(&at, buffer, words, WORDS_MAX)) >= 0)
		while (count > 0)
			found |= strcmp(words[--count], word) == 0;
	free(buffer);
	free(text);
	return found;
}

/* Empty, or a comment */
static bool is_idle(const char *line)
{
	line += strspn(line, " \t\v\f\r");
	return *line == '#' || *line == '\n' || *line == '\0';
}

bool ddp_words_sbatch(const char *script, const char *word)
{
	const size_t mark = strlen(SBATCH);
	bool found = false;
	size_t length;

	while (*script != '\0' && is_idle(script)) {
		length = strcspn(script, "\n");
		if (strncmp(script, SBATCH, mark) == 0)
			found |= has_word(script + mark, length - mark, word);
		script += length + (script[length] != '\0');
	}
	return found;
}
