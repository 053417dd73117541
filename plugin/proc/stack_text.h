/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stacks of threads, as a text of one function a line, the innermost first:
 * "all_reduce (torch/distributed/distributed_c10d.py:1316)".
 */
#ifndef DDP_PROC_STACK_TEXT_H
#define DDP_PROC_STACK_TEXT_H

#include "wire/wire.h"

enum { DDP_STACK_LINES = 12, DDP_STACK_NAME_SIZE = 128 };

/*
 * Read what py-spy, eu-stack or gdb prints of the first thread. Frames without
 * a name that follow each other are one line: "? (3 frames without a name)".
 */
void ddp_stack_read(const char *printed, char stack[DDP_WIRE_TAIL_SIZE]);

/*
 * The first function that tells where a program waits: none of the C library,
 * of Python's interpreter, or without a name. name is "" if there is none.
 */
void ddp_stack_find(const char *stack, char name[DDP_STACK_NAME_SIZE]);

#endif
