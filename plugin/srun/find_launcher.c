/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds torchrun and the like in the command of a step, and in its script. */
#define _GNU_SOURCE
#include "srun/srun.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "options/plugin.h"
#include "request/command.h"
#include "request/launcher.h"
#include "srun/cli.h"
#include "srun/rerun.h"
#include "util/file.h"

/* ---- files of the user's */

enum { SCRIPT_MAX = 64 << 10 };

/* All of a text, for the caller to free; NULL: it is none, or too long. */
static char *read_text(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	char *text = NULL;
	struct stat status;
	size_t length;

	if (fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode))
		text = ddp_file_read_fd(fd, SCRIPT_MAX, &length);
	if (fd >= 0)
		close(fd);
	if (text && strlen(text) == length)
		return text;
	free(text);
	return NULL;
}

/* A file in the folder in which the tasks begin. */
static char *read_here(const char *name)
{
	const char *folder = *name == '/' ? NULL : ddp_cli_get("chdir");
	char path[PATH_MAX];

	if (!folder)
		return read_text(name);
	return snprintf(path, sizeof(path), "%s/%s", folder, name) <
	       (int)sizeof(path) ? read_text(path) : NULL;
}

/* The first file of that name on PATH. */
static char *read_on_path(const char *name)
{
	const char *folders = getenv("PATH");
	char path[PATH_MAX];
	struct stat status;

	while (ddp_path_next(&folders, name, path))
		if (stat(path, &status) == 0 && !S_ISDIR(status.st_mode))
			return read_text(path);
	return NULL;
}

/*
 * Returns whether the first line names a shell, as "#!/usr/bin/env bash" does, and
 * "#!/usr/bin/env -S bash -e".
 */
static bool begins_script(const char *text)
{
	char program[128] = "", argument[128] = "", second[128] = "";
	const char *name;

	if (strncmp(text, "#!", 2) != 0)
		return false;
	text += 2 + strspn(text + 2, " \t");
	sscanf(text, "%127[^ \t\n]%*[ \t]%127[^ \t\n]%*[ \t]%127[^ \t\n]",
	       program, argument, second);
	name = ddp_command_base(program);
	if (strcmp(name, "env") == 0)
		name = ddp_command_base(strcmp(argument, "-S") == 0 ? second :
					argument);
	return ddp_command_is_shell(name);
}

/*
 * A shell script, as ddp_command_read_fn in request/command.h wants it: unless
 * shell is true its first line names a shell. A name without a folder is sought
 * where a shell or Slurm would.
 */
static char *read_script(const char *name, bool shell)
{
	bool bare = strchr(name, '/') == NULL;
	char *text = bare && !shell ? NULL : read_here(name);

	if (!text && bare)
		text = read_on_path(name);
	if (text && (shell || begins_script(text)))
		return text;
	free(text);
	return NULL;
}

/*
 * The configuration that "accelerate launch" reads: the file that its command
 * names, or if that is "" its default file; NULL: there is none.
 */
static char *read_config(const char *name)
{
	static const char *const ends[] = { "yaml", "json" };
	const char *home = getenv("HF_HOME"), *cache = getenv("XDG_CACHE_HOME");
	const char *user = getenv("HOME");
	const char *root = home ? home : cache ? cache : user ? user : "";
	const char *middle = home ? "" : cache ? "/huggingface" :
			     "/.cache/huggingface";
	char path[PATH_MAX], *text = NULL;
	size_t i;

	if (*name)
		return read_here(name);
	for (i = 0; !text && i < 2; i++)
		if (snprintf(path, sizeof(path),
			     "%s%s/accelerate/default_config.%s", root, middle,
			     ends[i]) < (int)sizeof(path))
			text = read_text(path);
	return text;
}

/* ---- the launcher */

/*
 * Accelerate's --cpu starts one process and leaves the environment as it is: a
 * rank, not a launcher.
 */
static bool find_launcher(uint32_t component, ddp_command_read_fn read,
			  struct ddp_launcher *launcher)
{
	char **argv = ddp_arguments_read();
	char **command = ddp_arguments_command(argv, component), *config;
	bool found = command && ddp_launcher_find(command, read, launcher);

	ddp_arguments_free(argv);
	if (!found || launcher->cpu)
		return false;
	if (launcher->kind == DDP_LAUNCHER_ACCELERATE) {
		config = read_config(launcher->config);
		ddp_launcher_read_config(launcher, config);
		free(config);
	}
	return true;
}

/* A heterogeneous step has several nodes, though nobody knows how many yet. */
static uint32_t count_nodes(const struct ddp_launcher *launcher,
			    const struct ddp_request *request)
{
	if (ddp_srun.expected > 1)
		return launcher->nodes_max > 1 ? launcher->nodes_max : 2;
	return ddp_request_nodes(request);
}

/* Several tasks a node are the job's number, and not one for this step. */
static bool is_jobs(const struct ddp_request *request)
{
	return ddp_request_several(request) && !request->ntasks_per_gpu &&
	       !request->per_node_typed && request->in_job &&
	       (!request->ntasks || request->ntasks_inherited);
}

/*
 * Returns whether a launcher that a script calls is to start the ranks. It is
 * never refused, as the script may do something else before it comes there. A
 * number of tasks that the job has may be meant for it.
 */
static bool is_starter(const struct ddp_launcher *launcher, uint32_t nodes,
		       const struct ddp_request *request)
{
	bool counted = request->ntasks || request->ntasks_per_node;
	struct ddp_error error;
	char place[300];

	if (launcher->file[0])
		snprintf(place, sizeof(place), "%s line %u", launcher->file,
			 launcher->line);
	else
		strcpy(place, "the command");
	ddp_text_quote(place);
	if (nodes == 0)
		return false;
	if (is_jobs(request)) {
		if (!launcher->disputed &&
		    ddp_launcher_check(launcher, nodes, &error) == 0)
			slurm_info("slurm-ddp: %s calls %s, and the job has "
				   "several tasks a node, each of which does: "
				   "--ddp=torchrun starts one a node", place,
				   launcher->name);
		return false;
	}
	if (launcher->disputed) {
		if (!counted)
			slurm_info("slurm-ddp: %s calls %s, and another branch "
				   "does not: srun starts one task a rank; "
				   "--ddp=torchrun leaves the ranks to the "
				   "script", place, launcher->name);
		return false;
	}
	if (ddp_launcher_check(launcher, nodes, &error) < 0) {
		slurm_info("slurm-ddp: %s: %s%s", place, error.text, counted ?
			   "" : "; as it is, srun starts one task a GPU, "
			   "and each of them calls it");
		return false;
	}
	if (!counted)
		slurm_info("slurm-ddp: %s calls %s, which starts the ranks: "
			   "one task a node; --ddp=srun starts one a rank",
			   place, launcher->name);
	return true;
}

/* An earlier run of this srun may have filled in a variable for a component. */
static bool was_filled(const char *name, uint32_t component)
{
	char variable[64];

	snprintf(variable, sizeof(variable), "%s_HET_GROUP_%u", name, component);
	return ddp_rerun_added(variable);
}

/* Read what the user asked for. */
static void read_request(uint32_t component, struct ddp_request *request)
{
	ddp_asked_read(request);
	if (was_filled("SLURM_NTASKS", component))
		request->ntasks = NULL;
	if (was_filled("SLURM_NTASKS_PER_NODE", component))
		request->ntasks_per_node = NULL;
}

static bool read_launcher(uint32_t component, struct ddp_launcher *launcher,
			  bool *apart)
{
	struct ddp_request request;
	struct ddp_error error;
	bool reads;
	uint32_t nodes;

	read_request(component, &request);
	reads = ddp_plugin.torchrun ||
		!(request.pty || request.arbitrary ||
		  (ddp_request_several(&request) && !is_jobs(&request)));
	if (!find_launcher(component, reads ? read_script : NULL, launcher))
		return false;
	nodes = count_nodes(launcher, &request);
	*apart = ddp_launcher_is_apart(launcher, nodes);
	if (launcher->file[0] || launcher->disputed)
		return ddp_plugin.torchrun ||
		       is_starter(launcher, nodes, &request);
	if (nodes > 0 && ddp_launcher_check(launcher, nodes, &error) < 0)
		ddp_srun_refuse("%s", error.text);
	return true;
}

void ddp_launch_read(uint32_t component)
{
	struct ddp_launcher launcher = { .kind = DDP_LAUNCHER_NONE };
	bool apart = false;
	char workers[16];

	ddp_srun.launcher = NULL;
	if (ddp_plugin.srun)
		return;
	if (read_launcher(component, &launcher, &apart))
		ddp_srun.launcher = launcher.name;
	else if (ddp_plugin.torchrun)
		ddp_srun.launcher = "torchrun";
	if (!ddp_srun.launcher)
		return;
	snprintf(workers, sizeof(workers), "%u",
		 ddp_launcher_workers(&launcher));
	ddp_rerun_add(DDP_TELL_LAUNCHER, workers);
	if (apart || launcher.own_rendezvous)
		ddp_rerun_add(DDP_TELL_PET, apart ? "none" : "no-rank");
	if (ddp_launcher_needs_gpu(&launcher))
		ddp_rerun_add(DDP_TELL_NEEDS_GPU, launcher.name);
	if (ddp_launcher_needs_port(&launcher))
		ddp_rerun_add(DDP_TELL_NEEDS_PORT, launcher.name);
}

/* ---- a job's script */

/*
 * Returns true if a script may reach other nodes by one of these. It can have them
 * call a function, too.
 */
static bool goes_elsewhere(const char *text)
{
	static const char *const words[] = {
		"srun", "ssh", "mpirun", "mpiexec", "pdsh", "clush", "parallel",
	};
	size_t i;

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strstr(text, words[i]))
			return true;
	return false;
}

/* A program of Python's may start steps itself, by what no word here tells. */
static void check_script(const char *name, char *text, uint32_t nodes)
{
	char *shell[] = { "sh", "-c", text, NULL };
	struct ddp_launcher launcher;

	if (!begins_script(text) || goes_elsewhere(text))
		return;
	if (!ddp_launcher_find(shell, NULL, &launcher)) {
		if (launcher.program && !strstr(text, ".sh"))
			slurm_info("slurm-ddp: %s runs python without srun, on "
				   "the first of %u nodes and without --ddp, "
				   "unless it starts steps itself; write 'srun "
				   "python3 ...'", name, nodes);
	} else if (!launcher.disputed && !launcher.cpu &&
		   ddp_launcher_check(&launcher, nodes, NULL) == 0) {
		slurm_info("slurm-ddp: %s calls %s without srun, so it runs on "
			   "the first of %u nodes alone, and --ddp does nothing "
			   "for it; write 'srun %s ...'", name, launcher.name,
			   nodes, launcher.name);
	}
}

void ddp_launch_check_script(void)
{
	char **argv = ddp_arguments_read(), **command = NULL, *text = NULL;
	struct ddp_request request;
	uint32_t nodes;

	ddp_asked_read(&request);
	nodes = ddp_request_nodes(&request);
	if (argv && argv[0] && nodes > 1 && !ddp_cli_get("wrap") &&
	    strcmp(ddp_command_base(argv[0]), "sbatch") == 0)
		command = ddp_arguments_command(argv, 0);
	if (command)
		text = read_text(command[0]);
	if (text)
		check_script(ddp_text_quote(command[0]), text, nodes);
	free(text);
	ddp_arguments_free(argv);
}
