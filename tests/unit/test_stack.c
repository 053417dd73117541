/* SPDX-License-Identifier: BSD-3-Clause */
/* Stacks, as py-spy 0.4, eu-stack 0.188 and gdb 13 print them. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

#include "proc/stack_text.h"

static const struct {
	const char *printed, *stack, *name;
} table[] = {
	{ "", "", "" },
	{ "Permission Denied: try running again with elevated privileges\n",
	  "", "" },
	{ "Process 42: python3 a.py\nPython v3.11.2 (/usr/bin/python3.11)\n\n"
	  "Thread 42 (idle): \"MainThread\"\n"
	  "    wait (threading.py:320)\n    all_reduce (torch/d.py:1536)\n"
	  "    <module> (a.py:9)\n"
	  "Thread 43 (idle): \"Thread-1\"\n    run (threading.py:1)\n",
	  "wait (threading.py:320)\nall_reduce (torch/d.py:1536)\n"
	  "<module> (a.py:9)\n", "all_reduce" },
	{ "PID 42 - process\nTID 42:\n#0  0x00007f6ada804f16 __futex_wait\n"
	  "#1  0x00007f6ada804f17 pthread_cond_wait@@GLIBC_2.3.2\n"
	  "#2  0x00007f6ada804f18\n#3  0x00007f6ada804f19 c10d::Work::wait\n",
	  "__futex_wait\npthread_cond_wait@@GLIBC_2.3.2\n"
	  "? (1 frame without a name)\n"
	  "c10d::Work::wait\n", "c10d::Work::wait" },
	{ "[New LWP 3]\n0x00007f in __poll () from /lib/libc.so.6\n"
	  "#0  0x00007f73bb484545 in __poll (fds=0x1) at poll.c:29\n"
	  "#1  main () at a.c:7\n#10 0x1 in ?? ()\n"
	  "[Inferior 1 (process 42) detached]\n",
	  "__poll (fds=0x1) at poll.c:29\nmain () at a.c:7\n"
	  "? (1 frame without a name)\n", "main" },
	/* Frames without a name, alone, of a library, and of several. */
	{ "#0  0x1 in ?? ()\n#1  0x2 in ?? ()\n#2  0x0 in ?? ()\n",
	  "? (3 frames without a name)\n", "" },
	{ "#0  0x1 in poll ()\n#1  0x2 in ?? () from /lib/libcuda.so.1\n"
	  "#2  0x3 in ?? () from /lib/libcuda.so.1\n#3  0x4 in ?? ()\n"
	  "#4  0x5 in ?? () from /lib/a.so\n#5  0x6 in ?? () from /lib/b.so\n"
	  "#6  0x7 in main ()\n",
	  "poll ()\n? from /lib/libcuda.so.1 (2 frames without a name)\n"
	  "? (1 frame without a name)\n"
	  "? from /lib/a.so (1 frame without a name)\n"
	  "? from /lib/b.so (1 frame without a name)\nmain ()\n", "main" },
	{ "#0  0x1\n#1  0x2\n#2  0x3 main\n",
	  "? (2 frames without a name)\nmain\n", "main" },
	{ "#0  0x1 in e\033[31m ()\n", "e?[31m ()\n", "e?[31m" },
};

Test(stack, of_each_program)
{
	char stack[DDP_WIRE_TAIL_SIZE], name[DDP_STACK_NAME_SIZE];
	size_t i;

	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		ddp_stack_read(table[i].printed, stack);
		cr_expect_str_eq(stack, table[i].stack, "%zu: %s", i, stack);
		ddp_stack_find(stack, name);
		cr_expect_str_eq(name, table[i].name, "%zu: %s", i, name);
	}
}

Test(stack, is_bounded)
{
	char printed[40000], stack[DDP_WIRE_TAIL_SIZE];
	char *at = printed;
	int i, lines = 0;

	for (i = 0; i < 100; i++) {
		at += sprintf(at, "#%d  0x1 in ", i);
		memset(at, 'f', 300);
		at += 300;
		*at++ = '\n';
	}
	*at = '\0';
	ddp_stack_read(printed, stack);
	for (at = stack; (at = strchr(at, '\n')); at++)
		lines++;
	cr_expect_eq(lines, DDP_STACK_LINES);
	cr_expect_eq(strlen(stack), 12 * 201);
}

/* Frames without a name do not take the place of those with one. */
Test(stack, keeps_what_is_below_frames_without_a_name)
{
	char printed[4000] = "#0  0x1 in poll ()\n";
	char stack[DDP_WIRE_TAIL_SIZE];
	int i;

	for (i = 1; i < 31; i++)
		sprintf(printed + strlen(printed), "#%d  0x1 in ?? ()\n", i);
	strcat(printed, "#31 0x1 in main ()\n");
	ddp_stack_read(printed, stack);
	cr_expect_str_eq(stack, "poll ()\n? (30 frames without a name)\n"
			 "main ()\n");
}

/* Of a library's long name the count behind it has room. */
Test(stack, of_a_long_library)
{
	static const char end[] = "0 (1 frame without a name)\n";
	char printed[1000], stack[DDP_WIRE_TAIL_SIZE];

	sprintf(printed, "#0  0x1 in ?? () from /%0400d\n", 0);
	ddp_stack_read(printed, stack);
	cr_expect_eq(strlen(stack), 150 + strlen(end));
	cr_expect(strstr(stack, end));
}
