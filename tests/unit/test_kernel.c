/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the kernel says of processes. The records are from mm/oom_kill.c of
 * Linux 4.19 and 6.1, and from NVIDIA's document on Xid errors.
 */
#include <criterion/criterion.h>

#include "watch/kernel.h"

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

Test(kernel, share)
{
	struct ddp_kernel_share share = { 5, 7 };

	ddp_kernel_add_share("1000000 20 3\n", &share);
	cr_expect_eq(share.ran_ns, 1000005);
	cr_expect_eq(share.waited_ns, 27);
	ddp_kernel_add_share("2000000 20 7\n", &share);
	ddp_kernel_add_share("0 20 0\n", &share);
	ddp_kernel_add_share(NULL, &share);
	ddp_kernel_add_share("", &share);
	ddp_kernel_add_share("9000000 12", &share);
	cr_expect_eq(share.ran_ns, 1000005);
	cr_expect_eq(share.waited_ns, 27);
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
