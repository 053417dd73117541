/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The heartbeat file: how a task tells whoever watches it that it makes progress
 * (ddp_heartbeat in ddp.h). Who starts the task makes an empty file that only
 * the user can open, and removes it at the end.
 * The task's first beat maps the file, so that a beat is one addition in memory;
 * it makes the file where the task has a /tmp of its own. Whoever reads the
 * counter by pread(2) sees it; the time of a beat is not recorded.
 *
 * Only the user can write the file, so its reader trusts nothing in it: it
 * looks whether the count has changed, and no more.
 */
#ifndef DDP_LAYOUT_HEARTBEAT_H
#define DDP_LAYOUT_HEARTBEAT_H

#include <stddef.h>
#include <stdint.h>

/* The environment variable with the file's absolute path. */
#define DDP_HEARTBEAT_VARIABLE "DDP_HEARTBEAT_FILE"

enum { DDP_HEARTBEAT_SIZE = 4096 };	/* bytes of the file */

/* The file's content, in the byte order of the machine; the rest is zero. */
struct ddp_heartbeat {
	_Atomic uint64_t beats;
};

_Static_assert(offsetof(struct ddp_heartbeat, beats) == 0 &&
	       sizeof(struct ddp_heartbeat) == 8,
	       "the count is the file's first 8 bytes");

#endif
