/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The keys of plugstack.conf's arguments, and the lists with commas that some
 * of them have. Parsed as root in slurmstepd: words and numbers only.
 */
#ifndef DDP_OPTIONS_KEYS_H
#define DDP_OPTIONS_KEYS_H

#include <stdbool.h>
#include <stddef.h>

#include "options/plugin.h"
#include "util/error.h"

enum ddp_key_kind {
	DDP_KEY_STEP,		/* a default for steps */
	DDP_KEY_VARIABLE,	/* the same, one for each variable */
	DDP_KEY_WHO,		/* partitions and others, in a list */
	DDP_KEY_OTHER,
	DDP_KEY_REFUSED		/* with a reason of its own; never offered */
};

/*
 * parse sets what a value says, or returns -1 with the reason. It keeps the
 * value, not a copy.
 */
struct ddp_key {
	const char *name;
	int (*parse)(const char *value, struct ddp_plugin *plugin,
		     struct ddp_error *error);
	enum ddp_key_kind kind;
};

enum { DDP_KEY_COUNT = 12, DDP_ITEM_SIZE = 256 };
extern const struct ddp_key ddp_keys[DDP_KEY_COUNT];

/* The length of the name in "NAME=VALUE"; 0 where that is no variable's. */
size_t ddp_keys_name_length(const char *text);

/*
 * Copy the next item of a list, which ends with its text or with a colon, to
 * item[size], and move *at past it. Returns false at the end.
 */
bool ddp_keys_item(const char **at, char *item, size_t size);

/*
 * Checks that a list goes up to the character end and has no empty item; it may
 * have no item at all. Returns 0, or -1 with the reason.
 */
int ddp_keys_list(const char *list, char end, struct ddp_error *error);

#endif
