/* SPDX-License-Identifier: BSD-3-Clause */
/* Tells from a command whether it is a launcher, and with which arguments. */
#define _GNU_SOURCE
#include "layout/launcher.h"

#include <string.h>

#include "layout/command.h"
#include "layout/scan.h"

enum { BEGIN_MIN = 5 };		/* bytes of "--nnodes" that stand for it */

/* A program, or a module of Python's where a name has dots. */
static const struct program {
	const char *name, *sub;		/* its first argument; NULL: any */
	enum ddp_launcher_kind kind;
	const char *called;
} programs[] = {
	{ "torchrun", NULL, DDP_LAUNCHER_TORCHRUN, "torchrun" },
	{ "torch.distributed.run", NULL, DDP_LAUNCHER_TORCHRUN,
	  "torch.distributed.run" },
	{ "torch.distributed.launch", NULL, DDP_LAUNCHER_TORCHRUN,
	  "torch.distributed.launch" },
	{ "accelerate", "launch", DDP_LAUNCHER_ACCELERATE,
	  "accelerate launch" },
	{ "accelerate-launch", NULL, DDP_LAUNCHER_ACCELERATE,
	  "accelerate-launch" },
	{ "accelerate.commands.launch", NULL, DDP_LAUNCHER_ACCELERATE,
	  "accelerate launch" },
	{ "accelerate.commands.accelerate_cli", "launch",
	  DDP_LAUNCHER_ACCELERATE, "accelerate launch" },
	{ "deepspeed", NULL, DDP_LAUNCHER_DEEPSPEED, "deepspeed" },
	{ "deepspeed.pt", NULL, DDP_LAUNCHER_DEEPSPEED, "deepspeed" },
	{ "ds", NULL, DDP_LAUNCHER_DEEPSPEED, "deepspeed" },
	{ "deepspeed.launcher.runner", NULL, DDP_LAUNCHER_DEEPSPEED,
	  "deepspeed" },
	{ "deepspeed.launcher.launch", NULL, DDP_LAUNCHER_DEEPSPEED,
	  "deepspeed" },
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

bool ddp_launcher_is_helper(const char *command)
{
	static const char *const helpers[] = {
		"orted", "prted", "hydra_pmi_proxy", "hydra_bstrap_proxy",
	};
	size_t i;

	for (i = 0; i < COUNT(helpers); i++)
		if (strcmp(ddp_command_base(command), helpers[i]) == 0)
			return true;
	return false;
}

/* Whether a path, as .../torch/distributed/run.py, is a module's. */
static bool is_module_path(const char *path, const char *module)
{
	size_t length = strlen(module), size = strlen(path), i;
	const char *at;

	if (!strchr(module, '.') || size < length + 4 ||
	    strcmp(path + size - 3, ".py") != 0)
		return false;
	at = path + size - 3 - length;
	for (i = 0; i < length; i++)
		if (at[i] != (module[i] == '.' ? '/' : module[i]))
			return false;
	return at[-1] == '/';
}

static bool is_python(const char *command)
{
	const char *base = ddp_command_base(command);

	return strncmp(base, "python", 6) == 0 &&
	       base[6 + strspn(base + 6, "0123456789.")] == '\0';
}

/*
 * Find the module or script that python runs, and move words to it. NULL if it
 * runs neither.
 */
static const char *find_script(struct ddp_words *words)
{
	const char *letter;

	for (ddp_words_skip(words, 1);
	     words->count > 0 && words->at[0][0] == '-';
	     ddp_words_skip(words, 1)) {
		letter = words->at[0] + strcspn(words->at[0], "cmWX");
		if (words->at[0][1] == '-' || *letter == '\0')
			continue;
		if (*letter == 'c')
			return NULL;
		if (letter[1] != '\0' && *letter == 'm')
			return letter + 1;
		if (letter[1] == '\0')
			ddp_words_skip(words, 1);
		if (*letter == 'm')
			break;
	}
	return words->count > 0 ? words->at[0] : NULL;
}

/* The first word of words is the program, or what python runs. */
static const struct program *find_program(struct ddp_words *words)
{
	const char *name = words->at[0];
	size_t i;

	if (is_python(name))
		name = find_script(words);
	for (i = 0; name && i < COUNT(programs); i++)
		if ((strcmp(ddp_command_base(name), programs[i].name) == 0 ||
		     is_module_path(name, programs[i].name)) &&
		    ddp_words_has_sub(words, programs[i].sub))
			return &programs[i];
	return NULL;
}

/* Those up to OPTION_CPU take no value. */
enum option {
	OPTION_FLAG, OPTION_STANDALONE, OPTION_PARALLEL, OPTION_CPU,
	OPTION_NODES, OPTION_PROCESSES, OPTION_PORT, OPTION_CONFIG,
	OPTION_OTHER
};

/*
 * Whether a word is this option, or begins it, as argparse allows; "_" and "-"
 * are the same.
 */
static bool is_option(const char *word, const char *name)
{
	size_t length = strcspn(word, "="), i;

	if (length > strlen(name) ||
	    (length < BEGIN_MIN && length < strlen(name)))
		return false;
	for (i = 0; i < length; i++)
		if (word[i] != name[i] &&
		    !(i > 1 && word[i] == '_' && name[i] == '-'))
			return false;
	return true;
}

/*
 * The options that matter, and others without a value. What follows any other
 * option is taken for its value.
 */
static enum option find_option(const char *word)
{
	static const struct {
		const char *name;
		enum option option;
	} options[] = {
		{ "--nnodes", OPTION_NODES },
		{ "--num-machines", OPTION_NODES },
		{ "--nproc-per-node", OPTION_PROCESSES },
		{ "--num-processes", OPTION_PROCESSES },
		{ "--standalone", OPTION_STANDALONE },
		{ "--cpu", OPTION_CPU },
		{ "-m", OPTION_FLAG }, { "--module", OPTION_FLAG },
		{ "-q", OPTION_FLAG }, { "--quiet", OPTION_FLAG },
		{ "--no-python", OPTION_FLAG }, { "--run-path", OPTION_FLAG },
		{ "--use-env", OPTION_FLAG },
		{ "--virtual-local-rank", OPTION_FLAG },
		{ "--main-process-port", OPTION_PORT },
		{ "--config-file", OPTION_CONFIG },
		{ "--multi-gpu", OPTION_PARALLEL },
		{ "--tpu", OPTION_PARALLEL },
		{ "--use-fsdp", OPTION_PARALLEL },
		{ "--use-deepspeed", OPTION_PARALLEL },
		{ "--use-megatron-lm", OPTION_PARALLEL },
		{ "--same-network", OPTION_FLAG }, { "--debug", OPTION_FLAG },
	};
	size_t i;

	for (i = 0; i < COUNT(options); i++)
		if (is_option(word, options[i].name))
			return options[i].option;
	return OPTION_OTHER;
}

/* Read "2", or "1:4" of an elastic world. */
static void read_nodes(struct ddp_launcher *launcher, const char *text)
{
	uint64_t min, max;

	if (ddp_scan_number(&text, 1, UINT32_MAX, &min) < 0)
		return;
	max = min;
	if (*text == ':') {
		text++;
		if (ddp_scan_number(&text, min, UINT32_MAX, &max) < 0)
			return;
	}
	if (*text != '\0')
		return;
	launcher->nodes_min = (uint32_t)min;
	launcher->nodes_max = (uint32_t)max;
}

static void read_processes(struct ddp_launcher *launcher, const char *text)
{
	uint64_t count;

	if (ddp_scan_number(&text, 1, UINT32_MAX, &count) == 0 &&
	    *text == '\0')
		launcher->processes = (uint32_t)count;
}

/* value is the text behind "=" or the next word; NULL if there is none. */
static void read_option(struct ddp_launcher *launcher, enum option option,
			const char *value)
{
	launcher->standalone |= option == OPTION_STANDALONE;
	launcher->cpu |= option == OPTION_CPU;
	launcher->parallel |= option == OPTION_PARALLEL ||
			      option == OPTION_CONFIG;
	launcher->port |= option == OPTION_PORT || option == OPTION_CONFIG;
	if (option == OPTION_NODES && value)
		read_nodes(launcher, value);
	else if (option == OPTION_PROCESSES && value)
		read_processes(launcher, value);
}

static bool is_python_file(const char *word)
{
	size_t length = strlen(word);

	return length > 3 && strcmp(word + length - 3, ".py") == 0;
}

/* Read the launcher's own arguments, which end where the program begins. */
static void read_arguments(struct ddp_launcher *launcher,
			   struct ddp_words words)
{
	enum option option;
	const char *value;

	while (words.count > 0 && words.at[0][0] == '-' &&
	       strcmp(words.at[0], "--") != 0) {
		option = find_option(words.at[0]);
		value = strchr(words.at[0], '=');
		ddp_words_skip(&words, 1);
		if (value) {
			value++;
		} else if (option > OPTION_CPU && words.count > 0 &&
			   !is_python_file(words.at[0])) {
			value = words.at[0];
			ddp_words_skip(&words, 1);
		}
		read_option(launcher, option, value);
	}
}

static bool find_launcher(const struct ddp_words *command, void *data)
{
	struct ddp_launcher *launcher = data;
	struct ddp_words words = *command;
	const struct program *program = find_program(&words);

	if (!program)
		return false;
	launcher->kind = program->kind;
	launcher->name = program->called;
	ddp_words_skip(&words, program->sub ? 2 : 1);
	read_arguments(launcher, words);
	return true;
}

bool ddp_launcher_find(char *const *command, struct ddp_launcher *launcher)
{
	memset(launcher, 0, sizeof(*launcher));
	return ddp_command_visit(command, find_launcher, launcher);
}

int ddp_launcher_check(const struct ddp_launcher *launcher, uint32_t nodes,
		       struct ddp_error *error)
{
	const char *option = launcher->kind == DDP_LAUNCHER_ACCELERATE ?
		"--num_machines" : "--nnodes";

	if (launcher->kind == DDP_LAUNCHER_DEEPSPEED)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				     "deepspeed starts ranks by ssh, outside "
				     "the step; start the program itself, one "
				     "rank a GPU: srun --ddp python3 PROGRAM");
	if (launcher->standalone && nodes > 1)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				     "%s --standalone makes a world of its own "
				     "on each of %u nodes; leave it out, or "
				     "use one node: -N1", launcher->name,
				     nodes);
	if (launcher->nodes_max == 0 ||
	    (launcher->nodes_min <= nodes && nodes <= launcher->nodes_max) ||
	    (launcher->kind == DDP_LAUNCHER_ACCELERATE &&
	     launcher->nodes_max == 1))
		return 0;
	return ddp_error_set(error, DDP_ERROR_ARGUMENT,
			     "%s %s says %u, and the step has %u node%s; leave "
			     "it out, or give -N%u to srun", launcher->name,
			     option, launcher->nodes_max, nodes,
			     nodes == 1 ? "" : "s", launcher->nodes_max);
}

bool ddp_launcher_needs_gpu(const struct ddp_launcher *launcher)
{
	return launcher->kind == DDP_LAUNCHER_ACCELERATE && !launcher->cpu &&
	       !launcher->parallel;
}

bool ddp_launcher_needs_port(const struct ddp_launcher *launcher)
{
	return launcher->kind == DDP_LAUNCHER_ACCELERATE && !launcher->cpu &&
	       !launcher->port;
}

uint32_t ddp_launcher_workers(const struct ddp_launcher *launcher)
{
	uint32_t machines = launcher->kind == DDP_LAUNCHER_ACCELERATE &&
			    launcher->nodes_max > 1 ? launcher->nodes_max : 1;

	return launcher->processes / machines;
}
