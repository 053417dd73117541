/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the programs that a command runs. */
#define _GNU_SOURCE
#include "layout/command.h"

#include <stdlib.h>
#include <string.h>

#include "layout/words.h"

enum {
	WORDS_MAX = 256,	/* of a command in a script */
	DEPTH_MAX = 4		/* bash -c "bash -c ..." */
};

/* Programs, and words of the shell, that run the command behind them. */
static const struct wrapper {
	const char *name, *sub;		/* its first argument; NULL: any */
	const char *values;		/* options that take a word */
	size_t arguments;		/* words before the command */
} wrappers[] = {
	{ "!", NULL, "", 0 },
	{ "apptainer", "exec", " -B --bind --env --env-file -H --home --mount "
	  "--overlay --pwd -S --scratch -W --workdir ", 1 },
	{ "builtin", NULL, "", 0 },
	{ "chrt", NULL, " -T -P -D ", 1 },
	{ "command", NULL, "", 0 },
	{ "conda", "run", " -n --name -p --prefix --cwd ", 0 },
	{ "do", NULL, "", 0 },
	{ "elif", NULL, "", 0 },
	{ "else", NULL, "", 0 },
	{ "env", NULL, " -u --unset -C --chdir ", 0 },
	{ "eval", NULL, "", 0 },
	{ "exec", NULL, " -a ", 0 },
	{ "if", NULL, "", 0 },
	{ "ionice", NULL, " -c --class -n --classdata ", 0 },
	{ "mamba", "run", " -n --name -p --prefix --cwd ", 0 },
	{ "micromamba", "run", " -n --name -p --prefix --cwd ", 0 },
	{ "nice", NULL, " -n --adjustment ", 0 },
	{ "nohup", NULL, "", 0 },
	{ "nsys", "profile", " -b -c -d -e -f -o -s -t -w -x -y ", 0 },
	{ "numactl", NULL, " -i -m -p -N -C -w --interleave --membind "
	  "--preferred --cpunodebind --physcpubind --weighted-interleave ", 0 },
	{ "pipenv", "run", "", 0 },
	{ "poetry", "run", " -C --directory -P --project ", 0 },
	{ "setsid", NULL, "", 0 },
	{ "singularity", "exec", " -B --bind --env --env-file -H --home "
	  "--mount --overlay --pwd -S --scratch -W --workdir ", 1 },
	{ "stdbuf", NULL, " -i -o -e --input --output --error ", 0 },
	{ "taskset", NULL, "", 1 },
	{ "then", NULL, "", 0 },
	{ "time", NULL, " -f --format -o --output ", 0 },
	{ "timeout", NULL, " -k --kill-after -s --signal ", 1 },
	{ "until", NULL, "", 0 },
	{ "uv", "run", " --with --with-requirements -p --python --extra "
	  "--group --project --directory --env-file ", 0 },
	{ "while", NULL, "", 0 },
	{ "{", NULL, "", 0 },
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* What is called for each program, and with what. */
struct visit {
	ddp_command_fn call;
	void *data;
	unsigned int depth;
};

const char *ddp_command_base(const char *command)
{
	const char *slash = strrchr(command, '/');

	return slash ? slash + 1 : command;
}

void ddp_words_skip(struct ddp_words *words, size_t count)
{
	count = count < words->count ? count : words->count;
	words->at += count;
	words->count -= count;
}

bool ddp_words_has_sub(const struct ddp_words *words, const char *sub)
{
	return !sub || (words->count > 1 && strcmp(words->at[1], sub) == 0);
}

/* Whether a list, with a blank on either side of each name, has this one. */
static bool is_listed(const char *list, const char *name)
{
	size_t length = strlen(name);
	const char *at = list;

	while (length > 0 && (at = strstr(at, name))) {
		if (at > list && at[-1] == ' ' && at[length] == ' ')
			return true;
		at++;
	}
	return false;
}

static bool is_assignment(const char *word)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz"
				      "ABCDEFGHIJKLMNOPQRSTUVWXYZ_";
	static const char *const all = "0123456789"
				       "abcdefghijklmnopqrstuvwxyz"
				       "ABCDEFGHIJKLMNOPQRSTUVWXYZ_";

	return strchr(letters, word[0]) && word[strspn(word, all)] == '=';
}

/* Skip a program that runs another, up to that; false if it is none. */
static bool skip_wrapper(struct ddp_words *words)
{
	const char *base = ddp_command_base(words->at[0]), *option;
	const struct wrapper *wrapper = NULL;
	size_t i;

	for (i = 0; i < COUNT(wrappers) && !wrapper; i++)
		if (strcmp(base, wrappers[i].name) == 0 &&
		    ddp_words_has_sub(words, wrappers[i].sub))
			wrapper = &wrappers[i];
	if (!wrapper)
		return false;
	ddp_words_skip(words, wrapper->sub ? 2 : 1);
	while (words->count > 0 && words->at[0][0] == '-') {
		option = words->at[0];
		ddp_words_skip(words, is_listed(wrapper->values, option) ?
			       2 : 1);
		if (strcmp(option, "--") == 0)
			break;
	}
	ddp_words_skip(words, wrapper->arguments);
	return true;
}

/* The script of a shell's -c; NULL if it has none. */
static const char *find_script(struct ddp_words words)
{
	static const char shells[] = " bash sh dash zsh ksh ";
	bool given = false;
	const char *word;

	if (!is_listed(shells, ddp_command_base(words.at[0])))
		return NULL;
	for (ddp_words_skip(&words, 1);
	     words.count > 0 && (words.at[0][0] == '-' ||
				 words.at[0][0] == '+');
	     ddp_words_skip(&words, 1)) {
		word = words.at[0];
		if (word[1] == '-')
			continue;
		given |= strchr(word, 'c') != NULL;
		if (strchr(word, 'o'))		/* -o pipefail */
			ddp_words_skip(&words, 1);
	}
	return given && words.count > 0 ? words.at[0] : NULL;
}

static bool visit_script(const struct visit *visit, const char *script);

static bool visit_words(const struct visit *visit, struct ddp_words words)
{
	const char *script;

	do {
		while (words.count > 0 && is_assignment(words.at[0]))
			ddp_words_skip(&words, 1);
		if (words.count == 0)
			return false;
		script = find_script(words);
		if (script)
			return visit_script(visit, script);
	} while (skip_wrapper(&words));
	return visit->call(&words, visit->data);
}

static bool visit_script(const struct visit *visit, const char *script)
{
	struct visit deeper = *visit;
	char *words[WORDS_MAX], *buffer = malloc(strlen(script) + 1);
	bool found = false;
	int count = 0;

	deeper.depth++;
	while (buffer && deeper.depth <= DEPTH_MAX && !found && count >= 0) {
		count = ddp_words_next(&script, buffer, words, WORDS_MAX);
		if (count > 0)
			found = visit_words(&deeper, (struct ddp_words){
				.at = words, .count = (size_t)count });
	}
	free(buffer);
	return found;
}

bool ddp_command_visit(char *const *command, ddp_command_fn call, void *data)
{
	const struct visit visit = { .call = call, .data = data };
	struct ddp_words words = { .at = command };

	while (command[words.count])
		words.count++;
	return visit_words(&visit, words);
}
