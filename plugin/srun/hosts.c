/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Node lists as Slurm writes them, by srun's own functions. Their declarations
 * are the same from Slurm 21.08 to 26.05, but for the name of the list's type.
 */
#define _GNU_SOURCE
#include "srun/hosts.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

typedef void *(*create_fn)(const char *list);
typedef ssize_t (*format_fn)(void *hosts, size_t size, char *buffer);
typedef void (*change_fn)(void *hosts);

char *ddp_hosts_compress(const char *list)
{
	/* A bracket can take more room than it saves: n[1,3] for n1,n3. */
	size_t size = 2 * strlen(list) + 1;
	char *text = malloc(size);
	void *hosts = NULL;
	change_fn sort, destroy;
	create_fn create;
	format_fn format;

	*(void **)&create = dlsym(RTLD_DEFAULT, "slurm_hostlist_create");
	*(void **)&sort = dlsym(RTLD_DEFAULT, "slurm_hostlist_uniq");
	*(void **)&format = dlsym(RTLD_DEFAULT, "slurm_hostlist_ranged_string");
	*(void **)&destroy = dlsym(RTLD_DEFAULT, "slurm_hostlist_destroy");
	if (text && create && sort && format && destroy)
		hosts = create(list);
	if (hosts)
		sort(hosts);
	if (text && (!hosts || format(hosts, size, text) < 0))
		strcpy(text, list);
	if (hosts)
		destroy(hosts);
	return text;
}
