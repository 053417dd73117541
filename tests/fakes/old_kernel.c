/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs a program as on an older kernel: system calls from a number on fail with
 * ENOSYS, in all that it starts, too.
 *
 *     old_kernel NUMBER COMMAND [ARGUMENT...]
 *
 * From 424 on all machines have the same numbers, in the order in which the
 * calls came: without these it is Linux 4.18 to 5.0, which lacks pidfd_open and
 * close_range. Without those from 436 on it is about Linux 5.4, which lacks
 * close_range alone.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct sock_filter lines[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K,
			 argc > 1 ? (unsigned int)atoi(argv[1]) : 0, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog filter = {
		.len = sizeof(lines) / sizeof(lines[0]), .filter = lines,
	};

	if (argc < 3) {
		fprintf(stderr, "usage: old_kernel NUMBER COMMAND...\n");
		return 2;
	}
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) < 0) {
		perror("old_kernel: seccomp");
		return 125;
	}
	execvp(argv[2], argv + 2);
	perror(argv[2]);
	return 127;
}
