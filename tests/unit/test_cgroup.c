/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where a step's cgroups are. The texts are those of real nodes: Debian 12 with
 * version 1, and 24.11 with version 2, as Slurm's source names its folders.
 */
#include <criterion/criterion.h>

#include <string.h>

#include "proc/cgroup.h"

static const char old[] =
	"9:name=systemd:/user.slice\n"
	"6:freezer:/slurm_n1/uid_61000/job_2/step_0\n"
	"5:devices:/slurm_n1/uid_61000/job_2/step_0/task_1\n"
	"4:memory:/slurm_n1/uid_61000/job_2/step_0/task_1\n"
	"2:cpu,cpuacct:/slurm_n1/uid_61000/job_2/step_0/task_1\n"
	"1:cpuset:/\n"
	"0::/\n";

static const char new[] =
	"0::/system.slice/slurmstepd.scope/job_7/step_12/user/task_0\n";

static const char mounts[] =
	"24 31 0:22 / /proc rw,nosuid shared:5 - proc proc rw\n"
	"30 24 0:26 / /sys/fs/cgroup ro shared:9 - tmpfs tmpfs ro,mode=755\n"
	"31 30 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
	"32 30 0:28 / /sys/fs/cgroup/cpu,cpuacct rw shared:1 master:2 - cgroup "
	"cgroup rw,cpu,cpuacct\n"
	"33 30 0:29 / /sys/fs/cgroup/freezer rw - cgroup cgroup rw,freezer\n"
	"34 30 0:30 /slurm_n1 /mnt/memory rw - cgroup cgroup rw,memory\n"
	"35 30 0:31 / /a\\040b rw - cgroup cgroup rw,devices\n";

static const char *step(const char *text, const char *controller)
{
	static char path[DDP_CGROUP_SIZE];

	return ddp_cgroup_find_step(text, controller, path) == 0 ? path :
		"none";
}

static const char *folder(const char *controller, const char *path)
{
	static char at[DDP_CGROUP_SIZE];

	return ddp_cgroup_find_folder(mounts, controller, path, at) == 0 ? at :
		"none";
}

Test(cgroup, step)
{
	cr_expect_str_eq(step(old, "freezer"),
			 "/slurm_n1/uid_61000/job_2/step_0");
	cr_expect_str_eq(step(old, "memory"),
			 "/slurm_n1/uid_61000/job_2/step_0");
	cr_expect_str_eq(step(old, "cpuacct"),
			 "/slurm_n1/uid_61000/job_2/step_0");
	cr_expect_str_eq(step(new, ""),
			 "/system.slice/slurmstepd.scope/job_7/step_12");
	cr_expect_str_eq(step("0::/job_1/step_batch/task_0", ""),
			 "/job_1/step_batch");
}

Test(cgroup, no_step)
{
	cr_expect_str_eq(step(old, "cpuset"), "none");
	cr_expect_str_eq(step(old, ""), "none");
	cr_expect_str_eq(step(old, "pids"), "none");
	cr_expect_str_eq(step(old, "cpua"), "none");
	cr_expect_str_eq(step(new, "freezer"), "none");
	cr_expect_str_eq(step("", ""), "none");
	cr_expect_str_eq(step("0:", ""), "none");
	cr_expect_str_eq(step("nonsense\n", ""), "none");
}

Test(cgroup, whole_path)
{
	char path[DDP_CGROUP_SIZE];

	cr_expect_eq(ddp_cgroup_find(old, "memory", path), 0);
	cr_expect_str_eq(path, "/slurm_n1/uid_61000/job_2/step_0/task_1");
	cr_expect_eq(ddp_cgroup_find(new, "", path), 0);
	cr_expect_str_eq(path, "/system.slice/slurmstepd.scope/job_7/step_12/"
			 "user/task_0");
}

Test(cgroup, too_long)
{
	char text[DDP_CGROUP_SIZE + 16], path[DDP_CGROUP_SIZE];

	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	memcpy(text, "0::/step_", 9);
	cr_expect_eq(ddp_cgroup_find_step(text, "", path), -1);
}

Test(cgroup, folder)
{
	cr_expect_str_eq(folder("freezer", "/slurm_n1/step_0"),
			 "/sys/fs/cgroup/freezer/slurm_n1/step_0");
	cr_expect_str_eq(folder("cpu", "/x"), "/sys/fs/cgroup/cpu,cpuacct/x");
	cr_expect_str_eq(folder("", "/x"), "/sys/fs/cgroup/unified/x");
	cr_expect_str_eq(folder("memory", "/slurm_n1/uid_1/step_0"),
			 "/mnt/memory/uid_1/step_0");
	cr_expect_str_eq(folder("memory", "/slurm_n1"), "/mnt/memory");
}

Test(cgroup, no_folder)
{
	cr_expect_str_eq(folder("memory", "/slurm_n12/step_0"), "none");
	cr_expect_str_eq(folder("memory", "/step_0"), "none");
	cr_expect_str_eq(folder("devices", "/step_0"), "none");
	cr_expect_str_eq(folder("pids", "/step_0"), "none");
	cr_expect_str_eq(folder("proc", "/step_0"), "none");
}

Test(cgroup, count)
{
	cr_expect_eq(ddp_cgroup_count("oom_kill_disable 0\nunder_oom 0\n"
				      "oom_kill 3\n", "oom_kill"), 3);
	cr_expect_eq(ddp_cgroup_count("oom 9\noom_kill 12\noom_group_kill 1",
				      "oom_kill"), 12);
	cr_expect_eq(ddp_cgroup_count("oom 9\n", "oom_kill"), 0);
	cr_expect_eq(ddp_cgroup_count(NULL, "oom_kill"), 0);
}
