/* SPDX-License-Identifier: BSD-3-Clause */
/* Splits a shell script into commands and words. */
#define _GNU_SOURCE
#include "request/shell_words.h"

#include <stdlib.h>
#include <string.h>

#define SBATCH "#SBATCH"

enum { WORDS_MAX = 256 };	/* of a part of a line for sbatch */

/* The place where a script is read, and the one where its words are written. */
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

static void copy_quoted(struct reader *reader, bool kept);

/* Copy a $(...), ${...} or `...` as it stands. */
static void copy_command(struct reader *reader)
{
	char open = *reader->at == '`' ? '\0' : reader->at[1];
	char close = open == '(' ? ')' : open == '{' ? '}' : '`';
	size_t depth = 1;

	copy(reader);
	if (open)
		copy(reader);
	while (*reader->at != '\0' && depth > 0) {
		if (open && strchr("'\"", *reader->at)) {
			copy_quoted(reader, true);
			continue;
		}
		if (*reader->at == '\\' && reader->at[1] != '\0')
			copy(reader);
		else if (*reader->at == close)
			depth--;
		else if (open && *reader->at == open)
			depth++;
		copy(reader);
	}
}

static void take(struct reader *reader, bool kept)
{
	if (kept)
		copy(reader);
	else
		reader->at++;
}

/* Copy a quoted part; within a command, where kept, with quotes and backslashes. */
static void copy_quoted(struct reader *reader, bool kept)
{
	char quote = *reader->at;

	take(reader, kept);
	while (*reader->at != '\0' && *reader->at != quote) {
		if (quote == '"' && begins_command(reader->at)) {
			copy_command(reader);
			continue;
		}
		if (quote == '"' && *reader->at == '\\' &&
		    reader->at[1] != '\0')
			take(reader, kept);
		copy(reader);
	}
	if (*reader->at != '\0')
		take(reader, kept);
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

/*
 * Note what ends the here-document of a "<<", which is copied as it stands.
 * "<<<" begins none.
 */
static void copy_document(struct reader *reader, struct ddp_script *script)
{
	static const char quotes[] = "'\"\\";
	const char *at = reader->at + strspn(reader->at, "<");
	size_t count = script->document_count;
	bool tabs = *at == '-';
	bool begins = at - reader->at == 2;

	while (reader->at < at)
		copy(reader);
	if (!begins)
		return;
	at += tabs;
	at += strspn(at, " \t");
	at += strspn(at, quotes);
	if (count == DDP_SCRIPT_DOCUMENTS)
		return;
	script->documents[count].at = at;
	script->documents[count].length = strcspn(at, "'\" \t\n;&|()<>");
	script->documents[count].tabs = tabs;
	script->document_count++;
}

/* Move past the here-documents that begin behind a line's end. */
static void skip_documents(struct reader *reader, struct ddp_script *script)
{
	const char *line, *end;
	size_t i, length;

	for (i = 0; i < script->document_count; i++)
		for (end = NULL; !end && *reader->at != '\0';) {
			line = reader->at;
			length = strcspn(line, "\n");
			reader->at += length + (line[length] != '\0');
			while (script->documents[i].tabs && *line == '\t') {
				line++;
				length--;
			}
			if (length == script->documents[i].length &&
			    strncmp(line, script->documents[i].at, length) == 0)
				end = line;
		}
	script->document_count = 0;
}

static void read_word(struct reader *reader, struct ddp_script *script)
{
	while (!is_blank(reader) && !ends_command(reader, script->begin)) {
		if (begins_command(reader->at) ||
		    strncmp(reader->at, "${", 2) == 0) {
			copy_command(reader);
		} else if (*reader->at == '\'' || *reader->at == '"') {
			copy_quoted(reader, false);
		} else if (reader->at[0] == '<' && reader->at[1] == '<') {
			copy_document(reader, script);
		} else {
			if (reader->at[0] == '\\' && reader->at[1] != '\0')
				reader->at++;
			copy(reader);
		}
	}
	*reader->out++ = '\0';
}

static void skip_arithmetic(struct reader *reader)
{
	const char *end = strstr(reader->at, "))");

	if (end)
		reader->at = end + strlen("))");
}

/*
 * Returns the character that ends a command; 'C' if a case's branch ends, 'A' for
 * "&&" and 'O' for "||".
 */
static char read_end(struct reader *reader, struct ddp_script *script)
{
	char end = *reader->at;

	reader->at += end != '\0';
	if (end == ';' && (*reader->at == ';' || *reader->at == '&')) {
		reader->at += strspn(reader->at, ";&");
		end = 'C';
	} else if ((end == '&' || end == '|') && *reader->at == end) {
		reader->at++;
		end = end == '&' ? 'A' : 'O';
	} else if (end == '\n') {
		skip_documents(reader, script);
	} else if (end == '(' && *reader->at == '(') {
		/* "<<" begins no document in an arithmetic command. */
		skip_arithmetic(reader);
	}
	return end;
}

static void count_lines(struct ddp_script *script, const char *at)
{
	if (!script->counted) {
		script->counted = script->begin;
		script->line = 1;
	}
	for (; script->counted < at; script->counted++)
		script->line += *script->counted == '\n';
}

/* A command with all of its words; what ends it, in *end. */
static int read_command(struct ddp_script *script, char *buffer, char **words,
			size_t max, char *end)
{
	struct reader reader = { .at = script->at, .out = buffer };
	int count = 0;
	char *word;

	while (!ends_command(&reader, script->begin)) {
		if (is_blank(&reader)) {
			reader.at += *reader.at == '\\' ? 2 : 1;
			continue;
		}
		if (*reader.at == '#') {
			reader.at += strcspn(reader.at, "\n");
			continue;
		}
		if (count == 0)
			count_lines(script, reader.at);
		word = reader.out;
		read_word(&reader, script);
		if ((size_t)count < max)
			words[count++] = word;
	}
	*end = read_end(&reader, script);
	script->at = reader.at;
	return count;
}

static void open_part(struct ddp_script *script, char part)
{
	if (script->depth < DDP_SCRIPT_DEPTH)
		script->open[script->depth++] = part;
	if (part == '{')
		return;
	script->branch = ++script->branches;
	if (script->choice)
		return;
	if (part != 'f')
		script->choice = ++script->choices;
	else if (script->functions)
		script->choice = script->functions;
	else
		script->choice = script->functions = ++script->choices;
}

/* One of two parts, as a function's body ends like any other. */
static void close_part(struct ddp_script *script, char part, char other)
{
	size_t i;

	if (script->depth == 0 || (script->open[script->depth - 1] != part &&
				   script->open[script->depth - 1] != other))
		return;
	script->depth--;
	for (i = 0; i < script->depth; i++)
		if (script->open[i] != '{')
			return;
	script->choice = 0;
}

static bool in_case(const struct ddp_script *script)
{
	return script->depth > 0 && script->open[script->depth - 1] == 'c';
}

/* A reserved word that a command follows, or that is one; false: it is none. */
static bool read_reserved(struct ddp_script *script, const char *word)
{
	static const char *const others[] = { "!", "do", "done", "until",
					      "while" };
	size_t i;

	if (strcmp(word, "if") == 0) {
		open_part(script, 'i');
	} else if (strcmp(word, "then") == 0 || strcmp(word, "elif") == 0 ||
		   strcmp(word, "else") == 0) {
		script->branch = ++script->branches;
	} else if (strcmp(word, "fi") == 0) {
		close_part(script, 'i', 'i');
	} else if (strcmp(word, "esac") == 0) {
		close_part(script, 'c', 'c');
	} else if (strcmp(word, "{") == 0) {
		open_part(script, script->defines ? 'f' : '{');
	} else if (strcmp(word, "}") == 0) {
		close_part(script, '{', 'f');
	} else {
		for (i = 0; i < sizeof(others) / sizeof(others[0]); i++)
			if (strcmp(word, others[i]) == 0)
				return true;
		return false;
	}
	return true;
}

/*
 * Leave out what is no word of a simple command: those before words[at].
 * Returns where that is; count: it is none.
 */
static int skip_reserved(struct ddp_script *script, char **words, int count,
			 char end)
{
	int at = 0;

	if (script->pattern && (count == 0 || strcmp(words[0], "esac") != 0)) {
		script->pattern = end != ')';
		if (end == ')')
			script->branch = ++script->branches;
		return count;
	}
	script->pattern = false;
	while (at < count && read_reserved(script, words[at])) {
		script->defines = false;
		at++;
	}
	if (at < count && strcmp(words[at], "case") == 0) {
		open_part(script, 'c');
		/* "case x in a) command" */
		script->pattern = end != ')';
		return count;
	}
	if (at + 1 < count && strcmp(words[at], "function") == 0) {
		script->defines = true;
		return skip_reserved(script, words + at + 2, count - at - 2,
				     end) + at + 2;
	}
	if (at + 1 == count && end == '(' &&
	    script->at[strspn(script->at, " \t")] == ')') {
		script->defines = true;
		return count;
	}
	script->defines &= at == count;
	return at;
}

static bool is_test(const char *word)
{
	static const char *const tests[] = { "[", "[[", "]]", "test", "command",
					     "which", "type", "hash" };
	size_t i;

	for (i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		if (strcmp(word, tests[i]) == 0)
			return true;
	return false;
}

/* A command behind "&&" or "||" may not run, if a test is before it. */
static void join_command(struct ddp_script *script)
{
	size_t top = script->depth - 1;		/* if there is any */
	bool inside = script->depth > 0 && script->open[top] == 'a';

	if (inside && strchr("\n;&)C", script->end)) {
		script->depth = top;
		script->choice = script->outer[top].choice;
		script->branch = script->outer[top].branch;
	} else if (inside && script->end == 'O') {
		script->branch = ++script->branches;
	} else if (!inside && script->tests && strchr("AO", script->end) &&
		   script->depth < DDP_SCRIPT_DEPTH) {
		script->outer[script->depth].choice = script->choice;
		script->outer[script->depth].branch = script->branch;
		script->open[script->depth++] = 'a';
		script->choice = ++script->choices;
		script->branch = ++script->branches;
	}
}

int ddp_words_next(struct ddp_script *script, char *buffer, char **words,
		   size_t max)
{
	int count, at;
	char end;

	if (*script->at == '\0')
		return -1;
	join_command(script);
	count = read_command(script, buffer, words, max, &end);
	at = skip_reserved(script, words, count, end);
	script->pattern |= end == 'C' && in_case(script);
	/* A line may end behind "&&". */
	if (count > 0 || end != '\n' || !strchr("AO", script->end)) {
		script->end = end;
		script->tests = at < count && is_test(words[at]);
	}
	memmove(words, words + at, (size_t)(count - at) * sizeof(*words));
	return count - at;
}

static bool has_word(const char *line, size_t length, const char *word)
{
	char *text = strndup(line, length), *buffer = malloc(length + 1);
	char *words[WORDS_MAX];
	struct ddp_script script = { .begin = text, .at = text };
	bool found = false;
	int count;

	while (text && buffer && (count = ddp_words_next(&script, buffer, words,
							 WORDS_MAX)) >= 0)
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
