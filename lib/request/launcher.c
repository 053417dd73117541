/* SPDX-License-Identifier: BSD-3-Clause */
/* Tells from a command whether it is a launcher, and with which arguments. */
#define _GNU_SOURCE
#include "request/launcher.h"

#include <stdio.h>
#include <string.h>

#include "request/command.h"
#include "util/scan.h"

enum {
	BEGIN_MIN = 5,	/* bytes of "--nnodes" that stand for it */
	SEEN_MAX = 64	/* programs that are compared by their branch */
};

/* A program, or a module of Python's where a name has dots. */
static const struct program {
	const char *name;
	const char *sub;		/* its first arguments; "-": some option;
					 * NULL: any */
	enum ddp_launcher_kind kind;
	const char *called;
} programs[] = {
	{ "torchrun", NULL, DDP_LAUNCHER_TORCHRUN, "torchrun" },
	{ "torch.distributed.run", NULL, DDP_LAUNCHER_TORCHRUN,
	  "torch.distributed.run" },
	{ "torch.distributed.launch", NULL, DDP_LAUNCHER_TORCHRUN,
	  "torch.distributed.launch" },
	/* It runs the recipe itself if it has no option of torchrun's. */
	{ "tune", "run -", DDP_LAUNCHER_TORCHRUN, "tune run" },
	{ "accelerate", "launch", DDP_LAUNCHER_ACCELERATE,
	  "accelerate launch" },
	{ "accelerate-launch", NULL, DDP_LAUNCHER_ACCELERATE,
	  "accelerate-launch" },
	{ "accelerate.commands.launch", NULL, DDP_LAUNCHER_ACCELERATE,
	  "accelerate launch" },
	{ "accelerate.commands.accelerate_cli", "launch",
	  DDP_LAUNCHER_ACCELERATE, "accelerate launch" },
	{ "fabric", "run", DDP_LAUNCHER_FABRIC, "fabric run" },
	{ "lightning", "run model", DDP_LAUNCHER_FABRIC,
	  "lightning run model" },
	/* PHP has a "composer install". */
	{ "composer", "-", DDP_LAUNCHER_COMPOSER, "composer" },
	{ "deepspeed", NULL, DDP_LAUNCHER_SSH, "deepspeed" },
	{ "deepspeed.pt", NULL, DDP_LAUNCHER_SSH, "deepspeed" },
	{ "deepspeed.launcher.runner", NULL, DDP_LAUNCHER_SSH, "deepspeed" },
	{ "deepspeed.launcher.launch", NULL, DDP_LAUNCHER_SSH, "deepspeed" },
	{ "colossalai", "run", DDP_LAUNCHER_SSH, "colossalai run" },
	{ "horovodrun", NULL, DDP_LAUNCHER_SSH, "horovodrun" },
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

/* Returns true if a path, as .../torch/distributed/run.py, is a module's. */
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

/* Returns how many words of sub follow the first of words; -1: others do. */
static int match_sub(const struct ddp_words *words, const char *sub)
{
	size_t at = 1, length;

	for (; *sub; sub += length + (sub[length] == ' '), at++) {
		length = strcspn(sub, " ");
		if (at == words->count)
			return -1;
		if (*sub == '-' && words->at[at][0] == '-')
			break;
		if (strlen(words->at[at]) != length ||
		    strncmp(words->at[at], sub, length) != 0)
			return -1;
	}
	return (int)at - 1;
}

/*
 * The first word of words is the program, or what python runs. Moves words to
 * its arguments where it is a launcher.
 */
static const struct program *find_program(struct ddp_words *words)
{
	const char *name = words->at[0];
	size_t i;
	int subs;

	if (is_python(name))
		name = find_script(words);
	for (i = 0; name && i < COUNT(programs); i++) {
		if (strcmp(ddp_command_base(name), programs[i].name) != 0 &&
		    !is_module_path(name, programs[i].name))
			continue;
		subs = programs[i].sub ? match_sub(words, programs[i].sub) : 0;
		if (subs < 0)
			continue;
		ddp_words_skip(words, (size_t)subs + 1);
		return &programs[i];
	}
	return NULL;
}

/* The options up to OPTION_NO_SSH take no value. */
enum option {
	OPTION_FLAG, OPTION_STANDALONE, OPTION_PARALLEL, OPTION_CPU,
	OPTION_HELP, OPTION_NO_SSH,
	OPTION_NODES, OPTION_PROCESSES, OPTION_PORT, OPTION_CONFIG,
	OPTION_NODE_RANK, OPTION_ADDRESS, OPTION_BACKEND, OPTION_WORLD,
	OPTION_OTHER
};

/*
 * Returns true if a word is this option, or begins it, as argparse allows; "_"
 * and "-" are the same.
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
 * option is taken for its value, unless it begins like an option.
 */
static enum option find_option(const char *word)
{
	static const struct {
		const char *name;
		enum option option;
	} options[] = {
		{ "--nnodes", OPTION_NODES },
		{ "--num-machines", OPTION_NODES },
		{ "--num-nodes", OPTION_NODES },
		{ "--nproc-per-node", OPTION_PROCESSES },
		{ "--num-processes", OPTION_PROCESSES },
		{ "--nproc", OPTION_PROCESSES }, { "-n", OPTION_PROCESSES },
		{ "--devices", OPTION_PROCESSES },
		{ "--num-gpus", OPTION_PROCESSES },
		{ "--node-rank", OPTION_NODE_RANK },
		{ "--machine-rank", OPTION_NODE_RANK },
		{ "--base-rank", OPTION_NODE_RANK },
		{ "--rdzv-endpoint", OPTION_ADDRESS },
		{ "--master-addr", OPTION_ADDRESS },
		{ "--main-process-ip", OPTION_ADDRESS },
		{ "--main-address", OPTION_ADDRESS },
		{ "--rdzv-backend", OPTION_BACKEND },
		{ "--world-size", OPTION_WORLD },
		{ "--standalone", OPTION_STANDALONE },
		{ "--no-ssh", OPTION_NO_SSH },
		{ "--cpu", OPTION_CPU },
		{ "--help", OPTION_HELP }, { "-h", OPTION_HELP },
		{ "-m", OPTION_FLAG }, { "--module", OPTION_FLAG },
		{ "-q", OPTION_FLAG }, { "--quiet", OPTION_FLAG },
		{ "-v", OPTION_FLAG }, { "--verbose", OPTION_FLAG },
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
		{ "--enable-cpu-affinity", OPTION_FLAG },
		{ "--ipex", OPTION_FLAG }, { "--use-xpu", OPTION_FLAG },
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

/* "localhost:29400", "127.0.0.1", "[::1]:0": each node is its own. */
static bool is_loopback(const char *address)
{
	static const char *const names[] = { "localhost", "[::1]", "::1" };
	size_t i, length;

	for (i = 0; i < COUNT(names); i++) {
		length = strlen(names[i]);
		if (strncmp(address, names[i], length) == 0 &&
		    (address[length] == ':' || address[length] == '\0'))
			return true;
	}
	return strncmp(address, "127.", 4) == 0;
}

static bool is_number(const char *text)
{
	return *text != '\0' && text[strspn(text, "0123456789")] == '\0';
}

static void read_value(struct ddp_launcher *launcher, enum option option,
		       const char *value)
{
	switch (option) {
	case OPTION_NODES:
		read_nodes(launcher, value);
		break;
	case OPTION_PROCESSES:
		read_processes(launcher, value);
		break;
	case OPTION_NODE_RANK:
		launcher->same_rank = is_number(value);
		break;
	case OPTION_ADDRESS:
		launcher->same_address |= is_loopback(value);
		break;
	case OPTION_BACKEND:
		launcher->own_rendezvous = strcmp(value, "static") != 0;
		break;
	case OPTION_CONFIG:
		snprintf(launcher->config, sizeof(launcher->config), "%s",
			 value);
		break;
	default:
		break;
	}
}

/* value is the text behind "=" or the next word; NULL if there is none. */
static void read_option(struct ddp_launcher *launcher, enum option option,
			const char *value)
{
	launcher->standalone |= option == OPTION_STANDALONE;
	launcher->cpu |= option == OPTION_CPU;
	launcher->help |= option == OPTION_HELP;
	launcher->no_ssh |= option == OPTION_NO_SSH;
	launcher->node_rank |= option == OPTION_NODE_RANK;
	launcher->world |= option == OPTION_WORLD;
	launcher->parallel |= option == OPTION_PARALLEL ||
			      option == OPTION_CONFIG;
	launcher->port |= option == OPTION_PORT || option == OPTION_CONFIG;
	if (value)
		read_value(launcher, option, value);
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
		} else if (option > OPTION_NO_SSH && words.count > 0 &&
			   words.at[0][0] != '-' &&
			   !is_python_file(words.at[0])) {
			value = words.at[0];
			ddp_words_skip(&words, 1);
		}
		read_option(launcher, option, value);
	}
}

/* The search notes what a command runs, and where. */
struct search {
	struct ddp_launcher *launcher;
	struct ddp_place at;		/* the launcher's */
	struct {
		unsigned int choice, branch;
		enum ddp_launcher_kind kind;	/* NONE: a program */
	} seen[SEEN_MAX];		/* in branches */
	size_t count;
	bool program;			/* python runs one */
	bool other;			/* a program runs if the launcher's
					 * branch does not, or in its place */
};

static void note_seen(struct search *search, const struct ddp_place *place,
		      enum ddp_launcher_kind kind)
{
	if (place->choice == 0 || search->count == SEEN_MAX)
		return;
	search->seen[search->count].choice = place->choice;
	search->seen[search->count].branch = place->branch;
	search->seen[search->count++].kind = kind;
}

/* A rank's own program. One behind the launcher's branch may be instead of it. */
static void note_program(struct search *search, const struct ddp_place *place)
{
	note_seen(search, place, DDP_LAUNCHER_NONE);
	search->other |= search->at.choice > 0 &&
			 place->choice != search->at.choice;
}

/* A branch that ends the script is instead of what is behind it. */
static void note_exit(struct search *search, const struct ddp_place *place)
{
	size_t i;

	for (i = 0; i < search->count; i++)
		search->other |= search->launcher->kind == DDP_LAUNCHER_NONE &&
			search->seen[i].choice == place->choice &&
			search->seen[i].branch == place->branch;
}

/* The first launcher keeps what one in another branch says, too. */
static void join(struct ddp_launcher *launcher,
		 const struct ddp_launcher *other)
{
	launcher->standalone &= other->standalone;
	launcher->node_rank &= other->node_rank;
	launcher->same_rank &= other->same_rank;
	launcher->same_address &= other->same_address;
	launcher->own_rendezvous &= other->own_rendezvous;
	launcher->no_ssh &= other->no_ssh;
	launcher->cpu &= other->cpu;
	launcher->parallel &= other->parallel;
	launcher->port &= other->port;
	launcher->world &= other->world;
	if (launcher->nodes_min != other->nodes_min ||
	    launcher->nodes_max != other->nodes_max)
		launcher->nodes_min = launcher->nodes_max = 0;
	if (launcher->processes != other->processes)
		launcher->processes = 0;
}

static void note_launcher(struct search *search, const struct ddp_place *place,
			  const struct ddp_launcher *launcher)
{
	note_seen(search, place, launcher->kind);
	if (search->launcher->kind == DDP_LAUNCHER_NONE) {
		search->at = *place;
		*search->launcher = *launcher;
		snprintf(search->launcher->file, sizeof(launcher->file), "%s",
			 place->file ? place->file : "");
		search->launcher->line = place->line;
	} else if (place->choice && place->choice == search->at.choice &&
		   place->branch != search->at.branch) {
		join(search->launcher, launcher);
	}
}

/* A rank's own program, as far as a name tells. "$RUN a.py" may be one. */
static bool is_program(struct ddp_words words)
{
	const char *name = words.at[0];

	if (!is_python(name))
		return name[0] == '$';
	name = find_script(&words);
	return name && strcmp(name, "pip") != 0;
}

static bool look_at(const struct ddp_words *command,
		    const struct ddp_place *place, void *data)
{
	struct ddp_words words = *command;
	const struct program *program = find_program(&words);
	struct search *search = data;
	struct ddp_launcher launcher;

	if (!program) {
		search->program |= is_program(*command) &&
				   is_python(command->at[0]);
		if (is_program(*command))
			note_program(data, place);
		else if (strcmp(command->at[0], "exit") == 0)
			note_exit(data, place);
		return false;
	}
	memset(&launcher, 0, sizeof(launcher));
	launcher.kind = program->kind;
	launcher.name = program->called;
	read_arguments(&launcher, words);
	if (!launcher.help)
		note_launcher(data, place, &launcher);
	return true;
}

bool ddp_launcher_find(char *const *command, ddp_command_read_fn read,
		       struct ddp_launcher *launcher)
{
	struct search search = { .launcher = launcher };
	size_t i;

	memset(launcher, 0, sizeof(*launcher));
	ddp_command_visit(command, read, look_at, &search);
	launcher->program = search.program;
	launcher->disputed = search.other;
	for (i = 0; i < search.count; i++)
		launcher->disputed |=
			search.seen[i].choice == search.at.choice &&
			search.seen[i].branch != search.at.branch &&
			search.seen[i].kind != launcher->kind;
	return launcher->kind != DDP_LAUNCHER_NONE;
}

/*
 * The value of a key that is the first on its line, as YAML and JSON have it.
 * NULL: there is none.
 */
static const char *find_key(const char *text, const char *key)
{
	static const char blanks[] = " \t'\"";
	size_t length = strlen(key);
	const char *at;

	for (; text; text = strchr(text, '\n')) {
		at = text + strspn(text, " \t\n'\"");
		text = at;
		if (strncmp(at, key, length) != 0)
			continue;
		at += length + strspn(at + length, blanks);
		if (*at == ':')
			return at + 1 + strspn(at + 1, blanks);
	}
	return NULL;
}

void ddp_launcher_read_config(struct ddp_launcher *launcher, const char *text)
{
	const char *machines = find_key(text, "num_machines");
	const char *rank = find_key(text, "machine_rank");
	uint64_t count;

	if (launcher->nodes_max == 0 && machines &&
	    ddp_scan_number(&machines, 1, UINT32_MAX, &count) == 0)
		launcher->nodes_min = launcher->nodes_max = (uint32_t)count;
	if (!launcher->node_rank && launcher->nodes_max > 1 && rank &&
	    *rank >= '0' && *rank <= '9')
		launcher->node_rank = launcher->same_rank = true;
}

bool ddp_launcher_is_apart(const struct ddp_launcher *launcher, uint32_t nodes)
{
	return nodes > 0 && launcher->nodes_min > nodes && launcher->node_rank;
}

#define ITSELF "start the program itself, one rank a GPU: srun --ddp python3 " \
	"PROGRAM"

/* Launchers that make their worlds without this step's variables. */
static int check_kind(const struct ddp_launcher *launcher, uint32_t nodes,
		      struct ddp_error *error)
{
	if (launcher->kind == DDP_LAUNCHER_SSH && nodes > 1 &&
	    !(launcher->no_ssh && launcher->node_rank))
		return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				     "%s starts ranks on other nodes itself, "
				     "by ssh or mpirun, outside the step; "
				     ITSELF, launcher->name);
	if (launcher->kind == DDP_LAUNCHER_COMPOSER && !launcher->world)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				     "%s takes WORLD_SIZE and LOCAL_WORLD_SIZE "
				     "for what it is to start, and would start "
				     "too few ranks; " ITSELF, launcher->name);
	return 0;
}

/* Refuse what each node has for itself while the others wait for it. */
static int check_sameness(const struct ddp_launcher *launcher, uint32_t nodes,
			  struct ddp_error *error)
{
	bool accelerate = launcher->kind == DDP_LAUNCHER_ACCELERATE;
	const char *rank = accelerate ? "--num_machines and --machine_rank" :
			   "--node_rank";

	if (launcher->standalone)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				     "%s --standalone makes a world of its own "
				     "on each of %u nodes; leave it out, or "
				     "use one node: -N1", launcher->name,
				     nodes);
	/* It reads neither of the others for one machine. */
	if (accelerate && launcher->nodes_max == 1)
		return 0;
	if (launcher->same_rank)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				     "%s gets the same number of its node on "
				     "each of %u nodes, which then wait for "
				     "each other; leave %s out",
				     launcher->name, nodes, rank);
	if (launcher->same_address)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				     "%s is to meet the others at localhost, "
				     "which is another machine on each of %u "
				     "nodes; leave %s out", launcher->name,
				     nodes, accelerate ?
				     "--main_process_ip" :
				     "--rdzv_endpoint and --master_addr");
	return 0;
}

static int check_nodes(const struct ddp_launcher *launcher, uint32_t nodes,
		       struct ddp_error *error)
{
	const char *option =
		launcher->kind == DDP_LAUNCHER_ACCELERATE ? "--num_machines" :
		launcher->kind == DDP_LAUNCHER_FABRIC ? "--num-nodes" :
		"--nnodes";
	uint32_t max = launcher->nodes_max;

	if (launcher->kind == DDP_LAUNCHER_FABRIC && nodes > 1 &&
	    (max == 0 || !launcher->node_rank))
		return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				     "%s without --num-nodes and --node-rank "
				     "is for one node, and the step has %u; "
				     ITSELF, launcher->name, nodes);
	if (max == 0 || (launcher->nodes_min <= nodes && nodes <= max) ||
	    (launcher->kind == DDP_LAUNCHER_ACCELERATE && max == 1) ||
	    ddp_launcher_is_apart(launcher, nodes))
		return 0;
	if (nodes == 1)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				     "%s %s says %u, and the step has 1 node; "
				     "start one srun for all nodes, without a "
				     "loop: -N%u; or --ddp=off", launcher->name,
				     option, max, max);
	return ddp_error_set(error, DDP_ERROR_ARGUMENT,
			     "%s %s says %u, and the step has %u nodes; leave "
			     "it out, or give -N%u to srun", launcher->name,
			     option, max, nodes, max);
}

int ddp_launcher_check(const struct ddp_launcher *launcher, uint32_t nodes,
		       struct ddp_error *error)
{
	if (check_kind(launcher, nodes, error) < 0 ||
	    (nodes > 1 && check_sameness(launcher, nodes, error) < 0))
		return -1;
	return check_nodes(launcher, nodes, error);
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
