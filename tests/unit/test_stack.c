/* SPDX-License-Identifier: BSD-3-Clause */
/* Stacks, as py-spy 0.4, eu-stack 0.188 and gdb 13 print them. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

#include "watch/stack.h"

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
	  "__futex_wait\npthread_cond_wait@@GLIBC_2.3.2\n?\n"
	  "c10d::Work::wait\n", "c10d::Work::wait" },
	{ "[New LWP 3]\n0x00007f in __poll () from /lib/libc.so.6\n"
	  "#0  0x00007f73bb484545 in __poll (fds=0x1) at poll.c:29\n"
	  "#1  main () at a.c:7\n#10 0x1 in ?? ()\n"
	  "[Inferior 1 (process 42) detached]\n",
	  "__poll (fds=0x1) at poll.c:29\nmain () at a.c:7\n?? ()\n",
	  "main" },
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
