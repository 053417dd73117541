/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands that slurmstepd could not execute. */
#include <criterion/criterion.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "verdict/execve.h"
#include "wire/wire.h"

#define STEPD "slurmstepd-n1: error: execve(): "
#define DATED "[2026-11-23T08:10:40.123] error: execve(): "
#define NONE "No such file or directory"

/* left: what remains of the tail; NULL: all of it */
static const struct {
	const char *tail;
	int code;
	const char *cause, *left;
} table[] = {
	{ STEPD "a: " NONE "\n", ENOENT, "cannot execute a: " NONE, "" },
	{ STEPD "a: " NONE, ENOENT, "cannot execute a: " NONE, "" },
	{ DATED "/etc/passwd: Permission denied\n", EACCES,
	  "cannot execute /etc/passwd: Permission denied", "" },
	{ "prolog\n" STEPD "bad interpreter(/bin/x): " NONE "\n", ENOENT,
	  "cannot execute bad interpreter(/bin/x): " NONE, "prolog\n" },
	/* It is of another error, not the last line, or not slurmstepd's. */
	{ STEPD "a: " NONE "\n", EACCES, "", NULL },
	{ STEPD "a: " NONE "\n", EDEADLK, "", NULL },	/* as long in words */
	{ STEPD "a: " NONE "\nmore\n", ENOENT, "", NULL },
	{ "error: execve(): a: " NONE "\n", ENOENT, "", NULL },
	{ "a: " NONE "\n", ENOENT, "", NULL },
	{ STEPD NONE, ENOENT, "", NULL },
	{ "", ENOENT, "", NULL },
	{ "\n", ENOENT, "", NULL },
};

Test(execve, of_tails)
{
	char tail[DDP_WIRE_TAIL_SIZE], cause[DDP_FAILURE_SIZE];
	size_t i;

	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		strcpy(tail, table[i].tail);
		ddp_execve_take(tail, (uint32_t)table[i].code << 8, cause);
		cr_expect_str_eq(cause, table[i].cause, "%zu: %s", i, cause);
		cr_expect_str_eq(tail, table[i].left ? table[i].left :
				 table[i].tail, "%zu: %s", i, tail);
	}
}

/* Of a long command the end of the line, which is the reason, has room. */
Test(execve, of_a_long_command)
{
	char tail[DDP_WIRE_TAIL_SIZE], cause[DDP_FAILURE_SIZE];

	memset(tail, 'a', sizeof(tail));
	memcpy(tail, STEPD, strlen(STEPD));
	strcpy(tail + 1000, ": " NONE "\n");
	ddp_execve_take(tail, ENOENT << 8, cause);
	cr_expect_eq(strlen(cause), strlen("cannot execute : " NONE) + 160);
	cr_expect(strstr(cause, "a: " NONE));
	cr_expect_str_eq(tail, "");
}

/* What a signal has ended has no exit code, whatever is in its place. */
Test(execve, of_a_signal)
{
	char tail[] = STEPD "a: " NONE "\n", cause[DDP_FAILURE_SIZE];

	ddp_execve_take(tail, ENOENT << 8 | SIGKILL, cause);
	cr_expect_str_eq(cause, "");
}
