/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Refuses, or warns, before anything runs: by the options alone, by what the
 * site allows in the job's partition, and by what srun knows then.
 */
#define _GNU_SOURCE
#include "srun/srun.h"

#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "options/options.h"
#include "options/site.h"
#include "slurm/scontrol.h"
#include "srun/cli.h"
#include "srun/rerun.h"

/* ---- options */

/*
 * Returns true if a file's name has %t, %n or %N: Slurm then opens a file for
 * each task or node, on the nodes.
 */
static bool is_of_task(const char *name)
{
	while (name && (name = strchr(name, '%'))) {
		name++;
		name += strspn(name, "0123456789");
		if (*name && strchr("tnN", *name))
			return true;
	}
	return false;
}

/* Refuse what contradicts --ddp-logs and --ddp-show. */
static void check_logs(void)
{
	static const char *const files[] = { "output", "error" };
	const char *option = ddp_plugin.logs ? "--ddp-logs" : "--ddp-show";
	size_t i;

	if (!ddp_plugin.logs && !ddp_plugin.show)
		return;
	if (ddp_cli_isset("pty"))
		ddp_srun_refuse("%s: with --pty the output is one terminal's; "
				"leave out one of them", option);
	for (i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		if (is_of_task(ddp_cli_get(files[i])))
			ddp_srun_refuse("%s: the output goes to a file of each "
					"task or node already; leave out "
					"--%s=%.128s, or %s", option, files[i],
					ddp_cli_get(files[i]), option);
}

#define PYXIS_INHERITED "SLURM_SPANK__SLURM_SPANK_OPTION_pyxis_container_"

bool ddp_check_is_contained(void)
{
	static const char *const images[] = {
		"PYXIS_CONTAINER_IMAGE", "PYXIS_CONTAINER_NAME",
		/* an option of sbatch's or salloc's, handed on to their steps */
		PYXIS_INHERITED "image", PYXIS_INHERITED "name",
	};
	bool contained = ddp_check_has_argument("--container-") ||
		ddp_check_has_argument("--environment");	/* of Alps */
	size_t i;

	for (i = 0; i < sizeof(images) / sizeof(images[0]); i++)
		contained |= getenv(images[i]) != NULL;
	return contained;
}

void ddp_check_defaults(void)
{
	bool unwatched = ddp_plugin.unsupervised || ddp_cli_isset("async");
	bool single = ddp_cli_get("jobid") && ddp_srun.expected <= 1;
	const char *kill = ddp_rerun_added("SLURM_KILL_BAD_EXIT") ? NULL :
		ddp_cli_get("kill-on-bad-exit");

	if ((unwatched || kill) && !ddp_options_typed("--ddp-grace"))
		ddp_plugin.grace_s = 0;
	if ((unwatched || !single || ddp_cli_isset("pty") ||
	     (kill && strcmp(kill, "0") == 0)) &&
	    !ddp_options_typed("--ddp-restarts"))
		ddp_plugin.restarts = 0;
	if ((!single || ddp_cli_isset("async") || ddp_cli_isset("pty") ||
	     ddp_cli_isset("multi-prog") || ddp_check_is_contained()) &&
	    !ddp_options_typed("--ddp-check"))
		ddp_plugin.check = false;
}

bool ddp_check_options(void)
{
	const char *error;

	if (ddp_plugin.stray && !ddp_plugin.seen && !ddp_srun.again)
		ddp_srun_refuse("%s: given without --ddp; add --ddp",
				ddp_plugin.stray);
	if (!ddp_plugin.on && (ddp_plugin.seen || !ddp_srun.again))
		return false;
	error = ddp_options_error();
	if (error)
		ddp_srun_refuse("%s", error);
	check_logs();
	if (ddp_options_typed("--ddp-check") && ddp_plugin.check &&
	    ddp_cli_isset("async"))
		ddp_srun_refuse("--ddp-check: tells the result to an srun that "
				"waits; leave out it or --async");
	if (ddp_cli_get("no-allocate"))
		ddp_srun_refuse("--no-allocate: makes a step without a job, "
				"and --ddp needs one; leave out one of them");
	return true;
}

/* ---- the site */

/* The value of a word in what scontrol says, for ever; NULL: there is none. */
static char *copy_word(const char *text, const char *name)
{
	int length;
	const char *at = ddp_scontrol_find_word(text, name, &length);

	return length ? strndup(at, (size_t)length) : NULL;
}

/* The partition of a job; of one that runs, the only one. NULL: no answer. */
static char *ask_job(const char *job_id)
{
	return ddp_squeue_show(job_id, "-o", "%A %P");
}

/* The partition that Slurm takes where none is asked for. */
static char *ask_default(void)
{
	char *text = ddp_scontrol_show("partition", NULL), *line, *save;
	char *partition = NULL;
	int length;

	for (line = text ? strtok_r(text, "\n", &save) : NULL;
	     line && !partition; line = strtok_r(NULL, "\n", &save))
		if (strncmp(ddp_scontrol_find_word(line, "Default", &length),
			    "YES", 3) == 0)
			partition = copy_word(line, "PartitionName");
	free(text);
	if (!partition)
		ddp_srun_refuse("scontrol does not tell the default partition, "
				"on which plugstack.conf depends; choose one "
				"with -p");
	return partition;
}

/*
 * Inside a job Slurm has set it, for each component of a heterogeneous one; but
 * where several were asked for it may still be all of them.
 */
static char *find_job_partition(const char *job_id, uint32_t component)
{
	const char *group = ddp_cli_get_default("het-group"), *partition;
	const char *own = getenv("SLURM_JOB_ID");
	char variable[64], *answer;

	snprintf(variable, sizeof(variable),
		 "SLURM_JOB_PARTITION_HET_GROUP_%ld",
		 group ? atol(group) : (long)component);
	partition = getenv(variable);
	if (!partition)
		partition = getenv("SLURM_JOB_PARTITION");
	if (partition && !strchr(partition, ',') && own &&
	    strcmp(job_id, own) == 0)
		return strdup(partition);
	answer = ask_job(job_id);
	if (!answer)
		ddp_srun_refuse("squeue does not tell the partition of job "
				"%.64s, on which plugstack.conf depends",
				job_id);
	return answer;
}

/* Several with commas between where the job may run in either. */
static char *find_partition(uint32_t component)
{
	const char *job_id = ddp_cli_get("jobid");
	const char *partition = ddp_cli_get("partition");
	const char *own = getenv("SLURM_JOB_ID");

	if (!ddp_cli_available() && !own)
		ddp_srun_refuse("this srun does not show -p to plugins, and "
				"plugstack.conf depends on it; start the step "
				"in a job, by sbatch or salloc");
	if (!ddp_cli_available())
		job_id = own;
	if (job_id)
		return find_job_partition(job_id, component);
	return partition ? strdup(partition) : ask_default();
}

/* getgrnam would use a buffer that all threads of srun share. */
static bool find_group(const char *name, gid_t *gid)
{
	struct group group, *found = NULL;
	char *buffer = NULL, *more;
	size_t room = 1024;
	int rc = ERANGE;

	while (rc == ERANGE && (more = realloc(buffer, room *= 2))) {
		buffer = more;
		rc = getgrnam_r(name, &group, buffer, room, &found);
	}
	if (found)
		*gid = group.gr_gid;
	free(buffer);
	return found != NULL;
}

/* Returns true if this process is in a group: "staff" for an item "@staff". */
static bool in_group(const char *name)
{
	int count = getgroups(0, NULL), i;
	gid_t *groups = calloc((size_t)count + 1, sizeof(*groups)), gid = 0;
	bool exists = find_group(name, &gid);
	bool found = exists && gid == getegid();

	count = groups ? getgroups(count, groups) : 0;
	for (i = 0; exists && i < count; i++)
		found |= groups[i] == gid;
	free(groups);
	return found;
}

/*
 * Returns true if a list has this partition (NULL: none), or a group of the
 * user's.
 */
static bool has(const char *list, const char *partition)
{
	char item[DDP_ITEM_SIZE];

	while (ddp_site_item(&list, item, sizeof(item)))
		if (*item == '@' ? in_group(item + 1) :
		    partition && strcmp(item, partition) == 0)
			return true;
	return false;
}

/* End if the site does not allow something in this partition (NULL: any). */
__attribute__((noreturn)) static void refuse(const char *what,
					     const char *partition,
					     const char *key, const char *list)
{
	const char *deny = ddp_plugin.deny;
	bool elsewhere = partition && strcmp(what, "--ddp") == 0 &&
			 !(deny && has(deny, NULL));

	ddp_srun_refuse("%s: " DDP_SITE_FORBIDS "%s%.64s (%s=%.256s in "
			"plugstack.conf); leave it out%s", what,
			partition ? " in partition " : "",
			partition ? partition : "", key, list,
			elsewhere ? ", or choose another partition with -p" :
			"");
}

static void check_allowed(const char *partition)
{
	const char *allow = ddp_plugin.allow, *deny = ddp_plugin.deny;
	const char *at = deny;
	char item[DDP_ITEM_SIZE];

	if (allow && *allow && !has(allow, partition))
		refuse("--ddp", partition, "allow", allow);
	if (deny && has(deny, partition))
		refuse("--ddp", partition, "deny", deny);
	while (at && ddp_site_item(&at, item, sizeof(item)))
		if (*item == '-' && ddp_options_typed(item))
			refuse(item, partition, "deny", deny);
}

void ddp_policy_check(uint32_t component)
{
	char *partition = NULL, item[DDP_ITEM_SIZE];
	const char *at;

	if (ddp_site_asks_partition())
		partition = find_partition(component);
	else
		check_allowed(NULL);
	for (at = partition; at && ddp_site_item(&at, item, sizeof(item));) {
		ddp_options_partition(item);
		check_allowed(item);
	}
	ddp_options_partition(partition);
	free(partition);
}

void ddp_policy_launch(uint32_t job_id, bool heterogeneous)
{
	const char *set = getenv("SLURM_JOB_PARTITION");
	char id[16], *partition = NULL;

	if (set && strchr(set, ',') && !heterogeneous &&
	    ddp_site_asks_partition()) {
		snprintf(id, sizeof(id), "%u", job_id);
		partition = ask_job(id);
		if (partition)
			ddp_rerun_add(DDP_TELL_PARTITION, partition);
		else
			slurm_error("slurm-ddp: squeue does not tell in "
				    "which of its partitions the job runs; no "
				    "default for one of them holds");
	}
	ddp_options_partition(partition ? partition : set);
	free(partition);
}

/* ---- the step */

/* The folder in which DIR is made: where the step works, if DIR is relative. */
static void find_parent(const char *logs, char parent[PATH_MAX])
{
	const char *work = *logs == '/' ? NULL : ddp_cli_get("chdir");
	size_t length;

	snprintf(parent, PATH_MAX, "%s%s%s",
		 *logs == '/' ? "" : work ? work : ".",
		 *logs == '/' ? "" : "/", logs);
	length = strlen(parent);
	while (length > 1 && parent[length - 1] == '/')
		length--;
	while (length > 1 && parent[length - 1] != '/')
		length--;
	while (length > 1 && parent[length - 1] == '/')
		length--;
	parent[length] = '\0';
}

static bool is_missing(const char *folder)
{
	struct stat status;

	if (stat(folder, &status) == 0)
		return !S_ISDIR(status.st_mode);
	return errno == ENOENT || errno == ENOTDIR;
}

/*
 * No error: the nodes may share a file system that this host does not have, and
 * they refuse the folder if they have none either.
 */
static void check_logs_folder(void)
{
	char parent[PATH_MAX];

	if (!ddp_plugin.logs)
		return;
	find_parent(ddp_plugin.logs, parent);
	if (is_missing(parent))
		slurm_info("slurm-ddp: --ddp-logs: this host has no folder %s; "
			   "a node that has none either refuses the step",
			   ddp_text_quote(parent));
}

void ddp_check_step(void)
{
	if (ddp_asked_in_step() && !ddp_cli_isset("overlap"))
		slurm_info("slurm-ddp: this srun is in a task of a step, and "
			   "waits if that has the CPUs it needs; with --overlap "
			   "it shares them");
	check_logs_folder();
}

bool ddp_check_has_argument(const char *begin)
{
	char **argv = ddp_arguments_read();
	bool found = false;
	int i;

	for (i = 1; argv && argv[i] && i < optind; i++)
		found |= strncmp(argv[i], begin, strlen(begin)) == 0;
	ddp_arguments_free(argv);
	return found;
}

void ddp_check_tasks(void)
{
	if (!getenv("SLURM_NTASKS") && !getenv("SLURM_NTASKS_PER_NODE") &&
	    !ddp_check_has_argument("-n") &&
	    !ddp_check_has_argument("--ntasks") &&
	    !ddp_check_has_argument("--tasks-per-node"))
		ddp_srun_refuse("this srun does not show its options to "
				"plugins; give --ntasks-per-node");
}

/*
 * Tell the tasks whether the command's first word is what they would execute.
 * Where there is no TaskProlog scontrol says "(null)".
 */
static void tell_command(void)
{
	bool given = ddp_cli_isset("task-prolog");
	char *config = given ? NULL : ddp_scontrol_show("config", NULL);
	const char *at = ddp_scontrol_find_setting(config, "TaskProlog");

	if (given || (at && strncmp(at, "(null)", 6) != 0))
		ddp_rerun_add(DDP_TELL_COMMAND, "prolog");
	else if (at)
		ddp_rerun_add(DDP_TELL_COMMAND, "1");
	free(config);
}

void ddp_check_dry_run(void)
{
	static const char *const programs[] = {
		"prolog", "epilog", "task-epilog",
	};
	size_t i;

	if (!ddp_mpi_is_pmix())
		ddp_srun_refuse("--ddp=dry-run: works by PMIx only; use it "
				"with --mpi=pmix");
	for (i = 0; i < sizeof(programs) / sizeof(programs[0]); i++)
		if (ddp_cli_isset(programs[i]))
			ddp_srun_refuse("--ddp=dry-run: runs nothing of yours; "
					"leave out --%s", programs[i]);
	/*
	 * A container is Slurm's, or another plugin's, as --container-image of
	 * pyxis and --environment of Alps. One component says it for all.
	 */
	if (ddp_cli_isset("multi-prog") ||
	    ddp_check_has_argument("--container") ||
	    ddp_check_has_argument("--environment"))
		ddp_rerun_add(DDP_TELL_COMMAND, "0");
	else if (ddp_srun.component == 0)
		tell_command();
}

/* Slurm leaves @SECONDS out where it is the 60 that it takes by default. */
static void check_slurms_signal(const char *signal)
{
	const char *colon = strchr(signal, ':');

	if (colon && memchr(signal, 'B', (size_t)(colon - signal)))
		return;
	slurm_info("slurm-ddp: --signal=%s goes to every process of the ranks, "
		   "data loaders too; use --ddp-signal=%s%s, which goes to the "
		   "ranks alone", signal, colon ? colon + 1 : signal,
		   strchr(signal, '@') ? "" : "@60");
}

void ddp_check_signals(void)
{
	const char *signal = ddp_cli_get("signal");

	/* A step within a job does nothing with it. */
	if (signal && !ddp_cli_isset("jobid"))
		check_slurms_signal(signal);
	if (ddp_plugin.notice.number && ddp_srun.launcher)
		slurm_info("slurm-ddp: --ddp-signal goes to %s, not to the "
			   "ranks that it starts; leave %s out, and srun "
			   "starts one task a rank", ddp_srun.launcher,
			   ddp_srun.launcher);
}

void ddp_check_cpus(void)
{
	struct ddp_request request;
	struct ddp_error error;
	enum ddp_cpus cpus;
	uint32_t gpus;

	ddp_asked_read(&request);
	if (ddp_request_check_cpus(&request, &cpus, &error) < 0)
		ddp_srun_refuse("%s", error.text);
	if (ddp_request_needs_even(&request, &gpus))
		slurm_info("slurm-ddp: Slurm may give one node more tasks than "
			   "another, and more than it has GPUs; add "
			   "--ntasks-per-node=%u", gpus);
	if (cpus == DDP_CPUS_ONE_A_RANK)
		slurm_info("slurm-ddp: one CPU a rank, and data loaders need "
			   "more; consider --cpus-per-task or --cpus-per-gpu");
}
