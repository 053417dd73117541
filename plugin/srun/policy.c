/* SPDX-License-Identifier: BSD-3-Clause */
/* The partition of a job, and what the site allows there. */
#define _GNU_SOURCE
#include "srun/policy.h"

#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <slurm/spank.h>

#include "options/keys.h"
#include "options/options.h"
#include "options/plugin.h"
#include "options/site.h"
#include "slurm/scontrol.h"
#include "srun/cli.h"
#include "srun/rerun.h"

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

	while (ddp_keys_item(&list, item, sizeof(item)))
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
	while (at && ddp_keys_item(&at, item, sizeof(item)))
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
	for (at = partition; at && ddp_keys_item(&at, item, sizeof(item));) {
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
