/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Expands the node lists on standard input, one a line. Prints the hosts of
 * each, one a line, and then an empty line; of a list that is refused it prints
 * only the empty line.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>

#include "layout/hostlist.h"

int main(void)
{
	struct ddp_hostlist *hosts;
	char *line = NULL;
	size_t size = 0, i;
	ssize_t length;

	while ((length = getline(&line, &size, stdin)) > 0) {
		line[length - 1] = '\0';
		hosts = ddp_hostlist_create(line, NULL);
		for (i = 0; hosts && i < ddp_hostlist_count(hosts); i++)
			puts(ddp_hostlist_get(hosts, i));
		puts("");
		ddp_hostlist_destroy(hosts);
	}
	free(line);
	return 0;
}
