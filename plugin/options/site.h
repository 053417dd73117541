/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The site's settings, by the arguments of plugstack.conf. Each is KEY=VALUE,
 * or partition=NAME,NAME:KEY=VALUE for the jobs of these partitions. In
 * slurmstepd they are read as root; they are words, and nothing is looked up.
 */
#ifndef DDP_OPTIONS_SITE_H
#define DDP_OPTIONS_SITE_H

#include <stdbool.h>
#include <stddef.h>

#include "options/plugin.h"

enum { DDP_ITEM_SIZE = 256 };

/* srun --ddp says this where allow= or deny= forbid it. */
#define DDP_SITE_FORBIDS "this site does not allow it"

/* The arguments of one line; argv is kept, as Slurm keeps it. */
void ddp_site_read(int argc, char **argv);

/* The first error in them; NULL if there is none. */
const char *ddp_site_error(void);

/*
 * Set what they say: first what is for all, then what is for this partition
 * (NULL: not known). Later ones replace earlier ones.
 */
void ddp_site_apply(struct ddp_plugin *plugin, const char *partition);

/* Returns true if any argument depends on the partition. */
bool ddp_site_asks_partition(void);

/*
 * The argument of this number, if it is a default for steps that stands in
 * this partition; "" if not, NULL beyond the last.
 */
const char *ddp_site_default(size_t index, const char *partition);

/* The same for a variable of env=, in any partition: "NAME=VALUE"; "", NULL. */
const char *ddp_site_env(size_t index);

/*
 * Tell each partition ("NAME") and group ("@NAME") that the arguments name, and
 * the key that does.
 */
typedef void ddp_site_teller(void *context, const char *key, const char *name);
void ddp_site_names(ddp_site_teller *tell, void *context);

/*
 * Copy the next item of a list with commas, which ends with its text or with a
 * colon, to item[size], and move *at past it. Returns false at the end.
 */
bool ddp_site_item(const char **at, char *item, size_t size);

#endif
