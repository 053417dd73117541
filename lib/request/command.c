/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the programs that a command runs. */
#define _GNU_SOURCE
#include "request/command.h"

#include <stdlib.h>
#include <string.h>

#include "request/shell_words.h"

enum {
	WORDS_MAX = 256,	/* of a command in a script */
	DEPTH_MAX = 4,		/* bash -c "bash -c ..." */
	FILES_MAX = 64		/* of all depths together */
};

#define CONTAINER " --add-caps --app --apply-cgroups --authfile -B --bind " \
	"--cpu-shares --cpus --cpuset-cpus --cpuset-mems --cwd --dns " \
	"--drop-caps --env --env-file --fusemount -H --home --hostname " \
	"--memory --memory-reservation --memory-swap --mount --netns-path " \
	"--network --network-args --no-mount -o --overlay --pem-path " \
	"--pids-limit --pwd -S --scratch --security -W --workdir "

/* This lacks the options for block devices, real time and health checks. */
#define PODMAN " " \
	"-a --add-host --annotation --arch --attach --authfile -c " \
	"--cap-add --cap-drop --cgroup-conf --cgroup-parent --cgroupns " \
	"--cgroups --chrootdirs --cidfile --conmon-pidfile --cpu-period " \
	"--cpu-quota --cpu-shares --cpus --cpuset-cpus --cpuset-mems " \
	"--decryption-key --detach-keys --device --dns --dns-option " \
	"--dns-search -e --entrypoint --env --env-file --env-merge " \
	"--expose --gidmap --gpus --group-add --group-entry -h --hostname " \
	"--hosts-file --hostuser --image-volume --init-path --ip --ip6 " \
	"--ipc -l --label --label-file --log-driver --log-opt -m " \
	"--mac-address --memory --memory-reservation --memory-swap " \
	"--memory-swappiness --mount --name --net --network " \
	"--network-alias --oom-score-adj --os -p --passwd-entry " \
	"--personality --pid --pidfile --pids-limit --platform --pod " \
	"--pod-id-file --preserve-fd --preserve-fds --publish --pull " \
	"--rdt-class --requires --restart --retry --retry-delay --sdnotify " \
	"--seccomp-policy --secret --security-opt --shm-size " \
	"--shm-size-systemd --stop-signal --stop-timeout --subgidname " \
	"--subuidname --sysctl --systemd --timeout --tmpfs --tz -u " \
	"--uidmap --ulimit --umask --unsetenv --user --userns --uts -v " \
	"--variant --volume --volumes-from -w --workdir "

/* Programs, and commands of the shell, that run the command behind them. */
static const struct wrapper {
	const char *name, *sub;		/* its first argument; NULL: any */
	const char *values;		/* options that take a word */
	size_t arguments;		/* words before the command */
} wrappers[] = {
	{ "apptainer", "exec", CONTAINER, 1 },
	{ "apptainer", "run", CONTAINER, 1 },
	{ "builtin", NULL, "", 0 },
	{ "ch-run", NULL, " -b --bind -c --cd -g --gid -m --mount -u --uid "
	  "--join-ct --join-pid --join-tag --unset-env ", 2 },	/* and -- */
	{ "chrt", NULL, " -T -P -D ", 1 },
	{ "command", NULL, "", 0 },
	{ "conda", "run", " -n --name -p --prefix --cwd ", 0 },
	{ "env", NULL, " -u --unset -C --chdir ", 0 },
	{ "eval", NULL, "", 0 },
	{ "exec", NULL, " -a ", 0 },
	{ "ionice", NULL, " -c --class -n --classdata ", 0 },
	{ "mamba", "run", " -n --name -p --prefix --cwd ", 0 },
	{ "micromamba", "run", " -n --name -p --prefix --cwd ", 0 },
	{ "nice", NULL, " -n --adjustment ", 0 },
	{ "nohup", NULL, "", 0 },
	{ "nsys", "profile", " -b -c -d -e -f -o -s -t -w -x -y ", 0 },
	{ "numactl", NULL, " -i -m -p -N -C -w --interleave --membind "
	  "--preferred --cpunodebind --physcpubind --weighted-interleave ", 0 },
	{ "pipenv", "run", "", 0 },
	{ "pixi", "run", " -e --environment -m --manifest-path ", 0 },
	{ "podman", "run", PODMAN, 1 },
	{ "podman-hpc", "run", PODMAN, 1 },
	{ "podman-hpc", "shared-run", PODMAN, 1 },
	{ "poetry", "run", " -C --directory -P --project ", 0 },
	{ "setsid", NULL, "", 0 },
	{ "singularity", "exec", CONTAINER, 1 },
	{ "singularity", "run", CONTAINER, 1 },
	{ "stdbuf", NULL, " -i -o -e --input --output --error ", 0 },
	{ "taskset", NULL, "", 1 },
	{ "time", NULL, " -f --format -o --output ", 0 },
	{ "timeout", NULL, " -k --kill-after -s --signal ", 1 },
	{ "uv", "run", " --with --with-requirements -p --python --extra "
	  "--group --project --directory --env-file ", 0 },
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* The function that is called for each program, and how far the search is. */
struct visit {
	ddp_command_read_fn read;
	ddp_command_fn call;
	void *data;
	unsigned int depth, files;
	unsigned int choices, branches;	/* of all scripts so far */
	bool moved;			/* into another folder, perhaps */
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

/* Returns whether the second word is this one; NULL stands for any, or none. */
static bool has_sub(const struct ddp_words *words, const char *sub)
{
	return !sub || (words->count > 1 && strcmp(words->at[1], sub) == 0);
}

/* Returns true if a list, with a blank on either side of each name, has this
 * one. */
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

/* "command -v torchrun" runs nothing. */
static bool asks_for_path(const struct ddp_words *words)
{
	return strcmp(words->at[0], "command") == 0 && words->count > 1 &&
	       words->at[1][0] == '-' && strpbrk(words->at[1], "vV");
}

/* Skip a program that runs another, up to that; false if it is none. */
static bool skip_wrapper(struct ddp_words *words)
{
	const char *base = ddp_command_base(words->at[0]), *option;
	const struct wrapper *wrapper = NULL;
	size_t i;

	for (i = 0; i < COUNT(wrappers) && !wrapper; i++)
		if (strcmp(base, wrappers[i].name) == 0 &&
		    has_sub(words, wrappers[i].sub))
			wrapper = &wrappers[i];
	if (!wrapper || asks_for_path(words))
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

bool ddp_command_is_shell(const char *name)
{
	return is_listed(" bash sh dash zsh ksh ", name);
}

bool ddp_command_is_contained(char *const *command)
{
	static const char containers[] =
		" apptainer bwrap ch-run podman podman-hpc singularity ";
	struct ddp_words words = { .at = command };

	while (command[words.count])
		words.count++;
	while (words.count > 0 &&
	       !is_listed(containers, ddp_command_base(words.at[0])))
		if (is_assignment(words.at[0]))
			ddp_words_skip(&words, 1);
		else if (!skip_wrapper(&words))
			return false;
	return words.count > 0;
}

/* The arguments of a shell tell it to run one of these. */
struct shell {
	const char *script;		/* of its -c; NULL: none */
	const char *file;		/* NULL: none */
};

static struct shell read_shell(struct ddp_words words)
{
	struct shell shell = { NULL, NULL };
	bool given = false;
	const char *word;

	if (!ddp_command_is_shell(ddp_command_base(words.at[0])))
		return shell;
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
	if (words.count > 0 && given)
		shell.script = words.at[0];
	else if (words.count > 0)
		shell.file = words.at[0];
	return shell;
}

static void visit_script(struct visit *visit, const char *text,
			 const struct ddp_place *outer);

static void visit_file(struct visit *visit, const char *name, bool shell,
		       const struct ddp_place *outer)
{
	struct ddp_place place = *outer;
	char *text = NULL;

	if (visit->read && visit->depth < DEPTH_MAX &&
	    visit->files++ < FILES_MAX &&
	    (!visit->moved || name[0] == '/'))
		text = visit->read(name, shell);
	if (!text)
		return;
	place.file = name;
	place.line = 0;
	visit_script(visit, text, &place);
	free(text);
}

static void visit_words(struct visit *visit, struct ddp_words words,
			const struct ddp_place *place)
{
	struct shell shell;

	do {
		while (words.count > 0 && is_assignment(words.at[0]))
			ddp_words_skip(&words, 1);
		if (words.count == 0)
			return;
		shell = read_shell(words);
		if (shell.script)
			visit_script(visit, shell.script, place);
		if (shell.file)
			visit_file(visit, shell.file, true, place);
		if (shell.script || shell.file)
			return;
	} while (skip_wrapper(&words));
	if (strcmp(words.at[0], "cd") == 0 ||
	    strcmp(words.at[0], "pushd") == 0)
		visit->moved = true;
	/* A bare name in a script is rarely a script, and costs a search of PATH. */
	if (!visit->call(&words, place, visit->data) &&
	    (!place->file || strchr(words.at[0], '/')))
		visit_file(visit, words.at[0], false, place);
}

/* A choice in a script that is itself in a branch is one of that choice. */
static void set_place(struct ddp_place *place, const struct ddp_place *outer,
		      const struct ddp_script *script)
{
	*place = *outer;
	if (outer->file && outer->line == 0)
		place->line = script->line;
	if (script->choice == 0)
		return;
	place->branch = script->branch;
	if (outer->choice == 0)
		place->choice = script->choice;
}

static void visit_script(struct visit *visit, const char *text,
			 const struct ddp_place *outer)
{
	struct ddp_script script = {
		.begin = text, .at = text,
		.choices = visit->choices, .branches = visit->branches,
	};
	char *words[WORDS_MAX], *buffer = malloc(strlen(text) + 1);
	struct ddp_place place;
	int count = 0;

	visit->depth++;
	while (buffer && visit->depth <= DEPTH_MAX && count >= 0) {
		count = ddp_words_next(&script, buffer, words, WORDS_MAX);
		if (count <= 0)
			continue;
		set_place(&place, outer, &script);
		visit->choices = script.choices;
		visit->branches = script.branches;
		visit_words(visit, (struct ddp_words){
			.at = words, .count = (size_t)count }, &place);
		script.choices = visit->choices;
		script.branches = visit->branches;
	}
	visit->depth--;
	free(buffer);
}

void ddp_command_visit(char *const *command, ddp_command_read_fn read,
		       ddp_command_fn call, void *data)
{
	struct visit visit = { .read = read, .call = call, .data = data };
	const struct ddp_place nowhere = { .file = NULL };
	struct ddp_words words = { .at = command };

	while (command[words.count])
		words.count++;
	visit_words(&visit, words, &nowhere);
}
