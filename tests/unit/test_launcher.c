/* SPDX-License-Identifier: BSD-3-Clause */
/* Which commands are launchers, and what their arguments say. */
#define _GNU_SOURCE
#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>

#include "request/launcher.h"

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

/* srun would read scripts of these names. */
static const struct {
	const char *name, *text;
} scripts[] = {
	{ "run.sh", "#!/bin/sh\n# torchrun\ncd a\n\ntorchrun a.py\n" },
	{ "outer.sh", "#!/bin/sh\nexec bash ./inner.sh x\n" },
	{ "./inner.sh", "set -e\naccelerate launch a.py\n" },
	{ "moved.sh", "cd /data\n./inner.sh\n" },
	{ "/moved.sh", "cd /data\n/inner.sh\n" },
	{ "/inner.sh", "torchrun --nnodes=2 a.py\n" },
	{ "self.sh", "sh self.sh\n" },
	{ "plain.sh", "python3 a.py\n" },
	{ "torchrun", "#!/bin/sh\n'exec' python \"$0\" \"$@\"\n" },
	{ "either.sh", "if x; then\n torchrun a.py\nelse\n python3 a.py\nfi" },
	{ "variable.sh", "if x; then\n torchrun a.py\nelse\n $RUN a.py\nfi" },
	{ "both.sh", "case $N in\n1) torchrun --standalone --nproc-per-node=2 "
	  "a.py;;\n*) torchrun --nnodes=$N --nproc-per-node=2 a.py;;\nesac" },
	{ "kinds.sh", "case $L in\na) accelerate launch a.py;;\n"
	  "*) torchrun a.py;;\nesac" },
	{ "setup.sh", "if x; then\n python3 get.py\nfi\ntorchrun a.py" },
	{ "pip.sh", "if x; then\n python -m pip install b\nelse\n"
	  " torchrun a.py\nfi" },
	{ "function.sh", "one() {\n python3 a.py\n}\nmany() {\n torchrun a.py"
	  "\n}\n$@" },
	{ "deep.sh", "if x; then\n bash -c 'python3 a.py'\nelse\n"
	  " bash -c 'torchrun a.py'\nfi" },
};

static char *read_script(const char *name, bool shell)
{
	size_t i;

	for (i = 0; i < ROWS(scripts); i++)
		if (strcmp(name, scripts[i].name) == 0 &&
		    (shell || strchr(name, '/') ||
		     strncmp(scripts[i].text, "#!", 2) == 0))
			return strdup(scripts[i].text);
	return NULL;
}

/* The words of a command, '|' between them. */
static bool find(const char *command, struct ddp_launcher *launcher)
{
	char *words[64], *copy = strdup(command), *at = copy;
	size_t count = 0;
	bool found;

	cr_assert(copy);
	while (at && count < 63)
		words[count++] = strsep(&at, "|");
	words[count] = NULL;
	found = ddp_launcher_find(words, read_script, launcher);
	free(copy);
	return found;
}

static const char *const none[] = {
	"python|train.py", "python3|train.py|torchrun", "echo|torchrun",
	"python|-m|mypkg|torchrun", "python|-m|mypkg|-m|torch.distributed.run",
	"python|-c|torchrun", "python", "python|-m", "python|-u", "torchrunner",
	"./torchrun.sh", "a/torchrun/b", "accelerate|config", "accelerate",
	"accelerate|test", "bash|plain.sh|torchrun", "bash", "bash|-c",
	"bash|-c|echo torchrun", "bash|-c|echo 'a; torchrun x'",
	"bash|-c|python train.py # torchrun", "bash|-c|echo $(torchrun x)",
	"bash|-c|python train.py|torchrun", "bash|-x|torchrun",
	"env|A=torchrun|python|train.py", "env", "env|A=b", "timeout|torchrun",
	"timeout|-s|torchrun|9|a.out", "nice|-n|torchrun|a.out",
	"conda|install|torchrun", "uv|pip|torchrun", "nsys|stats|torchrun",
	"apptainer|exec|torchrun|python|train.py", "apptainer|run|torchrun",
	"ch-run|torchrun|--|python|train.py", "podman|exec|a|torchrun",
	"podman|run|--name|a|torchrun|python|train.py",
	"python|train/torch/distributed/walk.py", "", "a/", "A=b",
	"python|xtorch/distributed/run.py", "pythonic|-m|torch.distributed.run",
	"sh|-c|", "sh|-c|;;&|torchrun",
	/* Names, and words that are no command */
	"ds|a.py", "composer|install", "tune|run|recipe", "tune|ls",
	"fabric|deploy", "lightning|run|app|a.py", "command|-v|torchrun",
	"bash|-c|command -v torchrun && python3 train.py",
	"bash|-c|cat <<E\ntorchrun a.py\nE\npython3 a.py",
	"bash|-c|case $x in\ntorchrun) python3 a.py ;; esac",
	"bash|-c|torchrun() {\n python3 \"$@\"; }",
	"bash|-c|if torchrun --help; then python3 a.py; fi",
	"torchrun|--nnodes|2|-h",
	/* In scripts */
	"bash|plain.sh", "bash|absent.sh", "moved.sh", "bash|moved.sh",
	"bash|self.sh", "python3|run.sh", "plain.sh",
};

Test(launcher, finds_none_where_there_is_none)
{
	struct ddp_launcher launcher;
	size_t i;

	for (i = 0; i < ROWS(none); i++)
		cr_expect(!find(none[i], &launcher) &&
			  launcher.kind == DDP_LAUNCHER_NONE, "%s", none[i]);
}

#define T DDP_LAUNCHER_TORCHRUN
#define A DDP_LAUNCHER_ACCELERATE
#define F DDP_LAUNCHER_FABRIC
#define C DDP_LAUNCHER_COMPOSER
#define S DDP_LAUNCHER_SSH

static const struct {
	const char *command;
	enum ddp_launcher_kind kind;
} some[] = {
	{ "torchrun|train.py", T }, { "/opt/env/bin/torchrun|train.py", T },
	{ "torchrun", T }, { "python|-m|torch.distributed.run|train.py", T },
	{ "python3|-m|torch.distributed.launch|train.py", T },
	{ "/usr/bin/python3.11|-u|-m|torch.distributed.run|a.py", T },
	{ "python|-W|ignore|-X|dev|-um|torch.distributed.run|a.py", T },
	{ "python|-mtorch.distributed.run|a.py", T },
	{ "python|/env/lib/torch/distributed/run.py|a.py", T },
	{ "python|/env/lib/torch/distributed/launch.py|a.py", T },
	{ "python3|/env/bin/torchrun|a.py", T },
	{ "accelerate|launch|a.py", A }, { "accelerate-launch|a.py", A },
	{ "python|-m|accelerate.commands.launch|a.py", A },
	{ "python|-m|accelerate.commands.accelerate_cli|launch|a.py", A },
	{ "/env/bin/accelerate|launch|a.py", A },
	{ "deepspeed|a.py", S }, { "colossalai|run|a.py", S },
	{ "horovodrun|-np|2|python3|a.py", S },
	{ "python|-m|deepspeed.launcher.runner|a.py", S },
	{ "tune|run|--nproc_per_node|2|recipe", T },
	{ "fabric|run|a.py", F }, { "lightning|run|model|a.py", F },
	{ "composer|-n|2|a.py", C },
	/* Behind other programs */
	{ "env|-u|C|A=b|torchrun|a.py", T }, { "env|-i|--|torchrun", T },
	{ "nice|-n|5|torchrun|a.py", T }, { "nice|torchrun|a.py", T },
	{ "timeout|-k|9|60|torchrun|a.py", T }, { "time|-p|torchrun", T },
	{ "numactl|-N|0|--membind=0|torchrun|a.py", T },
	{ "taskset|-c|0-3|torchrun|a.py", T },
	{ "nohup|env|A=b|python|-m|torch.distributed.run|a.py", T },
	{ "stdbuf|-oL|torchrun|a.py", T }, { "stdbuf|-o|L|torchrun", T },
	{ "conda|run|-n|env|--no-capture-output|torchrun|a.py", T },
	{ "uv|run|torchrun|a.py", T }, { "poetry|run|accelerate|launch", A },
	{ "uv|run|--with|torch|python|-m|torch.distributed.run|a.py", T },
	{ "apptainer|exec|--nv|-B|/data|a.sif|torchrun|a.py", T },
	{ "singularity|exec|--bind|/data|a.sif|bash|-c|torchrun a.py", T },
	{ "apptainer|run|--nv|a.sif|torchrun|a.py", T },
	{ "singularity|run|-B|/data|a.sif|torchrun|a.py", T },
	{ "apptainer|exec|--no-mount|home|--cwd|/mnt|a.sif|torchrun", T },
	{ "podman|run|--rm|--env-host|-v|/a:/b|--net=host|img|torchrun", T },
	{ "podman|run|-it|--userns|keep-id|-e|A=b|img|accelerate|launch", A },
	{ "podman|run|--rm|--rootfs|/img|bash|-c|torchrun a.py", T },
	{ "podman-hpc|run|--gpu|--openmpi-pmix|-e|A|img|torchrun", T },
	{ "podman-hpc|shared-run|--gpu|img|torchrun|a.py", T },
	{ "ch-run|-b|/data|--private-tmp|a.img|--|torchrun|a.py", T },
	{ "pixi|run|-e|gpu|torchrun|a.py", T },
	{ "nsys|profile|-o|report|--trace=cuda|torchrun|a.py", T },
	/* In a shell */
	{ "bash|-c|torchrun a.py", T }, { "sh|-c|exec torchrun a.py", T },
	{ "bash|-lc|source env/bin/activate && torchrun a.py", T },
	{ "bash|-l|-c|cd a; A=b C=d torchrun a.py", T },
	{ "bash|-euo|pipefail|-c|torchrun a.py", T },
	{ "/bin/bash|--login|-c|module load a\ntorchrun a.py", T },
	{ "bash|-c|if true; then torchrun a.py; fi", T },
	{ "bash|-c|(cd a && \"torchrun\" a.py)", T },
	{ "bash|-c|echo $(date); { torchrun a.py; }", T },
	{ "bash|-c|python -m torch.distributed.run \\\n a.py", T },
	{ "bash|-c|bash -c \"exec accelerate launch a.py\"", A },
	{ "bash|-c|python prepare.py; accelerate launch a.py", A },
	{ "bash|-c|f() { torchrun a.py; }; f", T },
	/* In scripts */
	{ "run.sh", T }, { "bash|-x|run.sh|1", T }, { "env|A=b|sh|run.sh", T },
	{ "bash|-c|sh run.sh", T }, { "outer.sh", A }, { "/moved.sh", T },
	{ "torchrun|a.py", T },
};

Test(launcher, finds_each_where_it_is)
{
	struct ddp_launcher launcher;
	size_t i;

	for (i = 0; i < ROWS(some); i++)
		cr_expect(find(some[i].command, &launcher) &&
			  launcher.kind == some[i].kind && launcher.name,
			  "%s", some[i].command);
}

/* The launcher is there; branches of its script may disagree. */
static const struct {
	const char *command, *file;
	unsigned int line;
	bool disputed;
} places[] = {
	{ "torchrun|a.py", "", 0, false },
	{ "bash|-c|torchrun a.py", "", 0, false },
	{ "run.sh", "run.sh", 5, false },
	{ "outer.sh", "./inner.sh", 2, false },
	{ "bash|either.sh", "either.sh", 2, true },
	{ "bash|variable.sh", "variable.sh", 2, true },
	{ "bash|both.sh", "both.sh", 2, false },
	{ "bash|kinds.sh", "kinds.sh", 2, true },
	{ "bash|setup.sh", "setup.sh", 4, false },
	{ "bash|pip.sh", "pip.sh", 4, false },
	{ "bash|function.sh", "function.sh", 5, true },
	{ "bash|deep.sh", "deep.sh", 4, true },
	{ "bash|-c|if x; then torchrun a.py; else python3 a.py; fi", "", 0,
	  true },
	/* A program behind a branch may run instead of it; one before it does not. */
	{ "bash|-c|if x; then torchrun a.py; exit; fi; python3 a.py", "", 0,
	  true },
	{ "bash|-c|if x; then python3 a.py; exit; fi; torchrun a.py", "", 0,
	  true },
	{ "bash|-c|if x; then python3 b.py; fi; if y; then exit 1; fi; "
	  "torchrun a.py", "", 0, false },
	{ "bash|-c|f() { torchrun a.py; }; python3 a.py", "", 0, true },
	{ "bash|-c|[ -n \"$A\" ] && exec torchrun a.py\npython3 a.py", "", 0,
	  true },
	{ "bash|-c|[ -d a ] && python3 b.py; cd a && torchrun a.py; "
	  "python3 c.py", "", 0, false },
};

Test(launcher, says_where_it_is)
{
	struct ddp_launcher launcher;
	size_t i;

	for (i = 0; i < ROWS(places); i++)
		cr_expect(find(places[i].command, &launcher) &&
			  strcmp(launcher.file, places[i].file) == 0 &&
			  launcher.line == places[i].line &&
			  launcher.disputed == places[i].disputed,
			  "%s: %s %u %d", places[i].command, launcher.file,
			  launcher.line, launcher.disputed);
}

Test(launcher, of_two_branches_counts_what_both_say)
{
	struct ddp_launcher launcher;

	cr_expect(find("bash|both.sh", &launcher));
	cr_expect(!launcher.standalone);
	cr_expect_eq(launcher.processes, 2);
}

Test(launcher, a_shell_in_a_shell_ends_somewhere)
{
	struct ddp_launcher launcher;

	cr_expect(find("sh|-c|sh -c \"sh -c 'sh -c torchrun'\"", &launcher));
	cr_expect(!find("sh|-c|sh -c \"sh -c 'sh -c \\\"sh -c torchrun\\\"'\"",
			&launcher));
}

/* Expected of two nodes: a part of the error's text; NULL: no error. */
static const struct {
	const char *command;
	uint32_t min, max, workers;
	const char *refusal;
} arguments[] = {
	{ "torchrun|a.py", 0, 0, 0, NULL },
	{ "torchrun|--nnodes=2|a.py", 2, 2, 0, NULL },
	{ "torchrun|--nnodes|2|--nproc-per-node|4|a.py", 2, 2, 4, NULL },
	{ "torchrun|--nproc_per_node=8|a.py", 0, 0, 8, NULL },
	{ "torchrun|--nproc-per-node=gpu|a.py", 0, 0, 0, NULL },
	{ "torchrun|--nnode=1:4|--rdzv_backend|c10d|a.py", 1, 4, 0, NULL },
	{ "torchrun|--nnodes=3:4|a.py", 3, 4, 0, "torchrun --nnodes says 4, "
	  "and the step has 2 nodes; leave it out, or give -N4 to srun" },
	{ "torchrun|--nnodes=1|a.py", 1, 1, 0, "--nnodes says 1, " },
	{ "torchrun|--nnodes=1:1|a.py", 1, 1, 0, "--nnodes says 1, " },
	{ "torchrun|--standalone|a.py", 0, 0, 0, "torchrun --standalone makes "
	  "a world of its own on each of 2 nodes; leave it out, or use one "
	  "node: -N1" },
	{ "torchrun|--stand|--nnodes=2|a.py", 2, 2, 0, "--standalone" },
	{ "python|-m|torch.distributed.run|--standalone|a.py", 0, 0, 0,
	  "torch.distributed.run --standalone makes" },
	/* The program's arguments are its own. */
	{ "torchrun|a.py|--standalone|--nnodes=1", 0, 0, 0, NULL },
	{ "torchrun|-m|a|--standalone", 0, 0, 0, NULL },
	{ "torchrun|-r|3|a.py|--nnodes=1", 0, 0, 0, NULL },
	{ "torchrun|--no-python|./a|--nnodes=1", 0, 0, 0, NULL },
	{ "torchrun|--unknown-flag|a.py|--nnodes=1", 0, 0, 0, NULL },
	{ "torchrun|--no-python|--|a|--nnodes=1", 0, 0, 0, NULL },
	/* What is not known yet, or no number */
	{ "bash|-c|torchrun --nnodes=$SLURM_NNODES a.py", 0, 0, 0, NULL },
	{ "bash|-c|torchrun --nnodes $N --nproc-per-node 2 a.py", 0, 0, 2,
	  NULL },
	{ "torchrun|--nnodes=0|a.py", 0, 0, 0, NULL },
	{ "torchrun|--nnodes=1:|a.py", 0, 0, 0, NULL },
	{ "torchrun|--nnodes=4:1|a.py", 0, 0, 0, NULL },
	{ "torchrun|--nnodes", 0, 0, 0, NULL },
	{ "bash|-c|torchrun --nnodes=1 a.py && true", 1, 1, 0,
	  "--nnodes says 1" },
	/* Accelerate counts all processes, or those of its one machine. */
	{ "accelerate|launch|--num_processes|4|--num_machines=2|a.py", 2, 2, 2,
	  NULL },
	{ "accelerate|launch|--multi_gpu|--num_processes=2|a.py", 0, 0, 2,
	  NULL },
	{ "accelerate|launch|--num_machines=1|--num_processes=2|a.py", 1, 1, 2,
	  NULL },
	{ "accelerate|launch|--num_machines=3|a.py", 3, 3, 0,
	  "accelerate launch --num_machines says 3, " },
	{ "accelerate|launch|--enable_cpu_affinity|--num_machines|2|a.py", 2, 2,
	  0, NULL },
	{ "deepspeed|a.py", 0, 0, 0, "deepspeed starts ranks on other nodes "
	  "itself, by ssh or mpirun, outside the step; start the program "
	  "itself, one rank a GPU: srun --ddp python3 PROGRAM" },
	{ "deepspeed|--no_ssh|--node_rank|$SLURM_NODEID|a.py", 0, 0, 0, NULL },
	{ "colossalai|run|--nproc_per_node|2|a.py", 0, 0, 2, "colossalai run "
	  "starts ranks on other nodes" },
	{ "composer|-n|2|a.py", 0, 0, 2, "composer takes WORLD_SIZE and "
	  "LOCAL_WORLD_SIZE for what it is to start" },
	{ "composer|-n|2|--world_size|4|--node_rank|$SLURM_NODEID|a.py", 0, 0,
	  2, NULL },
	{ "fabric|run|--devices=2|a.py", 0, 0, 2, "fabric run without "
	  "--num-nodes and --node-rank is for one node, and the step has 2" },
	{ "fabric|run|--num-nodes=2|--node-rank=$SLURM_NODEID|a.py", 2, 2, 0,
	  NULL },
	/* The same on both nodes */
	{ "torchrun|--nnodes=2|--node_rank|0|a.py", 2, 2, 0, "torchrun gets "
	  "the same number of its node on each of 2 nodes, which then wait for "
	  "each other; leave --node_rank out" },
	{ "torchrun|--nnodes=2|--node_rank=$SLURM_NODEID|a.py", 2, 2, 0, NULL },
	{ "torchrun|--rdzv_endpoint=localhost:29400|a.py", 0, 0, 0, "torchrun "
	  "is to meet the others at localhost, which is another machine on "
	  "each of 2 nodes; leave --rdzv_endpoint and --master_addr out" },
	{ "torchrun|--master-addr|127.0.0.1|a.py", 0, 0, 0, "at localhost" },
	{ "torchrun|--rdzv_endpoint=[::1]:0|a.py", 0, 0, 0, "at localhost" },
	{ "torchrun|--rdzv_endpoint=localhost.example:1|a.py", 0, 0, 0, NULL },
	{ "accelerate|launch|--num_machines|1|--machine_rank|0|"
	  "--main_process_ip|127.0.0.1|a.py", 1, 1, 0, NULL },
	{ "accelerate|launch|--machine_rank|0|--num_machines|2|a.py", 2, 2, 0,
	  "leave --num_machines and --machine_rank out" },
};

/* These are right on one node. */
static const char *const alone[] = {
	"deepspeed|a.py", "colossalai|run|a.py", "fabric|run|a.py",
	"torchrun|--node_rank=0|a.py", "torchrun|--standalone|a.py",
	"torchrun|--rdzv_endpoint=localhost:0|a.py", "horovodrun|a.out",
	/* This one is started by one srun a node. */
	"torchrun|--nnodes=2|--node_rank=1|a.py",
};

Test(launcher, may_be_alone)
{
	struct ddp_launcher launcher;
	struct ddp_error error;
	size_t i;

	for (i = 0; i < ROWS(alone); i++) {
		cr_expect(find(alone[i], &launcher));
		cr_expect_eq(ddp_launcher_check(&launcher, 1, &error), 0, "%s",
			     alone[i]);
		cr_expect_eq(ddp_launcher_is_apart(&launcher, 1),
			     i + 1 == ROWS(alone), "%s", alone[i]);
	}
	cr_expect(find("torchrun|--nnodes=2|a.py", &launcher));
	cr_expect_eq(ddp_launcher_check(&launcher, 1, &error), -1);
	cr_expect_str_eq(error.text, "torchrun --nnodes says 2, and the step "
			 "has 1 node; start one srun for all nodes, without a "
			 "loop: -N2; or --ddp=off");
}

/* Accelerate's files: nodes, and whether there is one node rank for all. */
static const struct {
	const char *command, *text;
	uint32_t nodes;
	bool same_rank;
} configs[] = {
	{ "accelerate|launch|a.py", NULL, 0, false },
	{ "accelerate|launch|a.py", "machine_rank: 0\nnum_machines: 2\n", 2,
	  true },
	{ "accelerate|launch|a.py", "num_machines: 1\nmachine_rank: 0\n", 1,
	  false },
	{ "accelerate|launch|a.py", "{\n  \"num_machines\": 2,\n  "
	  "\"machine_rank\": 1\n}\n", 2, true },
	{ "accelerate|launch|a.py", "num_machines: '2'\n", 2, false },
	{ "accelerate|launch|--machine_rank|$R|a.py",
	  "num_machines: 2\nmachine_rank: 0\n", 2, false },
	{ "accelerate|launch|--num_machines=3|a.py",
	  "num_machines: 2\nmachine_rank: null", 3, false },
	{ "accelerate|launch|a.py", "xnum_machines: 2\nnum_machines", 0,
	  false },
};

Test(launcher, has_a_configuration)
{
	struct ddp_launcher launcher;
	size_t i;

	for (i = 0; i < ROWS(configs); i++) {
		cr_expect(find(configs[i].command, &launcher));
		ddp_launcher_read_config(&launcher, configs[i].text);
		cr_expect(launcher.nodes_max == configs[i].nodes &&
			  launcher.same_rank == configs[i].same_rank, "%s: %u",
			  configs[i].text, launcher.nodes_max);
	}
}

Test(launcher, reads_the_arguments)
{
	struct ddp_launcher launcher;
	struct ddp_error error;
	size_t i;
	int rc;

	for (i = 0; i < ROWS(arguments); i++) {
		cr_expect(find(arguments[i].command, &launcher) &&
			  launcher.nodes_min == arguments[i].min &&
			  launcher.nodes_max == arguments[i].max &&
			  ddp_launcher_workers(&launcher) ==
			  arguments[i].workers, "%s", arguments[i].command);
		error = (struct ddp_error){ .text = "" };
		rc = ddp_launcher_check(&launcher, 2, &error);
		cr_expect_eq(rc, arguments[i].refusal ? -1 : 0, "%s",
			     arguments[i].command);
		if (arguments[i].refusal)
			cr_expect(strstr(error.text, arguments[i].refusal),
				  "%s: %s", arguments[i].command, error.text);
	}
}

Test(launcher, one_node_is_a_world)
{
	struct ddp_launcher launcher;

	cr_expect(find("torchrun|--standalone|--nnodes=1|a.py", &launcher));
	cr_expect_eq(ddp_launcher_check(&launcher, 1, NULL), 0);
	cr_expect(find("torchrun|--nnodes=2|a.py", &launcher));
	cr_expect_eq(ddp_launcher_check(&launcher, 1, NULL), -1);
}

Test(launcher, sees_a_processor_asked_for)
{
	struct ddp_launcher launcher;

	cr_expect(find("accelerate|launch|--cpu|a.py", &launcher));
	cr_expect(launcher.cpu);
	cr_expect(find("accelerate|launch|--config_file|c.yaml|a.py",
		       &launcher));
	cr_expect(!launcher.cpu);
	cr_expect(find("accelerate|launch|a.py|--cpu", &launcher));
	cr_expect(!launcher.cpu);
}

Test(launcher, knows_who_needs_its_own_port)
{
	struct ddp_launcher launcher;

	cr_expect(find("accelerate|launch|--multi_gpu|a.py", &launcher) &&
		  ddp_launcher_needs_port(&launcher));
	cr_expect(find("accelerate|launch|--main_process_port|0|a.py",
		       &launcher) && !ddp_launcher_needs_port(&launcher));
	cr_expect(find("accelerate|launch|--config_file=c.yaml|a.py",
		       &launcher) && !ddp_launcher_needs_port(&launcher));
	cr_expect(find("torchrun|a.py", &launcher) &&
		  !ddp_launcher_needs_port(&launcher));
}

Test(launcher, knows_who_needs_a_gpu)
{
	static const char *const others[] = {
		"accelerate|launch|--cpu|a.py",
		"accelerate|launch|--multi_gpu|--num_processes=2|a.py",
		"accelerate|launch|--num_processes|2|--use_fsdp|a.py",
		"accelerate|launch|--config_file|c.yaml|a.py",
		"accelerate|launch|--config_file=c.yaml|a.py", "torchrun|a.py",
	};
	struct ddp_launcher launcher;
	size_t i;

	cr_expect(find("accelerate|launch|--num_processes=2|a.py|--multi_gpu",
		       &launcher) && ddp_launcher_needs_gpu(&launcher));
	for (i = 0; i < ROWS(others); i++)
		cr_expect(find(others[i], &launcher) &&
			  !ddp_launcher_needs_gpu(&launcher), "%s", others[i]);
}
