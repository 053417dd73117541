/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the kernel says of processes. The records are from mm/oom_kill.c of
 * Linux 4.19 and 6.1, and from NVIDIA's document on Xid errors.
 */
#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>

#include "proc/kernel.h"

Test(kernel, process)
{
	struct ddp_kernel_process process;

	cr_expect_eq(ddp_kernel_read_process("42 (sh) S 7 42 40 34816 42 4194304",
					     &process), 0);
	cr_expect_eq(process.state, 'S');
	cr_expect_eq(process.parent, 7);
	cr_expect_eq(process.session, 40);
	cr_expect_eq(ddp_kernel_read_process("43 (a) R 1 (b) D 8 43 43 0",
					     &process), 0);
	cr_expect_eq(process.state, 'D');
	cr_expect_eq(process.parent, 8);
	cr_expect_eq(process.status, 0);
	cr_expect_eq(ddp_kernel_read_process("43 (a) Z 8 43 43 7 8 9 10 11 12 "
					     "13 14 15 16 17 18 19 20 21 22 23 "
					     "24 25 26 27 28 29 30 31 32 33 34 "
					     "35 36 37 38 39 40 41 42 43 44 45 "
					     "46 47 48 49 50 51 768\n",
					     &process), 0);
	cr_expect_eq(process.threads, 20);
	cr_expect_eq(process.status, 768);
	cr_expect_eq(ddp_kernel_read_process("", &process), -1);
	cr_expect_eq(ddp_kernel_read_process("43 (a) R 1", &process), -1);
}

/* Fields 14 to 17 of proc(5): 500, 60, 7 and 8 ticks; 28 is the stack's. */
#define STAT "42 (a ) b) S 7 42 40 34816 42 4194304 1 2 3 4 500 60 7 8 20 0 " \
	"1 0 999 1000 50 18446744073709551615 1 2 140736000006064 0 0"

Test(kernel, cpu_time)
{
	struct ddp_kernel_process process;

	cr_expect_eq(ddp_kernel_read_process(STAT, &process), 0);
	cr_expect_eq(process.cpu, 575);
	cr_expect_eq(ddp_kernel_read_process("42 (sh) S 7 42 40", &process), 0);
	cr_expect_eq(process.cpu, 0);
}

Test(kernel, place)
{
	static const struct {
		const char *wchan, *syscall, *place;
	} table[] = {
		{ "futex_do_wait", "202 0x1", "futex_do_wait" },
		{ "pipe_read\n", NULL, "pipe_read" },
		{ "0", "202 0x1 0x2", "system call 202" },
		{ "", "running\n", "" }, { "0", "-1 0x1 0x2", "" },
		{ NULL, NULL, "" },
	};
	char place[DDP_KERNEL_PLACE_SIZE];
	size_t i;

	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		ddp_kernel_read_place(table[i].wchan, table[i].syscall, place);
		cr_expect_str_eq(place, table[i].place, "%zu: %s", i, place);
	}
}

/* 140736000006064 is 0x7fffa74997b0; at 0x7fffa7498800 4016 bytes are used. */
Test(kernel, depth)
{
	static const char call[] =
		"202 0x1 0x189 0x0 0x0 0x0 0xffffffff 0x7fffa7498800 0x7f6a\n";

	cr_expect_eq(ddp_kernel_read_depth(STAT, call), 4016);
	cr_expect_eq(ddp_kernel_read_depth(STAT, "running\n"), 0);
	cr_expect_eq(ddp_kernel_read_depth(STAT, NULL), 0);
	cr_expect_eq(ddp_kernel_read_depth(NULL, call), 0);
	cr_expect_eq(ddp_kernel_read_depth("42 (a) S 7", call), 0);
}

Test(kernel, polls)
{
	cr_expect(ddp_kernel_polls("7f-8f r-xp 0 08:01 9  /usr/lib/libmpi.so.40"
				   "\n"));
	cr_expect(ddp_kernel_polls("7f-8f r-xp 0 08:01 9  /a/libcuda.so.535.1"));
	cr_expect_not(ddp_kernel_polls("7f-8f r-xp 0 08:01 9  /usr/lib/"
				       "libicudata.so.72\n7f-8f r-xp 0 08:01 "
				       "9  /usr/lib/libgloo.so\n"));
}

Test(kernel, io)
{
	static const char io[] = "rchar: 7\nwchar: 8\nread_bytes: 4096\n"
		"write_bytes: 12\ncancelled_write_bytes: 5\n";

	cr_expect_eq(ddp_kernel_read_io(io, "read_bytes"), 4096);
	cr_expect_eq(ddp_kernel_read_io(io, "write_bytes"), 12);
	cr_expect_eq(ddp_kernel_read_io(io, "rchar"), 7);
	cr_expect_eq(ddp_kernel_read_io(io, "char"), 0);
	cr_expect_eq(ddp_kernel_read_io(NULL, "rchar"), 0);
}

struct thread_text {
	int id;
	const char *text;
};

/* Two looks at a rank, and what they share in between. */
static struct ddp_kernel_share share_of(const struct thread_text before[4],
					const struct thread_text now[4])
{
	struct ddp_kernel_threads first = { 0 }, second = { 0 };
	struct ddp_kernel_share share;
	size_t i;

	for (i = 0; i < 4; i++) {
		ddp_kernel_add_thread(&first, before[i].id, before[i].text);
		ddp_kernel_add_thread(&second, now[i].id, now[i].text);
	}
	share = ddp_kernel_find_share(&first, &second);
	free(first.data);
	free(second.data);
	return share;
}

/* Times are in ns. An hour of work is 3600 s in slices of 10 ms. */
#define HOUR "3600000000000 70000000000 360000"

static const struct {
	const char *name;
	struct thread_text before[4], now[4];
	uint64_t ran_ns, waited_ns;
} shares[] = {
	{ "works and waits", { { 7, "50000000 900000000 10\n" } },
	  { { 7, "70000000 1700000000 22\n" } }, 20000000, 800000000 },
	{ "worked for an hour, now polls", { { 7, HOUR } },
	  { { 7, "3600030000000 70400000000 361000" } }, 0, 0 },
	{ "polled for an hour, now works", { { 7, "30000000000 5 1000000" } },
	  { { 7, "30020000000 800000005 1000012" } }, 20000000, 800000000 },
	{ "works beside one that polls",
	  { { 7, HOUR }, { 9, "3000000 1000000 100" } },
	  { { 7, "3600020000000 70800000000 360012" },
	    { 9, "6000000 900000000 200" } }, 20000000, 800000000 },
	{ "does not get a CPU, or sleeps", { { 7, HOUR } }, { { 7, HOUR } },
	  0, 0 },
	{ "runs without a pause", { { 7, HOUR } },
	  { { 7, "3601000000000 70000000000 360000" } }, 1000000000, 0 },
	{ "0.3 ms at a time", { { 7, "0 0 0" } }, { { 7, "3000000 9 10" } },
	  3000000, 9 },
	{ "less", { { 7, "0 0 0" } }, { { 7, "2999999 9 10" } }, 0, 0 },
	{ "one began, one ended, in another order",
	  { { 7, "50000000 0 10" }, { 8, "1000000 0 1" }, { 9, HOUR } },
	  { { 9, HOUR }, { 11, "4000000 5 2" }, { 7, "51000000 6 11" } },
	  5000000, 11 },
	{ "another has its number now", { { 7, HOUR }, { 8, HOUR } },
	  { { 7, "4000000 5 2" }, { 8, HOUR } }, 4000000, 5 },
	{ "another has its number now, which ran for less but waited for more",
	  { { 7, "4000000 5 2" } }, { { 7, "3000000 9 4" } }, 3000000, 9 },
	{ "nothing is known from before", { { 0, NULL } }, { { 7, HOUR } },
	  0, 0 },
	{ "other texts", { { 7, "1 2" }, { 8, "" }, { 9, HOUR } },
	  { { 9, HOUR }, { 7, NULL }, { 8, "9000000 12" } }, 0, 0 },
};

Test(kernel, share)
{
	struct ddp_kernel_share share;
	size_t i;

	for (i = 0; i < sizeof(shares) / sizeof(shares[0]); i++) {
		share = share_of(shares[i].before, shares[i].now);
		cr_expect_eq(share.ran_ns, shares[i].ran_ns, "%s: ran %lu",
			     shares[i].name, (unsigned long)share.ran_ns);
		cr_expect_eq(share.waited_ns, shares[i].waited_ns,
			     "%s: waited %lu", shares[i].name,
			     (unsigned long)share.waited_ns);
	}
}

Test(kernel, many_threads)
{
	struct ddp_kernel_threads threads = { 0 };
	int i;

	for (i = 0; i < 1000; i++)
		ddp_kernel_add_thread(&threads, 100 + i, "5 6 7");
	cr_assert_eq(threads.count, 1000);
	cr_expect_eq(threads.data[999].id, 1099);
	cr_expect_eq(threads.data[0].share.waited_ns, 6);
	free(threads.data);
}

static struct ddp_kernel_record read(const char *text)
{
	struct ddp_kernel_record record;

	ddp_kernel_read_record(text, &record);
	return record;
}

Test(kernel, killed)
{
	struct ddp_kernel_record record =
		read("3,1044,9;Memory cgroup out of memory: Killed process 512 "
		     "(python3) total-vm:9kB, anon-rss:8kB, UID:61000\n");

	cr_expect_eq(record.what, DDP_KERNEL_KILLED);
	cr_expect_eq(record.pid, 512);
	record = read("3,1,2,-;Out of memory: Killed process 7 (a) total-vm\n");
	cr_expect_eq(record.what, DDP_KERNEL_KILLED);
	cr_expect_eq(record.pid, 7);
	record = read("3,1,2,-;Out of memory: Kill process 8 (a) score 9\n");
	cr_expect_eq(record.what, DDP_KERNEL_KILLED);
	cr_expect_eq(record.pid, 8);
}

Test(kernel, xid)
{
	struct ddp_kernel_record record =
		read("3,9,8,-;NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, "
		     "name=python, GPU has fallen off the bus.\n SUBSYSTEM=x\n");

	cr_expect_eq(record.what, DDP_KERNEL_XID);
	cr_expect_eq(record.pid, 1234);
	cr_expect_eq(record.xid, 79);
	cr_expect_str_eq(record.bus, "0000:3b:00");
	cr_expect_str_eq(record.words, "GPU has fallen off the bus.");
	record = read("3,9,8,-;NVRM: Xid (PCI:0000:03:00): 48, An uncorrectable "
		      "error, twice\n");
	cr_expect_eq(record.pid, 0);
	cr_expect_eq(record.xid, 48);
	cr_expect_str_eq(record.words, "An uncorrectable error, twice");
	record = read("3,9,8,-;NVRM: Xid (PCI:0000:03:00): 13, "
		      "pid='<unknown>', name=<unknown>, a\033b\n");
	cr_expect_eq(record.pid, 0);
	cr_expect_str_eq(record.words, "a?b");
	record = read("3,9,8,-;NVRM: Xid (PCI:0000:03:00): 62\n");
	cr_expect_eq(record.xid, 62);
	cr_expect_str_eq(record.words, "");
}

Test(kernel, others)
{
	static const char *const texts[] = {
		"", ";", "6,1,2,-;", "6,1,2,-;usb 1-1: new device\n",
		"6,1,2,-;NVRM: loading NVIDIA driver\n",
		"6,1,2,-;NVRM: Xid (PCI:0000:03:00) 62\n",
		"6,1,2,-;Out of memory: nothing to kill\n",
		"Out of memory: Killed process 7",
	};
	size_t i;

	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		cr_expect_eq(read(texts[i]).what, DDP_KERNEL_OTHER, "%s",
			     texts[i]);
}

/*
 * The kernel says where a step's cgroups are. The texts are those of real nodes:
 * Debian 12 with version 1, and 24.11 with version 2, as Slurm's source names its
 * folders.
 */
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
