/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Expands node lists, one a line of standard input: their hosts, one a line,
 * then an empty line, which is all there is for a list that is refused.
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
		for (i = 0; hosts != NULL && i < ddp_hostlist_count(hosts); i++)
			puts(ddp_hostlist_get(hosts, i));
		puts("");
		ddp_hostlist_destroy(hosts);
	}
	free(line);
	return 0;
}
